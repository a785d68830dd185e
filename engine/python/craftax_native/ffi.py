"""The engine inside JAX programs: functions of arrays that may be compiled with `jax.jit`.

A state is one uint8 array, which `step` changes in place where the caller gives it up (donation, a loop's carry) and
copies otherwise.

>>> import jax
>>> from craftax_native import ffi
>>> step = jax.jit(ffi.step, static_argnames="threads", donate_argnums=0)
"""

from typing import Any, NamedTuple

import numpy as np

from craftax_native import _core

if not hasattr(_core, "ffi_targets"):
    raise ImportError(
        "craftax_native was built without jaxlib and serves NumPy only; build it again where jaxlib is installed: "
        "pip install --no-build-isolation --force-reinstall ./engine"
    )

import jax
import jax.numpy as jnp

for _name, _target in _core.ffi_targets.items():
    jax.ffi.register_ffi_target(f"craftax_native_{_name}", _target, platform="cpu")

CELLS = (9, 11, 8)
FEATURES = 51
COUNTS = ("steps", "episodes", "successes", "successes_at_start", "worlds_used", "worlds_reused")


class Step(NamedTuple):
    """What a step gives; arrays have one row per environment."""

    state: jax.Array
    """uint8, one axis."""
    cells: jax.Array
    """uint8[env, 9, 11, 8]: block, item, five creature ids, visible; of the next episode where one has ended."""
    features: jax.Array
    """float32[env, 51]."""
    success: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class Assignment(NamedTuple):
    """The episode that each environment is in."""

    goal: jax.Array
    """int32[env]."""
    key: jax.Array
    """uint32[env, 2]."""
    step: jax.Array
    """int32[env], steps taken so far."""
    active: jax.Array
    """bool[env]."""


def step(state: jax.Array, actions: jax.Array, threads: int = 1) -> Step:
    """Advance every environment of training or evaluation by one step.

    Args:
        state: uint8 array from `craftax_native.new_state`, started with `reset` or `begin`.
        actions: int32[env], from 0 to 42.
        threads: Threads that share the work; the result does not depend on it.

    Raises:
        ValueError: An array has another type or other axes.
        jax.errors.JaxRuntimeError: when the program runs: the state is none of this engine's, or an action is out of
            range. Nothing has been changed then.
    """
    _require("state", state, jnp.uint8, 1)
    _require("actions", actions, jnp.int32, 1)
    (n,) = actions.shape
    shapes = [
        _result(state, state.shape, jnp.uint8),
        _result(state, (n, *CELLS), jnp.uint8),
        _result(state, (n, FEATURES), jnp.float32),
        *[_result(state, (n,), jnp.bool)] * 3,
    ]
    call = jax.ffi.ffi_call("craftax_native_step", shapes, input_output_aliases={0: 0})
    return Step(*call(state, actions, threads=np.int32(threads)))


def enqueue(state: jax.Array, keys: jax.Array, goals: jax.Array) -> jax.Array:
    """Append episodes to the queue of an evaluation: keys uint32[episode, 2] and goal numbers int32[episode].

    Raises:
        ValueError: An array has another type or other axes.
        jax.errors.JaxRuntimeError: when the program runs: the queue has no room, the state is not one of evaluation,
            or a goal number is out of range. Nothing has been changed then.
    """
    _require("state", state, jnp.uint8, 1)
    _require("keys", keys, jnp.uint32, 2)
    _require("goals", goals, jnp.int32, 1)
    shape = _result(state, state.shape, jnp.uint8)
    return jax.ffi.ffi_call("craftax_native_enqueue", shape, input_output_aliases={0: 0})(state, keys, goals)


def assignment(state: jax.Array, num_envs: int) -> Assignment:
    """The episode that each of `num_envs` environments is in."""
    _require("state", state, jnp.uint8, 1)
    shapes = [
        _result(state, (num_envs,), jnp.int32),
        _result(state, (num_envs, 2), jnp.uint32),
        _result(state, (num_envs,), jnp.int32),
        _result(state, (num_envs,), jnp.bool),
    ]
    return Assignment(*jax.ffi.ffi_call("craftax_native_assignment", shapes)(state))


def counts(state: jax.Array) -> dict[str, jax.Array]:
    """What has happened since the last `reset` or `begin`, as float32 numbers by name."""
    _require("state", state, jnp.uint8, 1)
    shape = _result(state, (len(COUNTS),), jnp.float32)
    values = jax.ffi.ffi_call("craftax_native_counts", shape)(state)
    return {name: values[index] for index, name in enumerate(COUNTS)}


def _require(name: str, array: Any, dtype: Any, axes: int) -> None:
    if array.dtype != dtype or array.ndim != axes or array.shape[0] == 0:
        raise ValueError(
            f"{name} is {array.dtype}{list(array.shape)}, but must be {jnp.dtype(dtype)} of {axes} axes, and not empty"
        )


def _result(state: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    """The type of a result, which inside `jax.shard_map` differs from device to device as the state does."""
    return jax.eval_shape(lambda bytes: jnp.broadcast_to(bytes[0].astype(dtype), shape), state)
