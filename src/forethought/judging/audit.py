"""An audit of a graph: can its judgments be trusted, and does its shape make sense for the tasks at hand?"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from forethought.graphs import FeasibilityEvidence, LearningConnectivity, Provenance
from forethought.judging.agreement import Agreement, agreements
from forethought.judging.structure import depth_from_scratch, find_cycles, reaches_weighted
from forethought.tasks import TaskSet


@dataclass(frozen=True)
class Audit:
    """What `audit` found; tasks are named by id."""

    kind: str
    """"learning_connectivity" or "feasibility_evidence"."""
    ids: tuple[str, ...]
    """The tasks, in the order of the arrays below."""
    provenance: Provenance
    """Where the judgments come from."""
    repetitions: int | None
    """R; None if the graph holds no judgments, only weights."""
    edges: int
    """Edges with a weight above 0, from-scratch ones not counted."""
    density: float
    """Edges among the pairs that there are, in [0, 1]."""
    edges_by_weight: tuple[tuple[float, int], ...]
    """How many edges have each weight, the heaviest first; evidence, whose weights are many, by tenths."""
    asked: float
    """Share of the ordered pairs about which a model was asked at least once, in [0, 1]."""
    agreement: dict[str, Agreement]
    """By kind of edge; empty without repeated judgments."""
    in_degree: Int[np.ndarray, " task"]
    """Edges into each task."""
    out_degree: Int[np.ndarray, " task"]
    """Edges out of each task."""
    in_weight: Float[np.ndarray, " task"]
    """Weight of the edges into each task."""
    out_weight: Float[np.ndarray, " task"]
    """Weight of the edges out of each task."""
    unhelped: tuple[str, ...]
    """Tasks without an edge into them (evidence: and not feasible from scratch either)."""
    helping_none: tuple[str, ...]
    """Tasks without an edge out of them."""
    horizon: int
    """L, the most edges that a path may have."""
    without_path: tuple[str, ...]
    """Connectivity: tasks with no path of at most L edges to another task that carries weight, so with D = 0 always."""
    mutual: int
    """Pairs of tasks with an edge in both directions."""
    cycle_groups: tuple[tuple[str, ...], ...]
    """Evidence: groups of tasks that lie on common cycles, the largest first."""
    strongest_cycle: tuple[str, ...]
    """Evidence: the cycle whose weakest edge is heaviest."""
    strongest_cycle_weight: float
    """The weight of that edge."""
    from_scratch: Float[np.ndarray, " task"] | None
    """Evidence: weight of the from-scratch judgment, in [0, 1]."""
    depth: Int[np.ndarray, " task"] | None
    """Evidence: edges from the nearest task that may be feasible from scratch; -1 if none leads here."""

    @property
    def ungrounded(self) -> tuple[str, ...]:
        """Evidence: tasks that rest on no task feasible from scratch, however far back."""
        return () if self.depth is None else _named(self.ids, self.depth < 0)


def audit(graph: LearningConnectivity | FeasibilityEvidence, tasks: TaskSet | None = None, horizon: int = 2) -> Audit:
    """Examine a graph.

    Args:
        graph: the graph, over the tasks or more.
        tasks: the tasks it will be used for, with their weights; None takes all of the graph's, equally weighted.
        horizon: L, the most edges of a path to a weighted task; 1 or more.

    Raises:
        ValueError: if `horizon` is below 1, or the graph lacks one of the tasks.
    """
    if horizon < 1:
        raise ValueError(f"the horizon (the most edges of a path) is {horizon}; it must be 1 or more")
    if tasks is not None:
        graph = _restricted(graph, tasks)
    size = len(graph.ids)
    weighted = np.ones(size, bool) if tasks is None else tasks.weights > 0
    present = sparse.csr_array(graph.weights, copy=True)
    present.data[:] = 1
    into, out = (np.asarray(present.sum(axis=axis)).ravel().astype(np.int64) for axis in (0, 1))
    evidence = isinstance(graph, FeasibilityEvidence)
    cycles = find_cycles(graph.weights) if evidence else None
    supported = (into > 0) | (graph.from_scratch > 0) if evidence else into > 0
    reaching = np.ones(size, bool) if evidence else reaches_weighted(graph.weights, weighted, horizon)
    return Audit(
        kind=graph.kind,
        ids=graph.ids,
        provenance=graph.provenance,
        repetitions=None if graph.selections is None else len(graph.selections),
        edges=graph.weights.nnz,
        density=graph.weights.nnz / max(size * (size - 1), 1),
        edges_by_weight=_by_weight(graph),
        asked=_share_asked(graph),
        agreement=agreements(graph),
        in_degree=into,
        out_degree=out,
        in_weight=np.asarray(graph.weights.sum(axis=0)).ravel(),
        out_weight=np.asarray(graph.weights.sum(axis=1)).ravel(),
        unhelped=_named(graph.ids, ~supported),
        helping_none=_named(graph.ids, out == 0),
        horizon=horizon,
        without_path=_named(graph.ids, ~reaching),
        mutual=present.multiply(present.T).nnz // 2,
        cycle_groups=() if cycles is None else tuple(tuple(graph.ids[i] for i in g) for g in cycles.groups),
        strongest_cycle=() if cycles is None else tuple(graph.ids[i] for i in cycles.strongest),
        strongest_cycle_weight=0.0 if cycles is None else cycles.weakest_edge,
        from_scratch=graph.from_scratch if evidence else None,
        depth=depth_from_scratch(graph.weights, graph.from_scratch > 0) if evidence else None,
    )


def _restricted(
    graph: LearningConnectivity | FeasibilityEvidence, tasks: TaskSet
) -> LearningConnectivity | FeasibilityEvidence:
    if tasks.ids == graph.ids:
        return graph
    with warnings.catch_warnings():
        # The audit itself names the tasks that are left without evidence.
        warnings.simplefilter("ignore", UserWarning)
        return graph.restrict(tasks)


def _by_weight(graph: LearningConnectivity | FeasibilityEvidence) -> tuple[tuple[float, int], ...]:
    data = graph.weights.data
    if isinstance(graph, FeasibilityEvidence):
        data = np.ceil(np.round(data * 10, 6)) / 10
    levels, counts = np.unique(np.round(data, 6), return_counts=True)
    return tuple((float(level), int(count)) for level, count in zip(levels[::-1], counts[::-1], strict=True))


def _share_asked(graph: LearningConnectivity | FeasibilityEvidence) -> float:
    size = len(graph.ids)
    return 1.0 if graph.asked is None else graph.asked.nnz / max(size * (size - 1), 1)


def _named(ids: tuple[str, ...], which: np.ndarray) -> tuple[str, ...]:
    return tuple(ids[i] for i in np.flatnonzero(which))
