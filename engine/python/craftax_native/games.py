"""Games of Craftax in NumPy: made from keys, stepped together, exchanged with Craftax's own states."""

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftax_native import _core


class Games:
    """Many games that step together.

    Given the same keys and actions they are those that Craftax 1.6.1, compiled by JAX for x86-64, plays. Finished
    games go on as Craftax's do; `reset` starts new ones.

    >>> import numpy as np
    >>> games = Games(2)
    >>> games.reset(np.array([[0, 1], [0, 2]], np.uint32))
    >>> reward, done = games.step(np.array([5, 0], np.int32))
    >>> done
    array([False, False])

    Args:
        num_envs: How many.
        max_timesteps: Steps after which a game is done.
        threads: Threads that share the work; by default one per core that the process may use. Results do not
            depend on it.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, num_envs: int, *, max_timesteps: int = 100_000, threads: int | None = None) -> None:
        self.state: NDArray[np.uint8] = _core.new_state(num_envs, episode_limit=max_timesteps)
        """All that there is to know of the games: bytes that may be copied and kept."""
        self.num_envs = num_envs
        self.max_timesteps = max_timesteps
        self.threads = len(os.sched_getaffinity(0)) if threads is None else threads
        self._reward, self._done = np.zeros(num_envs, np.float32), np.zeros(num_envs, bool)
        self._cells, self._features = new_observations(num_envs)

    def reset(self, keys: NDArray[np.uint32]) -> None:
        """Start every game in the world that Craftax generates from its key (uint32[env, 2])."""
        _core.generate(self.state, keys, self.threads)

    def step(
        self, actions: NDArray[np.int32], keys: NDArray[np.uint32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool]]:
        """Advance every game by one step.

        Args:
            actions: int32[env], from 0 to 42.
            keys: uint32[env, 2], the random keys of the step; by default each game's `state_rng`.

        Returns:
            Rewards and whether games are done, in arrays that the next step writes to.
        """
        _core.step_games(self.state, actions, keys, self._reward, self._done, None, self.threads)
        return self._reward, self._done

    def observe(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """What the agents see: cells uint8[env, 9, 11, 8] and features float32[env, 51], written to anew each time."""
        _core.observe(self.state, self._cells, self._features)
        return self._cells, self._features

    def export_states(self) -> dict[str, NDArray[Any]]:
        """All games as the fields of Craftax's `EnvState`, by name and stacked; see `to_envstate`."""
        return _core.export_all(self.state)

    def import_states(self, states: Mapping[str, NDArray[Any]]) -> None:
        """Replace all games by what `export_states` gave, or `from_envstate`.

        Raises:
            ValueError: A field is missing or out of place; games before the one with the fault have been replaced.
        """
        for name, values in states.items():
            if np.shape(values)[:1] != (self.num_envs,):
                raise ValueError(f"{name} has shape {np.shape(values)}, but must have {self.num_envs} rows")
        for env in range(self.num_envs):
            _core.import_env(self.state, env, {name: values[env] for name, values in states.items()})

    def save(self) -> bytes:
        """The games as bytes for `load`, on any machine with the same version of this package."""
        return self.state.tobytes()

    def load(self, saved: bytes) -> None:
        """Go on with saved games.

        Raises:
            ValueError: The bytes are no games, are damaged, or are not as many; nothing has changed then.
        """
        state = np.empty_like(self.state)
        if len(saved) != state.size:
            raise ValueError(f"{len(saved)} bytes given, but {self.num_envs} games take {state.size}")
        state[:] = np.frombuffer(saved, np.uint8)
        _core.check(state)
        self.state[:] = state


def new_observations(num_envs: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Arrays for what is seen: cells uint8[env, 9, 11, 8] and features float32[env, 51]."""
    return np.zeros((num_envs, 9, 11, 8), np.uint8), np.zeros((num_envs, 51), np.float32)


def to_envstate(fields: Mapping[str, Any]) -> Any:
    """Fields by name, of one game or of many, as Craftax's `EnvState` (needs the package craftax)."""
    from craftax.craftax.craftax_state import EnvState, Inventory, Mobs

    parts: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        section, dot, field = name.partition(".")
        if dot:
            nested.setdefault(section, {})[field] = value
        else:
            parts[name] = value
    for section, values in nested.items():
        parts[section] = (Inventory if section == "inventory" else Mobs)(**values)
    return EnvState(**parts)


def from_envstate(state: Any) -> dict[str, NDArray[Any]]:
    """Craftax's `EnvState`, of one game or of many, as fields by name, in the types that the engine takes."""
    found: dict[str, NDArray[Any]] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if field.name == "fractal_noise_angles":
            continue
        if is_dataclass(value):
            found |= {f"{field.name}.{name}": part for name, part in from_envstate(value).items()}
        elif field.name == "state_rng":
            found[field.name] = _words(value)
        else:
            found[field.name] = _array(value)
    return found


def _words(key: Any) -> NDArray[np.uint32]:
    """Random keys, of JAX's new style or its old one, as words."""
    if "key<" in str(getattr(key, "dtype", "")):
        import jax

        key = jax.random.key_data(key)
    return np.ascontiguousarray(key, np.uint32)


def _array(value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    kind = {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
    return np.asarray(array, kind, order="C")
