"""The engine's rules built from sources given, without the rest of the engine: for tests of altered rules."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from .fields import KINDS, Fields

ENGINE = Path(__file__).resolve().parents[2]
_FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi", "-shared", "-fPIC")


def build(sources: Path, library: Path) -> None:
    """Compile the rules in a folder like `engine/src` to a shared library.

    Raises:
        RuntimeError: There is no compiler, or it refuses; with what it says.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise RuntimeError("no C++ compiler: set CXX, or install g++")
    games = Path(__file__).with_name("games.cpp")
    command = [compiler, *_FLAGS, "-I", str(sources), "-o", str(library), str(games)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{result.stderr}")


class RulesAlone:
    """Games that a library made by `build` plays; can be held against a recording.

    Args:
        library: The shared library; a process should not load two of the same path.
        num_envs: The number of environments.
        max_timesteps: The game's limit.
    """

    def __init__(self, library: Path, num_envs: int, max_timesteps: int) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.game_bytes.restype = ctypes.c_size_t
        self._bytes = int(self._library.game_bytes())
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
        self._library.load_game(game, len(KINDS), self._names, _addresses(arrays))

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step all environments; rewards and whether games ended."""
        games, chosen = ctypes.c_void_p(self._start), np.ascontiguousarray(actions, np.int32)
        ends = (_address(array) for array in (self._reward, self._done))
        self._library.step_games(games, self._num_envs, _address(chosen), self._max_timesteps, *ends)
        return self._reward, self._done

    def states(self) -> Fields:
        """The states of all environments; the arrays are overwritten by the next call."""
        arrays = _addresses([self._fields[name] for name in KINDS])
        self._library.save_games(ctypes.c_void_p(self._start), self._num_envs, len(KINDS), self._names, arrays)
        return self._fields


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _addresses(arrays: list[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
