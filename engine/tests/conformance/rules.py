"""The engine's rules built from sources given, without the rest of the engine: for tests of altered rules."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from .fields import KINDS, Fields

ENGINE = Path(__file__).resolve().parents[2]

_HERE = Path(__file__).parent
_FLAGS = (
    *("-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi", "-shared", "-fPIC"),
    "-fvisibility=hidden",  # or the tables of the library loaded first would serve them all
)
_NO_WORLDS = """#pragma once
#include "../state.hpp"
namespace craftax {
inline void generate_floor(State&, int) {}
}
"""


def copy_sources(target: Path) -> None:
    """Copy the engine's sources, but without what makes worlds, which takes longest to compile: games are loaded."""
    shutil.copytree(ENGINE / "src", target)
    (target / "core" / "world" / "world.hpp").write_text(_NO_WORLDS)


def build(part: str, sources: Path, library: Path) -> None:
    """Compile a part ("rules" or "exchange") to a shared library, with a copy of the sources.

    Raises:
        RuntimeError: There is no compiler, or it refuses; with what it says.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise RuntimeError("no C++ compiler: set CXX, or install g++")
    command = [compiler, *_FLAGS, "-I", str(sources), "-o", str(library), str(_HERE / f"{part}.cpp")]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{result.stderr}")


class RulesAlone:
    """Games that libraries made by `build` play; can be held against a recording.

    Args:
        rules: The library that steps games; a process should not load two of the same path.
        exchange: The library that loads and saves them.
        num_envs: The number of environments.
        max_timesteps: The game's limit.
    """

    def __init__(self, rules: Path, exchange: Path, num_envs: int, max_timesteps: int) -> None:
        self._rules = ctypes.CDLL(str(rules))
        self._exchange = ctypes.CDLL(str(exchange))
        self._exchange.game_bytes.restype = ctypes.c_size_t
        self._bytes = int(self._exchange.game_bytes())
        self._num_envs = num_envs
        self._max_timesteps = max_timesteps
        self._memory = np.zeros(num_envs * self._bytes + 64, np.uint8)
        self._start = self._memory.ctypes.data + -self._memory.ctypes.data % 64
        self._names = (ctypes.c_char_p * len(KINDS))(*(name.encode() for name in KINDS))
        self._fields = {name: np.zeros((num_envs, *kind.shape), kind.dtype) for name, kind in KINDS.items()}
        self._reward = np.zeros(num_envs, np.float32)
        self._done = np.zeros(num_envs, bool)

    def load(self, env: int, fields: Fields) -> None:
        """Put one environment into a state."""
        arrays = [np.ascontiguousarray(fields[name]) for name in KINDS]
        game = ctypes.c_void_p(self._start + env * self._bytes)
        self._exchange.load_game(game, len(KINDS), self._names, _addresses(arrays))

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step all environments; rewards and whether games ended."""
        games, chosen = ctypes.c_void_p(self._start), np.ascontiguousarray(actions, np.int32)
        ends = (_address(array) for array in (self._reward, self._done))
        self._rules.step_games(games, self._num_envs, _address(chosen), self._max_timesteps, *ends)
        return self._reward, self._done

    def states(self) -> Fields:
        """The states of all environments; the arrays are overwritten by the next call."""
        arrays = _addresses([self._fields[name] for name in KINDS])
        self._exchange.save_games(ctypes.c_void_p(self._start), self._num_envs, len(KINDS), self._names, arrays)
        return self._fields


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _addresses(arrays: list[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
