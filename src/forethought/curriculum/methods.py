"""The methods of Appendix D as data: which score leads, and which components join it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    score: Literal["uniform", "target", "intermediate", "progress"]
    """What the primary share of the sampling follows; `uniform` and `target` take all of it."""
    downstream: bool = False
    """Progress and feasibility on a task also count for what the task may unlock (needs connectivity)."""
    feasibility: bool = False
    """Part of the exploration follows feasibility (needs feasibility evidence)."""
    permuted: bool = False
    """The connectivity's task labels are shuffled once, as a control."""

    @property
    def adaptive(self) -> bool:
        """Whether the method depends on what is observed, and so starts with a warm-up."""
        return self.score in ("intermediate", "progress")


METHODS: dict[str, Method] = {
    "unif": Method("uniform"),
    "target": Method("target"),
    "i-diff": Method("intermediate"),
    "alp": Method("progress"),
    "alp+d": Method("progress", downstream=True),
    "alp+f": Method("progress", feasibility=True),
    "alp+d+f": Method("progress", downstream=True, feasibility=True),
    "perm": Method("progress", downstream=True, feasibility=True, permuted=True),
}
"""Name -> method (paper, Section 4.3 and Appendix D)."""


def resolve(name: str | None, *, connectivity: bool, feasibility: bool) -> tuple[str, Method]:
    """The method of a name, or the fullest one that the given graphs allow if the name is None.

    Args:
        name: a key of `METHODS`, or None.
        connectivity: whether a learning-connectivity graph is at hand.
        feasibility: whether feasibility evidence is at hand.

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
            ("connectivity", method.downstream, connectivity),
            ("feasibility", method.feasibility, feasibility),
        )
        if needed and not given
    ]
    if missing:
        raise ValueError(f"method {name!r} needs the graph {' and '.join(missing)}, which is not given")
    return name, method
