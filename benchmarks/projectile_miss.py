"""How often a cow, bat or snail killed by an arrow goes unseen, and what the goal tests cost.

Run: python benchmarks/projectile_miss.py [--worlds 64] [--repeats 32]

Every trial has one creature with a point of health left and an arrow about to hit it, so each is a kill. The kill
shows in the two states around the step unless a new creature takes the slot at once; the table gives the share
that does not show, and how many of those `missed_passive_kill` finds.
"""

import argparse
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax.constants import BlockType, ProjectileType
from craftax.craftax.craftax_state import EnvParams, EnvState, StaticEnvParams
from craftax.craftax.game_logic import craftax_step
from craftax.craftax.world_gen.world_gen import generate_world

from forethought.craftax.goal_specs import goal_ids
from forethought.craftax.success import benchmark_success, missed_passive_kill

PARAMS, STATIC = EnvParams(), StaticEnvParams()
KINDS = ("cow", "bat", "snail")
HOMES = ((0, "cow"), (1, "snail"), (2, "bat"), (3, "snail"), (4, "snail"), (5, "bat"), (6, "bat"))
"""Floors and the passive creature that lives there."""


def doomed(world: EnvState, floor: jax.Array, kind: jax.Array) -> EnvState:
    """Put the player before a walled-in creature with an arrow between them."""
    row, column = 24, 24
    area = world.map.at[floor, row - 1 : row + 2, column : column + 4].set(BlockType.PATH.value)
    for r, c in ((row - 1, column + 3), (row + 1, column + 3), (row, column + 4)):
        area = area.at[floor, r, c].set(BlockType.STONE.value)
    cow, arrow = world.passive_mobs, world.player_projectiles
    return replace(
        world,
        map=area,
        player_level=floor,
        player_position=jnp.array([row, column]),
        passive_mobs=replace(
            cow,
            position=cow.position.at[floor, 0].set(jnp.array([row, column + 3])),
            mask=cow.mask.at[floor, 0].set(True),
            health=cow.health.at[floor, 0].set(1.0),
            type_id=cow.type_id.at[floor, 0].set(kind),
        ),
        mob_map=world.mob_map.at[floor, row, column + 3].set(True),
        player_projectiles=replace(
            arrow,
            position=arrow.position.at[floor, 0].set(jnp.array([row, column + 2])),
            mask=arrow.mask.at[floor, 0].set(True),
            type_id=arrow.type_id.at[floor, 0].set(ProjectileType.ARROW2.value),
        ),
        player_projectile_directions=world.player_projectile_directions.at[floor, 0].set(jnp.array([0, 1])),
    )


def trial(world: EnvState, key: jax.Array, floor: jax.Array, kind: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Play the step of the kill; give whether "defeat" sees it and whether the count of misses does."""
    before = doomed(world, floor, kind)
    after, _ = craftax_step(key, before, jnp.int32(0), PARAMS, STATIC)
    goals = np.array([goal_ids().index(f"defeat_{name}") for name in KINDS])
    return benchmark_success(before, after)[goals][kind], missed_passive_kill(before, after)[kind]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=64, help="worlds, stepped together (default 64)")
    parser.add_argument("--repeats", type=int, default=32, help="steps from each world and floor (default 32)")
    options = parser.parse_args()

    make = jax.jit(jax.vmap(lambda key: generate_world(key, PARAMS, STATIC)))
    worlds = make(jax.random.split(jax.random.PRNGKey(0), options.worlds))
    trials = jax.jit(jax.vmap(trial, in_axes=(0, 0, None, None)))
    print("floor  creature  kills  not seen  share  found by missed_passive_kill")
    for floor, name in HOMES:
        seen, found = [], []
        for n in range(options.repeats):
            keys = jax.random.split(jax.random.PRNGKey(1000 * floor + n), options.worlds)
            shown, counted = trials(worlds, keys, jnp.int32(floor), jnp.int32(KINDS.index(name)))
            seen.append(shown)
            found.append(counted)
        unseen = ~np.concatenate(seen)
        caught = (unseen & np.concatenate(found)).sum()
        row = f"{floor:5d}  {name:8s}  {unseen.size:5d}  {unseen.sum():8d}  {unseen.mean():5.1%}"
        print(f"{row}  {caught} of {unseen.sum()}")

    judge = jax.jit(jax.vmap(benchmark_success))
    judge(worlds, worlds).block_until_ready()
    start = time.perf_counter()
    for _ in range(20):
        result = judge(worlds, worlds)
    result.block_until_ready()
    print(f"all 256 goal tests: {(time.perf_counter() - start) / 20 / options.worlds * 1e6:.1f} us a state")


if __name__ == "__main__":
    main()
