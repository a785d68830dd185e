"""The rules of Craftax 1.6.1 in C++, exact to the bit, for NumPy (here) and JAX (`craftax_native.ffi`)."""

import numpy as np

from craftax_native import _core
from craftax_native._core import (
    assignment,
    begin,
    counts,
    describe,
    enqueue,
    export_all,
    export_env,
    generate,
    holds,
    import_env,
    new_state,
    observe,
    reached,
    reset,
    step,
    step_games,
)

__version__ = "0.1.0"

HAS_FFI: bool = hasattr(_core, "ffi_targets")
"""Whether `craftax_native.ffi` is there; it takes jaxlib when the package is built."""

__all__ = [
    "HAS_FFI",
    "assignment",
    "begin",
    "counts",
    "describe",
    "enqueue",
    "export_all",
    "export_env",
    "generate",
    "holds",
    "import_env",
    "new_observations",
    "new_state",
    "observe",
    "reached",
    "reset",
    "step",
    "step_games",
]


def new_observations(num_envs: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for what is seen: cells uint8[env, 9, 11, 8] and features float32[env, 51]."""
    return np.zeros((num_envs, 9, 11, 8), np.uint8), np.zeros((num_envs, 51), np.float32)
