"""What ships with the benchmark: the 256 goals, both learners' graphs, and goal embeddings. Loads no JAX."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.embeddings import Embeddings
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.tasks import TaskSet

if TYPE_CHECKING:
    from forethought.judging.prompts import Prompts

DATA = Path(str(files("forethought.craftax") / "data"))
"""The folder of the package's data files."""

LEARNERS = ("primitive", "subroutines")
"""The learner variants that have graphs: primitive actions only, or with subroutine calls (paper, Appendix C)."""


def goals() -> TaskSet:
    """The 256 goals in the order of the paper's Table 1, with uniform weights."""
    return TaskSet.load(DATA / "goals.json")


def connectivity(learner: str = "primitive") -> LearningConnectivity:
    """The shipped learning-connectivity graph for a learner variant."""
    return LearningConnectivity.load(graph_path("connectivity", learner))


def evidence(learner: str = "primitive") -> FeasibilityEvidence:
    """The shipped feasibility-evidence graph for a learner variant."""
    return FeasibilityEvidence.load(graph_path("evidence", learner))


def embeddings() -> Embeddings:
    """Vectors of the goal texts by all-MiniLM-L6-v2, 384 wide, of unit length."""
    return Embeddings.load(DATA / "embeddings.minilm.npz")


def prompts(kind: str, learner: str = "primitive") -> "Prompts":
    """What a model is told to judge the goals: the template for any domain, with the contexts of Craftax.

    Args:
        kind: `learning_connectivity`, `feasibility_evidence` or `interestingness`.
        learner: the learner variant.
    """
    from forethought.judging.prompts import Prompts, default_template, read_text

    if learner not in LEARNERS:
        raise ValueError(f"no context ships for the learner {learner!r}; there are {' and '.join(LEARNERS)}")
    environment, goals, own = (
        read_text(DATA / "prompts" / f"{name}.md") for name in ("environment", "goal_suite", f"learner_{learner}")
    )
    return Prompts(kind, default_template(kind), environment, goals, own, "Craftax")


def graph_path(kind: str, learner: str) -> Path:
    """The file of a shipped graph, by kind ("connectivity" or "evidence") and learner variant."""
    if learner not in LEARNERS:
        raise ValueError(f"no graphs ship for the learner {learner!r}; there are {' and '.join(LEARNERS)}")
    return DATA / f"{kind}.{learner}.json"
