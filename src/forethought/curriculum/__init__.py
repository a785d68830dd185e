"""The curriculum: what to train on next, from what was seen and what was foreseen (Section 4 of the paper)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.curriculum.config import CurriculumConfig
    from forethought.curriculum.curriculum import Curriculum
    from forethought.curriculum.episodes import latest_per_environment
    from forethought.curriculum.methods import METHODS, Method

_HOME = {
    "Curriculum": "forethought.curriculum.curriculum",
    "CurriculumConfig": "forethought.curriculum.config",
    "METHODS": "forethought.curriculum.methods",
    "Method": "forethought.curriculum.methods",
    "latest_per_environment": "forethought.curriculum.episodes",
}

__all__ = ["METHODS", "Curriculum", "CurriculumConfig", "Method", "latest_per_environment"]


def __getattr__(name: str) -> Any:
    """Load the public names when first used; settings and the table of methods need no NumPy."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'forethought.curriculum' has no attribute {name!r}")
