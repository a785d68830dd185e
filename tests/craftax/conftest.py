"""States for the Craftax tests: an empty hand-built one, and a generated world."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
from craftax.craftax.craftax_state import EnvParams, EnvState, Inventory, Mobs, StaticEnvParams
from craftax.craftax.game_logic import craftax_step
from craftax.craftax.world_gen.world_gen import generate_world


def empty_state() -> EnvState:
    """Build a world of lit grass on every floor, as NumPy arrays that tests may write to.

    The player stands in the middle of floor 0 with nothing; counters are as after a reset.
    """

    def mobs(slots: int) -> Mobs:
        return Mobs(
            position=np.zeros((9, slots, 2), np.int32),
            health=np.ones((9, slots), np.float32),
            mask=np.zeros((9, slots), bool),
            attack_cooldown=np.zeros((9, slots), np.int32),
            type_id=np.zeros((9, slots), np.int32),
        )

    def whole(value: int) -> np.ndarray:
        return np.array(value, np.int32)

    def real(value: float) -> np.ndarray:
        return np.array(value, np.float32)

    tools = ("pickaxe", "sword", "bow", "arrows", "torches", "books")
    counters = ("wood", "stone", "coal", "iron", "diamond", "sapling", "ruby", "sapphire", *tools)
    return EnvState(
        map=np.full((9, 48, 48), 2, np.int32),
        item_map=np.zeros((9, 48, 48), np.int32),
        mob_map=np.zeros((9, 48, 48), bool),
        light_map=np.ones((9, 48, 48), np.float32),
        down_ladders=np.zeros((9, 2), np.int32),
        up_ladders=np.zeros((9, 2), np.int32),
        chests_opened=np.zeros(9, bool),
        monsters_killed=np.array([10] + [0] * 8, np.int32),
        player_position=np.array([24, 24], np.int32),
        player_level=whole(0),
        player_direction=whole(3),
        player_health=real(9),
        player_food=whole(9),
        player_drink=whole(9),
        player_energy=whole(9),
        player_mana=whole(9),
        is_sleeping=np.array(False),
        is_resting=np.array(False),
        player_recover=real(0),
        player_hunger=real(0),
        player_thirst=real(0),
        player_fatigue=real(0),
        player_recover_mana=real(0),
        player_xp=whole(0),
        player_dexterity=whole(1),
        player_strength=whole(1),
        player_intelligence=whole(1),
        inventory=Inventory(
            armour=np.zeros(4, np.int32),
            potions=np.zeros(6, np.int32),
            **{name: whole(0) for name in counters},
        ),
        melee_mobs=mobs(3),
        passive_mobs=mobs(3),
        ranged_mobs=mobs(2),
        mob_projectiles=mobs(3),
        mob_projectile_directions=np.ones((9, 3, 2), np.int32),
        player_projectiles=mobs(3),
        player_projectile_directions=np.ones((9, 3, 2), np.int32),
        growing_plants_positions=np.zeros((10, 2), np.int32),
        growing_plants_age=np.zeros(10, np.int32),
        growing_plants_mask=np.zeros(10, bool),
        potion_mapping=np.arange(6, dtype=np.int32),
        learned_spells=np.zeros(2, bool),
        sword_enchantment=whole(0),
        bow_enchantment=whole(0),
        armour_enchantments=np.zeros(4, np.int32),
        boss_progress=whole(0),
        boss_timesteps_to_spawn_this_round=whole(7),
        light_level=real(1),
        achievements=np.zeros(67, bool),
        state_rng=np.zeros(2, np.uint32),
        timestep=whole(0),
    )


@pytest.fixture(scope="session")
def make_state() -> Callable[[], EnvState]:
    """The maker of hand-built states; see `empty_state`."""
    return empty_state


@pytest.fixture(scope="session")
def craftax_worlds() -> EnvState:
    """Four generated worlds, stacked; made once, as compiling the generator takes most of a minute."""
    generate = jax.jit(jax.vmap(lambda key: generate_world(key, EnvParams(), StaticEnvParams())))
    return jax.tree.map(np.array, generate(jax.random.split(jax.random.PRNGKey(7), 4)))


@pytest.fixture(scope="session")
def craftax_step_4() -> Callable[[jax.Array, EnvState, np.ndarray], EnvState]:
    """The game's own step for four environments: keys, stacked states, actions to stacked NumPy states."""

    def one(key: jax.Array, state: EnvState, action: jax.Array) -> EnvState:
        return craftax_step(key, state, action, EnvParams(), StaticEnvParams())[0]

    step = jax.jit(jax.vmap(one))
    # NumPy leaves have no weak types, so that states from different makers share one compilation.
    return lambda keys, states, actions: jax.tree.map(np.array, step(keys, states, actions.astype(np.int32)))
