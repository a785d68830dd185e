"""What can play the benchmark here: the fast engine, or JAX alone. Loads neither until one is asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forethought.craftax.own_goals import Goal, engine_cannot_judge

if TYPE_CHECKING:
    from forethought.environment import BatchedEnvironment


def pick_backend(wanted: str, goal_ids: Sequence[str] = (), own_goals: Sequence[Goal] = ()) -> str:
    """Decide what plays some goals: `engine` or `jax`.

    Args:
        wanted: `engine`, `jax`, or `auto` for the engine wherever it can play them.
        goal_ids: The goals to play; none for all.
        own_goals: Goals besides the benchmark's.

    Raises:
        ValueError: the engine was asked for and cannot play them, or there is no such backend.
    """
    if wanted not in ("auto", "engine", "jax"):
        raise ValueError(f"backend is {wanted!r}; allowed are auto, engine and jax")
    fault = None if wanted == "jax" else engine_fault() or engine_cannot_judge(goal_ids, own_goals)
    if fault and wanted == "engine":
        raise ValueError(f"backend is 'engine', but {fault}; allowed here are auto and jax")
    return "jax" if fault or wanted == "jax" else "engine"


def make_environment(
    backend: str, num_envs: int, goal_ids: Sequence[str] = (), own_goals: Sequence[Goal] = (), **sizes: Any
) -> "BatchedEnvironment":
    """The benchmark's environment on a backend that `pick_backend` gave; `sizes` are the environment's."""
    if backend == "engine":
        from forethought.craftax.engine import EngineEnvironment

        return EngineEnvironment(num_envs, goal_ids, own_goals=own_goals, **sizes)
    from forethought.craftax.environment import CraftaxEnvironment

    return CraftaxEnvironment(num_envs, goal_ids, own_goals=own_goals, **sizes)


def engine_fault() -> str | None:
    """Why the fast engine cannot be used, and what to do about it; None if it can."""
    how = "pip install ./engine in forethought's folder (it needs a C++ compiler)"
    try:
        import craftax_native
    except ModuleNotFoundError:
        return f"the fast engine is not installed; {how}"
    except ImportError as error:
        return f"the fast engine does not load ({error}); {how}"
    return None if craftax_native.HAS_FFI else f"the fast engine was built without jaxlib; {how}"
