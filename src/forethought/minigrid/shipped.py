"""What ships with the missions: the tasks, both graphs, and the judging they come from. Loads no Gymnasium."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.tasks import TaskSet

if TYPE_CHECKING:
    from forethought.judging.prompts import Prompts

DATA = Path(str(files("forethought.minigrid") / "data"))
"""The folder of the package's data files."""

DOMAIN_NAME = "BabyAI missions in three MiniGrid rooms"


def tasks() -> TaskSet:
    """The 24 missions, from short to long, with uniform weights."""
    return TaskSet.load(DATA / "missions.json")


def connectivity() -> LearningConnectivity:
    """The judged learning-connectivity graph."""
    return LearningConnectivity.load(DATA / "connectivity.json")


def evidence() -> FeasibilityEvidence:
    """The judged feasibility-evidence graph."""
    return FeasibilityEvidence.load(DATA / "evidence.json")


def prompts(kind: str) -> "Prompts":
    """What the judge was told: the template for any domain, with the contexts of this one.

    Args:
        kind: `learning_connectivity` or `feasibility_evidence`.
    """
    from forethought.judging.prompts import Prompts, default_template, read_text

    environment, goals, learner = (
        read_text(DATA / "prompts" / f"{name}.md") for name in ("environment", "goal_suite", "learner")
    )
    return Prompts(kind, default_template(kind), environment, goals, learner, DOMAIN_NAME)
