"""Craftax 1.6.1 itself, compiled and batched over environments: what the engine has to equal.

Compiling takes a minute or two, so there is one program for making worlds and one for stepping, each for one number
of environments; JAX's persistent cache keeps both between runs.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax.craftax_state import EnvParams, EnvState, Inventory, Mobs, StaticEnvParams
from craftax.craftax.game_logic import craftax_step, is_game_over
from craftax.craftax.world_gen.world_gen import generate_world

from .fields import KINDS, Fields

STATIC = StaticEnvParams()
WORLDS_AT_ONCE = 32


def make_worlds(keys: np.ndarray) -> Fields:
    """Worlds as the game's own generator makes them, one for each raw key of uint32[n, 2]."""
    parts = []
    for first in range(0, len(keys), WORLDS_AT_ONCE):
        index = np.minimum(np.arange(first, first + WORLDS_AT_ONCE), len(keys) - 1)
        made = flatten(_generator()(jnp.asarray(keys[index])))
        parts.append({name: value[: len(keys) - first] for name, value in made.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in KINDS}


def step(state: EnvState, actions: np.ndarray, max_timesteps: int) -> tuple[EnvState, jax.Array, jax.Array]:
    """One step of every environment with the random key in its state: next states, rewards, and whether games ended.

    Uses up `state`. Nothing restarts: a game that ended goes on, as the game's own step has it.
    """
    return _stepper()(state, jnp.asarray(actions, jnp.int32), jnp.asarray(max_timesteps, jnp.int32))


def flatten(state: EnvState) -> Fields:
    """The fields of a state as NumPy arrays; on a CPU they are views and cost nothing."""
    fields = {}
    for name in KINDS:
        value = state
        for part in name.split("."):
            value = getattr(value, part)
        fields[name] = np.asarray(value)
    return fields


def unflatten(fields: Fields) -> EnvState:
    """The state with these fields."""
    own = {name: jnp.asarray(fields[name]) for name in KINDS if "." not in name}
    parts: dict[str, dict[str, jax.Array]] = {}
    for name in KINDS:
        if "." in name:
            part, field = name.split(".")
            parts.setdefault(part, {})[field] = jnp.asarray(fields[name])
    kinds = {part: Inventory if part == "inventory" else Mobs for part in parts}
    return EnvState(**own, **{part: kinds[part](**values) for part, values in parts.items()})


@functools.cache
def _generator() -> Callable[[jax.Array], EnvState]:
    return jax.jit(jax.vmap(lambda key: generate_world(key, EnvParams(), STATIC)))


@functools.cache
def _stepper() -> Callable[[EnvState, jax.Array, jax.Array], tuple[EnvState, jax.Array, jax.Array]]:
    def one(state: EnvState, action: jax.Array, max_timesteps: jax.Array) -> tuple[EnvState, jax.Array, jax.Array]:
        params = EnvParams(max_timesteps=max_timesteps)  # type: ignore[arg-type]
        after, reward = craftax_step(state.state_rng, state, action, params, STATIC)
        # Without weak types the result is an argument of the same program.
        after = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), after)
        return after, reward, is_game_over(after, params, STATIC)

    return jax.jit(jax.vmap(one, in_axes=(0, 0, None)), donate_argnums=0)
