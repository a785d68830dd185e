"""Games that were played, kept as the changes from step to step: every field of every state, exactly.

A recording needs no JAX to be read, so that the engine can be held against it in a process of its own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .fields import KINDS, Fields, copy


class Step(NamedTuple):
    """One step of all environments."""

    number: int
    before: Fields
    """The states it started from; renewed ones differ from those after the step before."""
    renewed: np.ndarray
    """The environments whose states were edited before this step."""
    actions: np.ndarray
    after: Fields
    reward: np.ndarray
    done: np.ndarray


class Changes(NamedTuple):
    """How one state of all environments differs from another: per field, where and what it becomes."""

    where: dict[str, np.ndarray]
    """Flat indices."""
    value: dict[str, np.ndarray]

    @classmethod
    def between(cls, old: Fields, new: Fields) -> "Changes":
        """Compares bit by bit, as -0 is not 0 and a NaN may stay one."""
        where, value = {}, {}
        for name in KINDS:
            flat_old, flat_new = old[name].reshape(-1), new[name].reshape(-1)
            bits = np.uint8 if flat_old.dtype == np.bool_ else np.uint32
            index = np.flatnonzero(flat_old.view(bits) != flat_new.view(bits))
            if len(index):
                where[name], value[name] = index.astype(np.int32), flat_new[index]
        return cls(where, value)

    def of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Where a field changes, and what it becomes there."""
        nothing = np.zeros(0, np.int32)
        return self.where.get(name, nothing), self.value.get(name, nothing.astype(KINDS[name].dtype))

    def apply(self, fields: Fields) -> None:
        """Make the changes in place."""
        for name, index in self.where.items():
            fields[name].reshape(-1)[index] = self.value[name]


class Recording:
    """Games of several environments.

    Attributes:
        places: What each environment plays, in words.
        first: The states at the beginning.
        actions: int32[steps, n].
        max_timesteps: The limit that `done` knows of.
        notes: Anything else that is known of the games, for JSON.
    """

    def __init__(self, places: list[str], first: Fields, max_timesteps: int) -> None:
        self.places = places
        self.first = copy(first)
        self.max_timesteps = max_timesteps
        self.notes: dict[str, object] = {}
        self._edits: dict[int, tuple[np.ndarray, Changes]] = {}
        self._steps: list[Changes] = []
        self._outcomes: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    @property
    def num_envs(self) -> int:
        """The number of environments."""
        return len(self.places)

    def __len__(self) -> int:
        return len(self._steps)

    def renew(self, envs: np.ndarray, old: Fields, new: Fields) -> None:
        """Note that states were edited before the next step."""
        self._edits[len(self)] = (np.asarray(envs, np.int32), Changes.between(old, new))

    def add(self, actions: np.ndarray, old: Fields, new: Fields, reward: np.ndarray, done: np.ndarray) -> Changes:
        """Append a step; returns how the new states differ from the old ones."""
        changes = Changes.between(old, new)
        self._steps.append(changes)
        self._outcomes.append((np.array(actions, np.int32), np.array(reward, np.float32), np.array(done, bool)))
        return changes

    def __iter__(self) -> Iterator[Step]:
        """The steps in order. The states given are overwritten when the next one is asked for."""
        before, after = copy(self.first), copy(self.first)
        nobody = np.zeros(0, np.int32)
        for number, changes in enumerate(self._steps):
            renewed = nobody
            if number in self._edits:
                renewed, edits = self._edits[number]
                edits.apply(before)
                edits.apply(after)
            changes.apply(after)
            actions, reward, done = self._outcomes[number]
            yield Step(number, before, renewed, actions, after, reward, done)
            changes.apply(before)

    def save(self, path: Path) -> None:
        """Write a file of NumPy arrays."""
        arrays = {f"first/{name}": value for name, value in self.first.items()}
        about = {"places": self.places, "max_timesteps": self.max_timesteps, "notes": self.notes}
        arrays["about"] = np.array(json.dumps(about))
        for part, column in zip(("actions", "reward", "done"), zip(*self._outcomes, strict=True), strict=True):
            arrays[part] = np.stack(column)
        arrays["edit_steps"] = np.array(sorted(self._edits), np.int32)
        edits = [self._edits[step] for step in sorted(self._edits)]
        _join(arrays, "edit_envs", [envs for envs, _ in edits], np.int32)
        for part, changes in (("edits", [change for _, change in edits]), ("steps", self._steps)):
            for name, kind in KINDS.items():
                _join(arrays, f"{part}/{name}/where", [change.where.get(name) for change in changes], np.int32)
                _join(arrays, f"{part}/{name}/value", [change.value.get(name) for change in changes], kind.dtype)
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        about = json.loads(str(arrays["about"]))
        recording = cls(about["places"], {name: arrays[f"first/{name}"] for name in KINDS}, about["max_timesteps"])
        recording.notes = about["notes"]
        recording._outcomes = list(zip(arrays["actions"], arrays["reward"], arrays["done"], strict=True))

        def changes(part: str) -> list[Changes]:
            where = {name: _split(arrays, f"{part}/{name}/where") for name in KINDS}
            value = {name: _split(arrays, f"{part}/{name}/value") for name in KINDS}
            length = len(next(iter(where.values())))
            return [
                Changes(
                    {name: parts[i] for name, parts in where.items() if len(parts[i])},
                    {name: parts[i] for name, parts in value.items() if len(parts[i])},
                )
                for i in range(length)
            ]

        recording._steps = changes("steps")
        envs = _split(arrays, "edit_envs")
        edits = zip(envs, changes("edits"), strict=True)
        recording._edits = dict(zip(arrays["edit_steps"].tolist(), edits, strict=True))
        return recording


def _join(arrays: dict[str, np.ndarray], name: str, parts: list, dtype: type) -> None:
    parts = [np.zeros(0, dtype) if part is None else part for part in parts]
    arrays[f"{name}#"] = np.array([len(part) for part in parts], np.int64)
    arrays[name] = np.concatenate([np.zeros(0, dtype), *parts])


def _split(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    lengths = arrays[f"{name}#"]
    return np.split(arrays[name], np.cumsum(lengths)[:-1]) if len(lengths) else []
