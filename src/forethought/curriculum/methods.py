"""The methods as data: which score leads, and which components join it (paper, Appendix D; others as cited)."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    score: Literal[
        "uniform", "target", "intermediate", "progress", "learnability", "replay", "mastering", "best_change"
    ]
    """What the primary share of the sampling follows (see `primary`); `uniform` and `target` take all of it."""
    downstream: bool = False
    """Progress and feasibility on a task also count for what the task may unlock (needs connectivity)."""
    feasibility: bool = False
    """Part of the exploration follows feasibility (needs feasibility evidence)."""
    permuted: bool = False
    """The connectivity's task labels are shuffled once, as a control."""
    prerequisites: bool = False
    """The connectivity says which tasks come before which (needs connectivity)."""
    interestingness: bool = False
    """What mastered tasks have made boring is masked (needs interestingness)."""

    @property
    def adaptive(self) -> bool:
        """Whether the method depends on what is observed, and so starts with a warm-up."""
        return self.score not in ("uniform", "target")


METHODS: dict[str, Method] = {
    "unif": Method("uniform"),
    "target": Method("target"),
    "i-diff": Method("intermediate"),
    "alp": Method("progress"),
    "alp+d": Method("progress", downstream=True),
    "alp+f": Method("progress", feasibility=True),
    "alp+d+f": Method("progress", downstream=True, feasibility=True),
    "perm": Method("progress", downstream=True, feasibility=True, permuted=True),
    "learnability": Method("learnability"),
    "plr": Method("replay"),
    "mastering-rate": Method("mastering", prerequisites=True),
    "thompson": Method("best_change"),
    "omni": Method("progress", interestingness=True),
}
"""Name -> method. Up to `perm`: paper, Section 4.3 and Appendix D. Then, for comparison, after Tzannetos et al. 2023
and Rutherford et al. 2024, Jiang et al. 2021, Willems et al. 2020, Matiisen et al. 2017 and Zhang et al. 2023, each
under the same rules as the others: the same estimates, warm-up, exploration and importance weights."""


def resolve(
    name: str | None, *, connectivity: bool, feasibility: bool, interestingness: bool = False
) -> tuple[str, Method]:
    """The method of a name, or the fullest one that the given graphs allow if the name is None.

    Args:
        name: a key of `METHODS`, or None for one of the ALP methods.
        connectivity: whether a learning-connectivity graph is at hand.
        feasibility: whether feasibility evidence is at hand.
        interestingness: whether an interestingness graph is at hand.

    Raises:
        ValueError: if the name is unknown, or its method needs a graph that is not at hand.
    """
    if name is None:
        name = "alp" + "+d" * connectivity + "+f" * feasibility
    if name not in METHODS:
        raise ValueError(f"method is {name!r}; allowed: {', '.join(METHODS)}")
    method = METHODS[name]
    missing = [
        graph
        for graph, needed, given in (
            ("connectivity", method.downstream or method.prerequisites, connectivity),
            ("feasibility", method.feasibility, feasibility),
            ("interestingness", method.interestingness, interestingness),
        )
        if needed and not given
    ]
    if missing:
        raise ValueError(f"method {name!r} needs the graph {' and '.join(missing)}, which is not given")
    return name, method
