"""Attention by mastering rates over a graph of prerequisites (Willems, Lahlou, Bengio 2020, the MR algorithm).

    pre(m) = (min of M over m's ancestors)^p * ((1 - gamma) |LP(m)| / max |LP| + gamma (1 - M(m)))
             * (1 - min of M over m's successors),

with a minimum over no ancestors of 1, over no successors of 0. Then, from the last tasks to the first, each hands the
share delta_pred of its attention to its predecessors in equal parts, and delta_succ of what it keeps to its successors,
who pass none of it on (as in the authors' program, a task without predecessors gives its share to nobody).

M is the success rate as a share of the solved threshold, at most 1. The graph of prerequisites are the connections from
a threshold on; where they run in circles, see `prerequisite_graph`.
"""

import numpy as np
from jaxtyping import Float64, Int64
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from forethought.curriculum.config import CurriculumConfig
from forethought.curriculum.estimates import Estimates
from forethought.curriculum.segments import gather

SMALL = 512
"""Up to this many tasks, minima over the graph are taken over dense rows."""

_ROUNDING = 1e-12


class Mastering:
    """The signal of the MR algorithm.

    Args:
        connectivity: sparse [source target] in [0, 1]; see `prerequisite_graph`.
        config: the settings of `mastering-rate`, and the solved threshold.
    """

    def __init__(self, connectivity: sparse.csr_array, config: CurriculumConfig):
        self._config = config
        graph = prerequisite_graph(connectivity, config.prerequisite_threshold)
        size = graph.indptr.size - 1
        self._minima: _Dense | _Sparse = _Dense(graph) if size <= SMALL else _Sparse(graph)
        self._hand_over = _HandOver(graph, config.predecessor_share, config.successor_share)
        self._mastery = np.zeros(size)
        self._minima.refresh(self._mastery)

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """Only what rests on the observed tasks changes."""
        self._mastery[tasks] = np.minimum(estimates.success_rate[tasks] / self._config.solved_threshold, 1.0)
        self._minima.update(tasks, self._mastery)

    def refresh(self, estimates: Estimates) -> None:
        """Compute everything."""
        self._mastery = np.minimum(estimates.success_rate / self._config.solved_threshold, 1.0)
        self._minima.refresh(self._mastery)

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """The one signal `mastery`."""
        config = self._config
        progress = np.abs(estimates.learning_progress)
        most = float(progress.max())
        state = config.mastery_potential * (1 - self._mastery)
        if most > 0:
            state += (1 - config.mastery_potential) / most * progress
        ready = self._minima.ancestors
        # Most tasks are not ready at all, and powers are slow.
        some = np.flatnonzero((ready > 0) & (ready < 1))
        state *= ready > 0
        state[some] *= ready[some] ** config.mastery_power
        state *= 1 - self._minima.successors
        return [("mastery", 1.0, self._hand_over(state))]

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing that the estimates do not hold."""
        return {}


def prerequisite_graph(connectivity: sparse.csr_array, threshold: float) -> sparse.csr_array:
    """An acyclic graph of prerequisites, CSR [prerequisite task] of ones.

    Connections from the threshold on, without those that contradict an order: among tasks that lead to each other in
    circles, a connection stays only if its source gives more than its target does, counted as the strength of what a
    task gives to the others there less what it gets from them. A graph without circles stays as it is.
    """
    edges = sparse.coo_array(connectivity)
    source, target = edges.coords
    kept = (source != target) & (edges.data >= threshold - _ROUNDING)
    source, target, strength = source[kept], target[kept], edges.data[kept]
    size = connectivity.indptr.size - 1
    graph = sparse.csr_array((np.ones(source.size), (source, target)), shape=edges.shape)
    component = connected_components(graph, directed=True, connection="strong")[1]
    inside = component[source] == component[target]
    gives = np.bincount(source[inside], strength[inside], size) - np.bincount(target[inside], strength[inside], size)
    # Sums differ in their last bits with the order of the tasks.
    gives = gives.round(9)
    ordered = ~inside | (gives[source] > gives[target])
    source, target = source[ordered], target[ordered]
    return sparse.csr_array((np.ones(source.size), (source, target)), shape=edges.shape)


def topological_order(graph: sparse.csr_array) -> Int64[np.ndarray, " task"]:
    """The tasks of an acyclic graph, each after all its predecessors."""
    waiting = np.bincount(graph.indices, minlength=graph.indptr.size - 1)
    ready = np.flatnonzero(waiting == 0)
    levels = []
    while ready.size:
        levels.append(ready)
        positions, _ = gather(graph.indptr, ready)
        reached, edges = np.unique(graph.indices[positions], return_counts=True)
        waiting[reached] -= edges
        ready = reached[waiting[reached] == 0].astype(np.int64)
    return np.concatenate(levels)


class _HandOver:
    """From attention before to attention after tasks have handed shares of it to others."""

    def __init__(self, graph: sparse.csr_array, to_predecessors: float, to_successors: float):
        self._kept, self._passed = 1 - to_predecessors, to_successors
        size = graph.indptr.size - 1
        predecessors = np.bincount(graph.indices, minlength=size)
        self._successors = np.maximum(np.diff(graph.indptr), 1)
        self._order = topological_order(graph)
        # x(m) = pre(m) + delta_pred * sum over successors t of x(t) / predecessors(t): triangular in this order.
        up = graph.copy()
        up.data = -to_predecessors / predecessors[graph.indices]
        system = sparse.eye_array(size, format="csr") + up[self._order][:, self._order]
        self._solve = splu(sparse.csc_array(system), permc_spec="NATURAL", diag_pivot_thresh=0.0).solve
        self._down = sparse.csr_array(graph.T)

    def __call__(self, attention: Float64[np.ndarray, " task"]) -> Float64[np.ndarray, " task"]:
        result = np.empty(attention.size)
        result[self._order] = self._solve(attention[self._order])
        result *= self._kept
        if self._passed == 0:
            return result
        return (1 - self._passed) * result + self._down @ (self._passed / self._successors * result)


class _Dense:
    """Minima over ancestors and successors, for few tasks."""

    def __init__(self, graph: sparse.csr_array):
        follows = graph.toarray() > 0
        size = graph.indptr.size - 1
        precedes = np.zeros((size, size), bool)
        into = sparse.csc_array(graph)
        for task in topological_order(graph):
            direct = into.indices[into.indptr[task] : into.indptr[task + 1]]
            precedes[task] = precedes[direct].any(axis=0)
            precedes[task, direct] = True
        # Added to mastery, 0 leaves it as it is and 2 takes it out of a minimum, faster than choosing.
        self._no_ancestor = np.where(precedes, 0.0, 2.0)
        self._no_successor = np.where(follows, 0.0, 2.0)
        self._sums = np.zeros((size, size))
        self.ancestors, self.successors = np.ones(size), np.zeros(size)

    def update(self, changed: Int64[np.ndarray, " seen"], mastery: Float64[np.ndarray, " task"]) -> None:
        self.refresh(mastery)

    def refresh(self, mastery: Float64[np.ndarray, " task"]) -> None:
        self.ancestors = np.minimum(np.add(self._no_ancestor, mastery, out=self._sums).min(axis=1), 1.0)
        least = np.add(self._no_successor, mastery, out=self._sums).min(axis=1)
        self.successors = np.where(least > 1, 0.0, least)


class _Sparse:
    """The same for many tasks, of which few change at a time."""

    def __init__(self, graph: sparse.csr_array):
        into = sparse.csc_array(graph)
        self._out = graph.indptr, graph.indices
        self._in = into.indptr, into.indices
        size = graph.indptr.size - 1
        self.ancestors, self.successors = np.ones(size), np.zeros(size)

    def refresh(self, mastery: Float64[np.ndarray, " task"]) -> None:
        self.ancestors = np.ones(mastery.size)
        self.update(np.arange(mastery.size), mastery)

    def update(self, changed: Int64[np.ndarray, " seen"], mastery: Float64[np.ndarray, " task"]) -> None:
        touched = _neighbours(*self._in, changed)
        self.successors[touched] = _least(*self._out, touched, mastery)
        frontier = changed
        while frontier.size:
            reached = _neighbours(*self._out, frontier)
            now = _least(*self._in, reached, np.minimum(mastery, self.ancestors))
            moved = now != self.ancestors[reached]
            frontier = reached[moved]
            self.ancestors[frontier] = now[moved]


def _neighbours(
    indptr: np.ndarray, indices: np.ndarray, tasks: Int64[np.ndarray, " task"]
) -> Int64[np.ndarray, " neighbour"]:
    return np.unique(indices[gather(indptr, tasks)[0]]).astype(np.int64)


def _least(
    indptr: np.ndarray, indices: np.ndarray, tasks: Int64[np.ndarray, " task"], values: Float64[np.ndarray, " all"]
) -> Float64[np.ndarray, " task"]:
    """The least value of each task's neighbours; every task has one."""
    positions, _ = gather(indptr, tasks)
    if positions.size == 0:
        return np.zeros(0)
    counts = (indptr[tasks + 1] - indptr[tasks]).astype(np.int64)
    return np.minimum.reduceat(values[indices[positions]], np.cumsum(counts) - counts)
