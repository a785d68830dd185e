"""Two graphs of one kind, side by side."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import sparse

from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.judging.agreement import cohens_kappa


@dataclass(frozen=True)
class Comparison:
    """How two graphs differ over the tasks that both have; numbers over ordered pairs of these."""

    kind: str
    """The kind of both graphs."""
    ids: tuple[str, ...]
    """The tasks that both have, in the first one's order."""
    only_first: tuple[str, ...]
    """Tasks that only the first graph has."""
    only_second: tuple[str, ...]
    """Tasks that only the second graph has."""
    edges: tuple[int, int]
    """Edges of each."""
    shared: int
    """Edges of both."""
    jaccard: float | None
    """Shared edges among the edges of either, in [0, 1]; None if there is none."""
    weighted_jaccard: float | None
    """Sum of the smaller weights over the sum of the larger, in [0, 1]."""
    kappa: float | None
    """Cohen's kappa of "weighs at least one half"; None if it is undefined."""
    correlation: float | None
    """Spearman's rank correlation of the weights over the edges of either; None if it is undefined."""
    mean_difference: float
    """Mean absolute difference of the weights over the edges of either."""
    differences: tuple[tuple[str, str, float, float], ...]
    """The edges that differ most: source, target, weight in the first and in the second."""
    from_scratch: tuple[tuple[str, float, float], ...]
    """Evidence: the tasks whose from-scratch weights differ, most first, with both weights."""


def compare(
    first: LearningConnectivity | FeasibilityEvidence,
    second: LearningConnectivity | FeasibilityEvidence,
    most: int = 20,
) -> Comparison:
    """Compare two graphs of one kind over the tasks that both have; weights are taken as they stand in each.

    Args:
        first: a graph.
        second: another of the same kind; tasks are matched by id.
        most: how many of the largest differences to name.

    Raises:
        ValueError: if the kinds differ or no task is in both.
    """
    if first.kind != second.kind:
        raise ValueError(f"graphs of two kinds cannot be compared: {first.kind} and {second.kind}")
    place = {id: i for i, id in enumerate(second.ids)}
    shared = [(i, place[id]) for i, id in enumerate(first.ids) if id in place]
    if not shared:
        raise ValueError(f"the two {first.kind} graphs have no task in common")
    here, there = np.array(shared, dtype=np.int64).T
    ids = tuple(first.ids[i] for i in here)
    a, b = first.weights[here][:, here], second.weights[there][:, there]
    x, y, rows, columns = _either(a, b)
    size, total = len(ids), float(np.maximum(x, y).sum())
    strong = [(half >= 0.5) for half in (x, y)]
    pairs = float(max(size * (size - 1), 1))
    both, one, other = (np.array(float(v.sum())) for v in (strong[0] & strong[1], *strong))
    kappa = cohens_kappa(both, one, other, pairs)
    order = np.argsort(-np.abs(x - y), kind="stable")[:most]
    return Comparison(
        kind=first.kind,
        ids=ids,
        only_first=tuple(id for id in first.ids if id not in place),
        only_second=tuple(id for id in second.ids if id not in set(ids)),
        edges=(a.nnz, b.nnz),
        shared=int(((x > 0) & (y > 0)).sum()),
        jaccard=float(((x > 0) & (y > 0)).mean()) if x.size else None,
        weighted_jaccard=float(np.minimum(x, y).sum()) / total if total else None,
        kappa=None if np.isnan(kappa) else float(kappa),
        correlation=_rank_correlation(x, y),
        mean_difference=float(np.abs(x - y).mean()) if x.size else 0.0,
        differences=tuple((ids[rows[i]], ids[columns[i]], float(x[i]), float(y[i])) for i in order if x[i] != y[i]),
        from_scratch=_scratch_differences(first, second, ids, here, there, most),
    )


def _either(
    a: sparse.csr_array, b: sparse.csr_array
) -> tuple[Float[np.ndarray, " edge"], Float[np.ndarray, " edge"], np.ndarray, np.ndarray]:
    """Both weights of every edge that either has, with its row and column."""
    marks = sparse.coo_array((abs(a) + abs(b)).tocoo())
    rows, columns = marks.coords
    if not rows.size:
        return np.zeros(0), np.zeros(0), rows, columns
    x, y = (np.asarray(sparse.csr_array(m)[rows, columns], dtype=np.float64).ravel() for m in (a, b))
    return x, y, rows, columns


def _rank_correlation(x: Float[np.ndarray, " edge"], y: Float[np.ndarray, " edge"]) -> float | None:
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _scratch_differences(
    first: LearningConnectivity | FeasibilityEvidence,
    second: LearningConnectivity | FeasibilityEvidence,
    ids: tuple[str, ...],
    here: np.ndarray,
    there: np.ndarray,
    most: int,
) -> tuple[tuple[str, float, float], ...]:
    if not isinstance(first, FeasibilityEvidence) or not isinstance(second, FeasibilityEvidence):
        return ()
    a, b = first.from_scratch[here], second.from_scratch[there]
    order = np.argsort(-np.abs(a - b), kind="stable")[:most]
    return tuple((ids[i], float(a[i]), float(b[i])) for i in order if abs(a[i] - b[i]) > 1e-9)
