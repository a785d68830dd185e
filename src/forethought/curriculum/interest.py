"""What is still interesting, given what is mastered (Zhang et al. 2023, OMNI).

Mastered tasks are gone through from the highest success rate down. One that no earlier one has made boring stays
interesting and makes boring what it was judged to, save what was taken for interesting before. OMNI goes through all
tasks, those never solved too; here only mastered ones have a say. What is masked is the signal of `alp`, where OMNI
has its own: learning progress from evaluations, as z-scores through a sigmoid.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy import sparse

from forethought.curriculum.segments import gather

_DECIMALS = 9
"""Success rates that differ by less are ties, which the order of the tasks breaks; moving averages end in rounding."""


class Interest:
    """Factors on learning progress: 1 for a task that is interesting, less for one that is not.

    Args:
        boring: sparse [mastered task] in [0, 1], how surely the one, once mastered, makes the other boring.
        threshold: from which weight on it does.
        factor: of a boring task, in [0, 1].
        mastered: success rate from which on a task is mastered.
    """

    def __init__(self, boring: sparse.csr_array, threshold: float, factor: float, mastered: float):
        edges = sparse.coo_array(boring)
        rows, columns = edges.coords
        kept = (rows != columns) & (edges.data >= threshold - 1e-12)
        graph = sparse.csr_array((np.ones(int(kept.sum())), (rows[kept], columns[kept])), shape=edges.shape)
        self._graph = graph.indptr, graph.indices
        self._factor, self._threshold = factor, mastered
        self._order = np.zeros(0, np.int64)
        self._factors = np.ones(boring.indptr.size - 1)

    def factors(self, success_rate: Float64[np.ndarray, " task"]) -> Float64[np.ndarray, " task"]:
        """The factor of every task; not to be changed."""
        mastered = np.flatnonzero(success_rate >= self._threshold)
        order = mastered[np.argsort(-success_rate[mastered].round(_DECIMALS), kind="stable")]
        if not np.array_equal(order, self._order):
            boring = made_boring(*self._graph, order, success_rate.size)
            self._order, self._factors = order, np.where(boring, self._factor, 1.0)
        return self._factors


def made_boring(
    indptr: np.ndarray, indices: np.ndarray, order: Int64[np.ndarray, " mastered"], size: int
) -> Bool[np.ndarray, " task"]:
    """Which tasks the mastered ones make boring.

    Args:
        indptr: compressed sparse rows: where the tasks that each task makes boring begin in `indices`.
        indices: those tasks.
        order: the mastered tasks, those with more say first.
        size: number of tasks.
    """
    rank = np.full(size, order.size)
    rank[order] = np.arange(order.size)
    positions, by = gather(indptr, order)
    targets = indices[positions]
    earlier = by < rank[targets]
    by, targets = by[earlier], targets[earlier]
    boring = np.zeros(size, bool)
    if by.size == 0:
        return boring
    # Among the mastered, round by round: who waits for nobody stays interesting, and whom it names is boring.
    undecided = rank[targets] < order.size
    first, second = by[undecided], rank[targets[undecided]]
    interesting, dull = np.zeros(order.size, bool), np.zeros(order.size, bool)
    while first.size:
        waits = np.zeros(order.size, bool)
        waits[second] = True
        interesting |= ~waits & ~dull
        dull[second[interesting[first]]] = True
        open_ = ~dull[first] & ~dull[second]
        first, second = first[open_], second[open_]
    boring[targets[~dull[by]]] = True
    return boring
