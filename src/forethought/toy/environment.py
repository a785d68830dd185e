"""The tiny domain as a batched goal environment.

A 5x5 grid with two cells of lava in its inner 3x3 cells, one tree, one stone and one gem. The agent walks and
collects what it steps on: wood at once, stone once it has wood, the gem once it has stone. Lava ends it all.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import Assignment, Observation, Outcome
from forethought.spec import CellTable, ObservationSpec
from forethought.toy.goals import GOAL_IDS

SIZE = 5
GROUND, LAVA, TREE, STONE, GEM = range(5)
_MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
"""Row and column steps of the five actions: stay, north, south, west, east."""


class World(NamedTuple):
    """One grid world; arrays may carry a leading axis of environments."""

    tiles: Int[Array, "*env 5 5"]
    position: Int[Array, "*env 2"]
    inventory: Bool[Array, "*env 3"]
    """Whether wood, stone and the gem have been collected."""


class ToyState(NamedTuple):
    """State of all environments, and the queue of waiting episodes."""

    world: World
    goal: Int[Array, " env"]
    key: Key[Array, " env"]
    step: Int[Array, " env"]
    active: Bool[Array, " env"]
    training: Bool[Array, ""]
    """Whether finished environments restart themselves instead of taking over queued episodes."""
    base_key: Key[Array, " env"]
    episode: Int[Array, " env"]
    queue_key: Key[Array, " slot"]
    queue_goal: Int[Array, " slot"]
    queue_head: Int[Array, ""]
    queue_tail: Int[Array, ""]
    finished: Int[Array, ""]


def generate(key: Key[Array, ""]) -> World:
    """Make the world of one episode.

    Args:
        key: The world's key, `jax.random.fold_in(episode_key, 0)`.
    """
    inner_key, rest_key = jax.random.split(key)
    inner = jnp.asarray([row * SIZE + column for row in range(1, 4) for column in range(1, 4)])
    lava = jax.random.permutation(inner_key, inner)[:2]
    order = jax.random.uniform(rest_key, (SIZE * SIZE,))
    corners = jnp.asarray([0, SIZE * SIZE - 1])
    order = order.at[lava].set(2.0).at[corners].set(2.0)
    free = jnp.argsort(order)
    tiles = jnp.zeros(SIZE * SIZE, jnp.int32)
    found = jnp.asarray([TREE, STONE, GEM], jnp.int32)
    tiles = tiles.at[lava].set(LAVA).at[free[:3]].set(found)
    position = jnp.stack(jnp.divmod(free[3], SIZE)).astype(jnp.int32)
    return World(tiles.reshape(SIZE, SIZE), position, jnp.zeros(3, bool))


def advance(world: World, action: Int[Array, ""]) -> World:
    """Take one step in one world."""
    moves = jnp.asarray(_MOVES, jnp.int32)
    position = jnp.clip(world.position + moves[action], 0, SIZE - 1)
    row, column = position[0], position[1]
    tile = world.tiles[row, column]
    needs = jnp.concatenate([jnp.ones(1, bool), world.inventory[:2]])
    collected = (tile == jnp.asarray([TREE, STONE, GEM])) & needs
    tiles = world.tiles.at[row, column].set(jnp.where(collected.any(), jnp.int32(GROUND), tile))
    return World(tiles, position, world.inventory | collected)


def successes(before: World, after: World) -> Bool[Array, " goal"]:
    """Which goals one transition reaches, in the order of the goal list."""
    row, column = after.position[0], after.position[1]
    north_west = (row == 0) & (column == 0)
    south_east = (row == SIZE - 1) & (column == SIZE - 1)
    wood, stone, gem = after.inventory[0], after.inventory[1], after.inventory[2]
    moved = (before.position != after.position).any()
    return jnp.stack(
        [moved, north_west, south_east, wood, stone, gem, north_west & wood, south_east & gem, in_lava(after)]
    )


def in_lava(world: World) -> Bool[Array, ""]:
    """Whether the agent stands in lava."""
    return world.tiles[world.position[0], world.position[1]] == LAVA


class ToyEnvironment:
    """The tiny domain; implements `forethought.environment.BatchedEnvironment`.

    Args:
        num_envs: Environments that step together, at least 1.
        goal_ids: The goals that goal numbers refer to; empty means all.
        episode_limit: Steps after which an episode ends.
        queue_capacity: Episodes that may wait in evaluation.

    Raises:
        ValueError: A number is below 1.
        KeyError: A goal is unknown.
    """

    def __init__(
        self, num_envs: int, goal_ids: Sequence[str] = (), episode_limit: int = 40, queue_capacity: int = 256
    ) -> None:
        for name, value in (
            ("num_envs", num_envs),
            ("episode_limit", episode_limit),
            ("queue_capacity", queue_capacity),
        ):
            if value < 1:
                raise ValueError(f"{name} is {value}, but must be at least 1")
        unknown = [name for name in goal_ids if name not in GOAL_IDS]
        if unknown:
            raise KeyError(f"unknown goals {unknown}; the tiny domain has {list(GOAL_IDS)}")
        self.num_envs = num_envs
        self.episode_limit = episode_limit
        self.queue_capacity = queue_capacity
        self.goal_ids = tuple(goal_ids) or GOAL_IDS
        self._goal_numbers = tuple(GOAL_IDS.index(name) for name in self.goal_ids)

    num_actions = len(_MOVES)
    noop_action: int | None = 0
    observation_spec = ObservationSpec(SIZE, SIZE, (CellTable("tile", 5), CellTable("agent", 2)), 4)

    def reset(self, key: Key[Array, ""], goals: Int[Array, " env"]) -> tuple[ToyState, Observation]:
        """Start every environment in a fresh world with the goal given, for training."""
        base = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(self.num_envs))
        keys = jax.vmap(jax.random.fold_in, (0, None))(base, 0)
        return self._start(base, keys, goals, training=True)

    def begin(self, keys: Key[Array, " env"], goals: Int[Array, " env"]) -> tuple[ToyState, Observation]:
        """Start one given episode in every environment, with an empty queue, for evaluation."""
        # A copy, since a buffer that occurs twice in a state cannot be donated.
        return self._start(jax.vmap(jax.random.fold_in, (0, None))(keys, 0), keys, goals, training=False)

    def enqueue(self, state: ToyState, keys: Key[Array, " episode"], goals: Int[Array, " episode"]) -> ToyState:
        """Append episodes to the queue; the caller sees to it that they fit."""
        slots = (state.queue_tail + jnp.arange(goals.shape[0])) % self.queue_capacity
        return state._replace(
            queue_key=state.queue_key.at[slots].set(keys),
            queue_goal=state.queue_goal.at[slots].set(goals.astype(jnp.int32)),
            queue_tail=state.queue_tail + goals.shape[0],
        )

    def step(self, state: ToyState, actions: Int[Array, " env"]) -> tuple[ToyState, Observation, Outcome]:
        """Advance every environment by one step and restart those that are done."""
        world = jax.vmap(advance)(state.world, actions)
        reached = jax.vmap(successes)(state.world, world)
        number = jnp.asarray(self._goal_numbers)[state.goal]
        success = jnp.take_along_axis(reached, number[:, None], axis=1)[:, 0]
        step = state.step + 1
        outcome = Outcome(
            success & state.active,
            jax.vmap(in_lava)(world) & state.active,
            (step >= self.episode_limit) & state.active,
        )
        done = outcome.done
        place = state.queue_head + jnp.cumsum(done, dtype=jnp.int32) - 1
        queued = done & ~state.training & (place < state.queue_tail)
        slot = place % self.queue_capacity
        restarts = done & (state.training | queued)
        episode = (state.episode + done).astype(jnp.int32)
        fresh_key = jax.vmap(jax.random.fold_in)(state.base_key, episode)
        key = jnp.where(queued, state.queue_key[slot], jnp.where(restarts, fresh_key, state.key))
        fresh = jax.vmap(lambda k: generate(jax.random.fold_in(k, 0)))(key)
        halted = ~state.active | (done & ~restarts)
        state = state._replace(
            world=_select(restarts, fresh, _select(halted, state.world, world)),
            goal=jnp.where(queued, state.queue_goal[slot], state.goal),
            key=key,
            step=jnp.where(restarts, 0, jnp.where(state.active, step, state.step)).astype(jnp.int32),
            active=state.active & (~done | restarts),
            episode=episode,
            queue_head=state.queue_head + queued.sum(dtype=jnp.int32),
            finished=state.finished + done.sum(dtype=jnp.int32),
        )
        return state, self._observe(state), outcome

    def assignment(self, state: ToyState) -> Assignment:
        """The episode that each environment is in."""
        return Assignment(state.goal, state.key, state.step, state.active)

    def metrics(self, state: ToyState) -> dict[str, Float[Array, ""]]:
        """Episodes finished since the last `reset` or `begin`."""
        return {"episodes_finished": state.finished.astype(jnp.float32)}

    def _start(
        self, base: Key[Array, " env"], keys: Key[Array, " env"], goals: Int[Array, " env"], *, training: bool
    ) -> tuple[ToyState, Observation]:
        state = ToyState(
            world=jax.vmap(lambda k: generate(jax.random.fold_in(k, 0)))(keys),
            goal=jnp.array(goals, jnp.int32),
            key=jnp.copy(keys),
            step=jnp.zeros(self.num_envs, jnp.int32),
            active=jnp.ones(self.num_envs, bool),
            training=jnp.asarray(training),
            base_key=base,
            episode=jnp.zeros(self.num_envs, jnp.int32),
            queue_key=jnp.broadcast_to(keys[0], (self.queue_capacity,)),
            queue_goal=jnp.zeros(self.queue_capacity, jnp.int32),
            queue_head=jnp.zeros((), jnp.int32),
            queue_tail=jnp.zeros((), jnp.int32),
            finished=jnp.zeros((), jnp.int32),
        )
        return state, self._observe(state)

    def _observe(self, state: ToyState) -> Observation:
        position = state.world.position
        rows, columns = jnp.arange(SIZE)[:, None], jnp.arange(SIZE)[None, :]
        here = (rows == position[:, 0, None, None]) & (columns == position[:, 1, None, None])
        cells = jnp.stack([state.world.tiles.astype(jnp.uint8), here.astype(jnp.uint8)], axis=-1)
        time = state.step[:, None] / self.episode_limit
        features = jnp.concatenate([state.world.inventory, time], axis=1, dtype=jnp.float32)
        return Observation(cells, features)


def _select(where: Bool[Array, " env"], new: World, old: World) -> World:
    """Take whole worlds from `new` where asked, else from `old`."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)
