"""Holds the engine against recorded games: every field of every environment after every step.

    python -m conformance.compare games.npz

Position, type and health of an empty slot of creatures or projectiles are no part of the game and are left out; its
cooldown is compared, as it outlives the creature.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from .fields import KINDS, SLOTS, Fields, one
from .names import ACTIONS
from .recording import Recording


class Games(Protocol):
    """Games that can be held against a recording."""

    def load(self, env: int, fields: Fields) -> None:
        """Put one environment into a state."""
        ...

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step all environments; rewards and whether games ended."""
        ...

    def states(self) -> Fields:
        """The states of all environments."""
        ...


class Mismatch(NamedTuple):
    """Where games differ."""

    place: str
    env: int
    step: int
    action: int
    field: str
    index: tuple[int, ...]
    expected: object
    actual: object

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return (
            f"{self.place}: environment {self.env}, step {self.step}, action {ACTIONS[self.action]}: "
            f"{self.field}{where} is {self.actual!r}, but in the game {self.expected!r}"
        )


class Engine:
    """The native engine.

    Args:
        num_envs: The number of environments.
        max_timesteps: The game's limit.
        threads: How many threads step them.
    """

    def __init__(self, num_envs: int, max_timesteps: int, threads: int = 1) -> None:
        from craftax_native import _core

        self._core = _core
        self._threads = threads
        self._state = _core.new_state(num_envs, episode_limit=max_timesteps)
        self._reward = np.zeros(num_envs, np.float32)
        self._done = np.zeros(num_envs, bool)
        self._fields = {name: np.zeros((num_envs, *kind.shape), kind.dtype) for name, kind in KINDS.items()}

    def load(self, env: int, fields: Fields) -> None:
        """Put one environment into a state."""
        self._core.import_env(self._state, env, fields)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step all environments; rewards and whether games ended."""
        self._core.step_games(self._state, actions, None, self._reward, self._done, threads=self._threads)
        return self._reward, self._done

    def states(self) -> Fields:
        """The states of all environments; the arrays are overwritten by the next call."""
        if hasattr(self._core, "export_all"):
            self._core.export_all(self._state, self._fields)
        else:
            for env in range(len(self._done)):
                for name, value in self._core.export_env(self._state, env).items():
                    self._fields[name][env] = value
        return self._fields


def mismatches(recording: Recording, games: Games, steps: int | None = None, every: int = 1) -> Iterator[Mismatch]:
    """Play recorded games again, and yield the first field that differs of each environment that comes to differ.

    An environment that differs is put right after it was reported, and is reported again should it differ once more.

    Args:
        recording: The games.
        games: What is held against them.
        steps: How many steps to play; by default all.
        every: Compare states only after every so many steps, rewards and ends after each.
    """
    for env in range(recording.num_envs):
        games.load(env, one(recording.first, env))
    for step in recording:
        if steps is not None and step.number >= steps:
            return
        for env in step.renewed.tolist():
            games.load(env, one(step.before, env))
        reward, done = games.step(step.actions)
        expected, actual = {"reward": step.reward, "done": step.done}, {"reward": reward, "done": done}
        if (step.number + 1) % every == 0:
            expected, actual = expected | step.after, actual | games.states()
        wrong: dict[int, Mismatch] = {}
        for field in expected:
            for env, index in _differences(field, expected, actual):
                if env not in wrong:
                    values = (expected[field][env][index].item(), actual[field][env][index].item())
                    action = int(step.actions[env])
                    wrong[env] = Mismatch(recording.places[env], env, step.number, action, field, index, *values)
        for env in sorted(wrong):
            yield wrong[env]
            games.load(env, one(step.after, env))


def different(expected: Fields, actual: Fields) -> list[tuple[str, int]]:
    """The fields that differ, and of which environments."""
    return [(field, env) for field in expected for env, _ in _differences(field, expected, actual)]


def _differences(field: str, expected: Fields, actual: Fields) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The first index that differs of each environment."""
    left, right = expected[field], actual[field]
    if np.array_equal(left, right):
        return
    different = left != right
    mobs, _, part = field.partition(".")
    if mobs in SLOTS and part in ("position", "type_id", "health"):
        alive = expected[f"{mobs}.mask"]
        different &= alive[..., None] if part == "position" else alive
    for env in np.flatnonzero(different.reshape(len(different), -1).any(axis=1)):
        where = np.argwhere(different[env])[0] if different.ndim > 1 else ()
        yield int(env), tuple(int(i) for i in where)


def main() -> None:
    """Compare with a file, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--show", type=int, default=20, help="mismatches after which to stop")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    recording = Recording.load(args.path)
    engine = Engine(recording.num_envs, recording.max_timesteps, args.threads)
    started, shown = time.monotonic(), 0
    for mismatch in mismatches(recording, engine, args.steps):
        print(mismatch)
        shown += 1
        if shown == args.show:
            raise SystemExit(f"stopped at {shown} mismatches")
    if shown:
        raise SystemExit(f"{shown} mismatches")
    seconds = time.monotonic() - started
    steps = len(recording) if args.steps is None else min(args.steps, len(recording))
    print(f"equal: {recording.num_envs} environments, {steps} steps, {seconds:.1f} s")


if __name__ == "__main__":
    main()
