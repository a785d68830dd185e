"""The engine's functions. Arrays are NumPy's, in C order, of exactly the type and shape said; they are used in place.

Every function raises TypeError or ValueError, in one line that names the argument, when one is not as it must be, and
has changed nothing then. `state` is what `new_state` makes (or a copy of its bytes). `threads`, from 1 to 1024, share
the work and change no result.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Bytes: TypeAlias = NDArray[np.uint8]
_Words: TypeAlias = NDArray[np.uint32]
_Integers: TypeAlias = NDArray[np.int32]
_Floats: TypeAlias = NDArray[np.float32]
_Flags: TypeAlias = NDArray[np.bool]

ffi_targets: dict[str, Any]
"""Addresses for XLA, by name; absent if built without jaxlib."""

def new_state(num_envs: int, goals: _Bytes | None = None, episode_limit: int = 4096, queue_capacity: int = 0) -> _Bytes:
    """Make a batch: uint8[bytes], at an address divisible by 64.

    Args:
        num_envs: Environments, from 1 to 2**24.
        goals: uint8[goal, 4], the goals that goal numbers refer to, as codes (see `core/goals.hpp`).
        episode_limit: Steps after which an episode ends.
        queue_capacity: Episodes that may wait in evaluation.
    """

def describe(state: _Bytes) -> dict[str, Any]:
    """Facts: mode ("games", "training" or "evaluation"), num_envs, num_goals, episode_limit, and of the queue."""

def check(state: _Bytes) -> None:
    """Look at every byte that could lead the engine astray; for bytes from outside. Takes about 0.1 ms a game."""

def generate(state: _Bytes, keys: _Words, threads: int = 1) -> None:
    """Start plain games in the worlds that Craftax generates from these keys, uint32[env, 2]."""

def step_games(
    state: _Bytes,
    actions: _Integers,
    keys: _Words | None,
    reward: _Floats,
    done: _Flags,
    reached: _Flags | None = None,
    threads: int = 1,
) -> None:
    """Step plain games, finished ones too.

    Args:
        state: The games.
        actions: int32[env], from 0 to 42.
        keys: uint32[env, 2], the steps' random keys; None for those that the games carry.
        reward: float32[env], written.
        done: bool[env], written.
        reached: bool[env, goal], written: the goals reached by this step.
        threads: Threads to use.
    """

def observe(state: _Bytes, cells: _Bytes, features: _Floats) -> None:
    """Write what the agents see: uint8[env, 9, 11, 8] and float32[env, 51]."""

def holds(state: _Bytes) -> _Flags:
    """Which goals hold without a step taken: bool[env, goal]."""

def reached(before: _Bytes, after: _Bytes, out: _Flags | None = None) -> _Flags:
    """Which goals a step between two states reaches: bool[env, goal]."""

def export_env(state: _Bytes, env: int) -> dict[str, NDArray[Any]]:
    """One game as the fields of Craftax's EnvState, nested ones with a dot ("inventory.wood"). Makes all floors."""

def export_all(state: _Bytes, out: dict[str, NDArray[Any]] | None = None) -> dict[str, NDArray[Any]]:
    """All games as `export_env` gives one, stacked; arrays of the right shape found in `out` are written in place."""

def import_env(state: _Bytes, env: int, fields: dict[str, NDArray[Any]]) -> None:
    """Replace one game by the fields that `export_env` names. Positions and types in empty creature slots are free."""

def reset(state: _Bytes, keys: _Words, goals: _Integers, cells: _Bytes, features: _Floats, threads: int = 1) -> None:
    """Start training: one episode in every environment, followed by others of the same goal.

    An episode's world comes from its key with 0 folded in, the next episode's key with 1.

    Args:
        state: The batch.
        keys: uint32[env, 2], the episodes' keys.
        goals: int32[env], goal numbers.
        cells: uint8[env, 9, 11, 8], written.
        features: float32[env, 51], written.
        threads: Threads to use.
    """

def begin(state: _Bytes, keys: _Words, goals: _Integers, cells: _Bytes, features: _Floats, threads: int = 1) -> None:
    """Start evaluation: one episode in every environment, followed by those from the queue, which is empty."""

def enqueue(state: _Bytes, keys: _Words, goals: _Integers) -> None:
    """Append episodes to the queue: keys uint32[episode, 2] and goal numbers int32[episode].

    Idle environments take them at the end of the next step, the one idle for longest first.
    """

def step(
    state: _Bytes,
    actions: _Integers,
    cells: _Bytes,
    features: _Floats,
    success: _Flags,
    terminated: _Flags,
    truncated: _Flags,
    threads: int = 1,
) -> None:
    """Step training or evaluation; what is seen of a finished episode is the start of the next."""

def assignment(state: _Bytes) -> tuple[_Integers, _Words, _Integers, _Flags]:
    """The episode that each environment is in: goal number, key, steps taken, and whether it is one at all."""

def counts(state: _Bytes) -> dict[str, int]:
    """Steps, episodes, successes, successes_at_start, worlds_used and worlds_reused since `reset` or `begin`."""
