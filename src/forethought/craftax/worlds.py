"""Craftax worlds made ahead of their use, and the shelf that keeps them until an environment takes one."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax.craftax_state import EnvParams, EnvState, StaticEnvParams
from craftax.craftax.world_gen.world_gen import generate_world
from jaxtyping import Array, Bool, Int, Key

from forethought.craftax.judge import Judge

STATIC = StaticEnvParams()
"""Sizes of the game's worlds; fixed by the benchmark."""


class Start(NamedTuple):
    """Where an episode starts; arrays carry a leading axis of episodes."""

    world: EnvState
    key: Key[Array, " episode"]
    """The episode's key; the world comes from `jax.random.fold_in(key, 0)`."""
    goal: Int[Array, " episode"]
    holds: Bool[Array, "episode goal"]
    """Which goals hold before any step."""


class WorldMaker:
    """Makes worlds in batches of one size, so that a single program serves any number of them.

    Args:
        params: The game's parameters.
        judge: Tells which goals a step reaches; of one that stands still, those that hold.
        batch: Worlds made at once.
    """

    def __init__(self, params: EnvParams, judge: Judge, batch: int) -> None:
        self._batch = batch
        self._generate = jax.jit(jax.vmap(lambda key: _start(key, params, judge)))
        self._shelve = jax.jit(_shelve, donate_argnums=0)
        self._empty = jax.jit(self._blank, static_argnums=0)

    def empty(self, slots: int) -> Start:
        """A shelf with room for this many episodes."""
        return self._empty(slots)

    def add(self, shelf: Start, keys: Key[Array, " episode"], goals: Int[Array, " episode"], first: int) -> Start:
        """Put the starts of new episodes on the shelf, from slot `first` on and round the end. Uses up `shelf`."""
        count = keys.shape[0]
        for begin in range(0, count, self._batch):
            index = np.minimum(np.arange(begin, begin + self._batch), count - 1)
            starts = self._generate(keys[index])._replace(goal=goals[index])
            shelf = self._shelve(shelf, starts, first + begin, min(self._batch, count - begin))
        return shelf

    def _blank(self, slots: int) -> Start:
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 1))
        shapes = jax.eval_shape(self._generate, keys)
        return jax.tree.map(lambda leaf: _zeros((slots, *leaf.shape[1:]), leaf.dtype), shapes)


def copy_start(into: EnvState, slot: Int[Array, ""], shelf: Start, source: Int[Array, ""]) -> EnvState:
    """Copy one world from the shelf into one environment, leaving the others in place."""
    return _copy_row(into, slot, shelf.world, source)


def _start(key: Key[Array, ""], params: EnvParams, judge: Judge) -> Start:
    world = generate_world(jax.random.fold_in(key, 0), params, STATIC)
    world = jax.tree.map(jnp.asarray, world)
    return Start(world, key, jnp.zeros((), jnp.int32), judge(world, world))


def _shelve(shelf: Start, starts: Start, first: Int[Array, ""], count: Int[Array, ""]) -> Start:
    slots = shelf.goal.shape[0]
    return jax.lax.fori_loop(0, count, lambda i, s: _copy_row(s, (first + i) % slots, starts, i), shelf)


def _copy_row(into: Any, slot: Any, source: Any, row: Any) -> Any:
    def copy(a: Array, b: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(a, jax.lax.dynamic_index_in_dim(b, row), slot, 0)

    return jax.tree.map(copy, into, source)


def _zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return jnp.broadcast_to(jax.random.key(0), shape)
    return jnp.zeros(shape, dtype)
