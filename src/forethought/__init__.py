"""forethought: decide what a reinforcement-learning agent should train on next."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.benchmark import evaluate
    from forethought.curriculum import Curriculum, CurriculumConfig, latest_per_environment
    from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
    from forethought.policies import load_policy
    from forethought.tasks import Task, TaskSet

__version__ = "0.1.0"

__all__ = [
    "Curriculum",
    "CurriculumConfig",
    "FeasibilityEvidence",
    "Interestingness",
    "LearningConnectivity",
    "Task",
    "TaskSet",
    "evaluate",
    "latest_per_environment",
    "load_policy",
]

_HOME = {
    "Curriculum": "forethought.curriculum",
    "CurriculumConfig": "forethought.curriculum",
    "latest_per_environment": "forethought.curriculum",
    "FeasibilityEvidence": "forethought.graphs",
    "Interestingness": "forethought.graphs",
    "LearningConnectivity": "forethought.graphs",
    "evaluate": "forethought.benchmark",
    "load_policy": "forethought.policies",
    "Task": "forethought.tasks",
    "TaskSet": "forethought.tasks",
}


def __getattr__(name: str) -> Any:
    """Load the public names when first used, so that `import forethought` stays light."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'forethought' has no attribute {name!r}")
