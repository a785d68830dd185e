"""The rules of Craftax 1.6.1 in C++, exact to the bit, for NumPy (here) and JAX (`craftax_native.ffi`)."""

from craftax_native import _core
from craftax_native._core import (
    assignment,
    begin,
    check,
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
from craftax_native.games import Games, from_envstate, new_observations, to_envstate

__version__ = "0.1.0"

HAS_FFI: bool = hasattr(_core, "ffi_targets")
"""Whether `craftax_native.ffi` is there; it takes jaxlib when the package is built."""

__all__ = [
    "HAS_FFI",
    "Games",
    "assignment",
    "begin",
    "check",
    "counts",
    "describe",
    "enqueue",
    "export_all",
    "export_env",
    "from_envstate",
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
    "to_envstate",
]
