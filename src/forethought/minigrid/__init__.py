"""BabyAI missions in three MiniGrid rooms: 24 textual tasks, the environment, judged graphs. A model for your own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.minigrid.environment import MissionEnv
    from forethought.minigrid.observation import FlatObservation
    from forethought.minigrid.shipped import connectivity, evidence, prompts, tasks

__all__ = ["FlatObservation", "MissionEnv", "connectivity", "evidence", "prompts", "tasks"]

_MODULES = {"MissionEnv": "environment", "FlatObservation": "observation"}


def __getattr__(name: str) -> Any:
    """Load the public names when first used; tasks and graphs need neither Gymnasium nor MiniGrid."""
    if name in __all__:
        try:
            return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'shipped')}"), name)
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if library not in ("gymnasium", "minigrid"):
                raise
            raise ModuleNotFoundError(f"the missions need {library}: pip install 'forethought[minigrid]'") from error
    raise AttributeError(f"module 'forethought.minigrid' has no attribute {name!r}")
