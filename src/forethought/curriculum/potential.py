"""Downstream potential: what progress on a task may unlock elsewhere (paper, Section 4.1).

    D(m) = sum over t != m of w(t) B(m, t),    B(m, t) = max over paths m -> t of at most L edges of
                                               the product of kappa C(s, u) over its edges (s, u),

where only edges into unsolved tasks exist. No factor exceeds 1, so that a walk is never worth more than the path
inside it, and the maximum over walks, which dynamic programming finds, is exact.

D depends on the weights and on which tasks are solved, on nothing else; it is kept, and when tasks cross the solved
threshold only what they touch is computed anew, always by the same arithmetic. So it is the same number, bit for
bit, whichever way it was reached.
"""

from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy import sparse

from forethought.curriculum.segments import gather

FEW_TARGETS = 8
"""Up to this many weighted tasks, one column of B is kept for each."""

SMALL = 1024
"""Up to this many tasks, all of B is kept."""

_CHUNK = 2**21


class DownstreamPotential:
    """D of every task, for the tasks solved so far.

    Args:
        connectivity: C, sparse [source target] with weights in [0, 1]; a weight of a task to itself is ignored.
        weights: w, importance of each task.
        max_path_length: L, edges in a path.
        path_discount: kappa, factor per edge.
    """

    def __init__(
        self,
        connectivity: sparse.csr_array,
        weights: Float64[np.ndarray, " task"],
        *,
        max_path_length: int,
        path_discount: float,
    ):
        edges = sparse.coo_array(connectivity)
        rows, columns = edges.coords
        kept = (rows != columns) & (edges.data > 0)
        graph = sparse.csr_array((edges.data[kept] * path_discount, (rows[kept], columns[kept])), shape=edges.shape)
        size = weights.size
        # No path visits a task twice.
        length = min(max_path_length, max(size - 1, 1))
        self._solved = np.zeros(size, bool)
        targets = np.flatnonzero(weights > 0)
        if targets.size <= FEW_TARGETS:
            self._paths: _Paths = _Columns(graph, weights, targets, length)
        elif size <= SMALL:
            self._paths = _Matrix(graph, weights, length)
        else:
            self._paths = _Rows(graph, weights, length)
        self._paths.rebuild(self._solved)
        self.values: Float64[np.ndarray, " task"] = self._paths.total()

    def update(
        self, changed: Int64[np.ndarray, " seen"], success_rate: Float64[np.ndarray, " task"], threshold: float
    ) -> bool:
        """Take in new success rates of some tasks; returns whether any crossed the solved threshold."""
        now = success_rate[changed] >= threshold
        crossed = changed[now != self._solved[changed]]
        if crossed.size == 0:
            return False
        self._paths.cross(crossed, self._solved)
        self.values = self._paths.total()
        return True

    def refresh(self, success_rate: Float64[np.ndarray, " task"], threshold: float) -> None:
        """Compute D anew for the given success rates."""
        self._solved = success_rate >= threshold
        self._paths.rebuild(self._solved)
        self.values = self._paths.total()


class _Paths(Protocol):
    """One way to keep strongest paths; three of them share the work by the number of targets and of tasks."""

    def rebuild(self, solved: Bool[np.ndarray, " task"]) -> None: ...

    def cross(self, crossed: Int64[np.ndarray, " crossed"], solved: Bool[np.ndarray, " task"]) -> None:
        """Flip `solved` in place for the crossed tasks, and redo what that changes."""
        ...

    def total(self) -> Float64[np.ndarray, " task"]: ...


class _Columns:
    """B(:, t) for few targets t, each found by walking backwards from t."""

    def __init__(
        self,
        graph: sparse.csr_array,
        weights: Float64[np.ndarray, " task"],
        targets: Int64[np.ndarray, " target"],
        length: int,
    ):
        incoming = sparse.csc_array(graph)
        self._edges = incoming.indptr, incoming.indices, incoming.data
        self._targets, self._weights, self._length = targets, weights[targets], length
        self._columns = np.zeros((targets.size, weights.size))

    def rebuild(self, solved: Bool[np.ndarray, " task"]) -> None:
        for row, target in enumerate(self._targets):
            self._columns[row] = self._column(int(target), solved)

    def cross(self, crossed: Int64[np.ndarray, " crossed"], solved: Bool[np.ndarray, " task"]) -> None:
        # The last crossed task on any path that changes already has a path to the target.
        touched = (self._columns[:, crossed] > 0).any(axis=1) & ~solved[self._targets]
        touched |= np.isin(self._targets, crossed)
        solved[crossed] = ~solved[crossed]
        for row in np.flatnonzero(touched):
            self._columns[row] = self._column(int(self._targets[row]), solved)

    def total(self) -> Float64[np.ndarray, " task"]:
        result = np.zeros(self._columns.shape[1])
        for weight, column in zip(self._weights, self._columns, strict=True):
            result += weight * column
        return result

    def _column(self, target: int, solved: Bool[np.ndarray, " task"]) -> Float64[np.ndarray, " task"]:
        indptr, indices, strengths = self._edges
        best = np.zeros(solved.size)
        if solved[target]:
            return best
        best[target] = 1.0
        frontier = np.array([target], np.int64)
        for _ in range(self._length):
            positions, owner = gather(indptr, frontier)
            sources = indices[positions]
            candidates = strengths[positions] * best[frontier][owner]
            better = candidates > best[sources]
            sources, candidates = sources[better], candidates[better]
            np.maximum.at(best, sources, candidates)
            improved = np.unique(sources).astype(np.int64)
            # A solved task may begin a path but not lie on one.
            frontier = improved[~solved[improved]]
            if frontier.size == 0:
                break
        best[target] = 0.0
        return best


class _Matrix:
    """All of B, for few tasks; a crossing redoes the columns of the targets behind the crossed tasks."""

    def __init__(self, graph: sparse.csr_array, weights: Float64[np.ndarray, " task"], length: int):
        self._graph = graph.toarray()
        self._into = np.ascontiguousarray(self._graph.T)
        self._sources = [np.flatnonzero(column) for column in self._into]
        self._in_degree = np.array([sources.size for sources in self._sources])
        self._weights, self._length = weights, length
        self._best = np.zeros(self._graph.shape)
        self._shorter = np.zeros(self._graph.shape)

    def rebuild(self, solved: Bool[np.ndarray, " task"]) -> None:
        self._redo(np.arange(solved.size), solved)

    def cross(self, crossed: Int64[np.ndarray, " crossed"], solved: Bool[np.ndarray, " task"]) -> None:
        if self._length == 2:
            for task in crossed:
                self._cross_one(int(task), solved)
            return
        touched = np.any(self._shorter[:, crossed] > 0, axis=1)
        solved[crossed] = ~solved[crossed]
        touched[crossed] = True
        self._redo(np.flatnonzero(touched), solved)

    def _cross_one(self, task: int, solved: Bool[np.ndarray, " task"]) -> None:
        """With two edges, a task lies on paths source -> task -> target only: touch just these pairs."""
        into, best = self._into, self._best
        solved[task] = not solved[task]
        self._redo(np.array([task]), solved)
        targets = np.flatnonzero((self._graph[task] > 0) & ~solved)
        if targets.size == 0:
            return
        through = into[targets, task][:, None] * into[task]
        if not solved[task]:
            best[targets] = np.maximum(best[targets], through)
            best[targets, targets] = 0.0
            return
        rows, sources = np.nonzero((through > 0) & (through == best[targets]))
        if rows.size > self._in_degree[targets].sum():
            self._redo(targets, solved)
            return
        ends = targets[rows]
        steps = self._graph[sources]
        steps *= into[ends]
        detours = steps.max(axis=1, where=~solved, initial=0.0)
        best[ends, sources] = np.maximum(into[ends, sources], detours)

    def total(self) -> Float64[np.ndarray, " task"]:
        return (self._best * self._weights[:, None]).sum(axis=0)

    def _redo(self, targets: Int64[np.ndarray, " target"], solved: Bool[np.ndarray, " task"]) -> None:
        """Columns of B, kept as rows [target source], each by L rounds of relaxation."""
        for target in targets:
            best, shorter = self._best[target], self._shorter[target]
            shorter[:] = 0.0
            if solved[target]:
                best[:] = 0.0
                continue
            # After one round: the edges into the target.
            best[:] = self._into[target]
            frontier = self._sources[target]
            for _ in range(self._length - 1):
                frontier = frontier[~solved[frontier]]
                if frontier.size == 0:
                    shorter[:] = best
                    break
                shorter[:] = best
                steps = self._into[frontier] * shorter[frontier, None]
                np.maximum(best, steps.max(axis=0), out=best)
                best[target] = 0.0
                frontier = np.flatnonzero(best > shorter)


class _Rows:
    """D alone, for many tasks; a crossing redoes the sources from which the crossed tasks can be reached."""

    def __init__(self, graph: sparse.csr_array, weights: Float64[np.ndarray, " task"], length: int):
        incoming = sparse.csc_array(graph)
        self._out = graph.indptr, graph.indices, graph.data
        self._in = incoming.indptr, incoming.indices
        self._weights, self._length = weights, length
        self._values = np.zeros(weights.size)
        # Paths that start at each task, at most; decides how many sources are worked on at once.
        self._work = np.ones(weights.size)
        ones = sparse.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
        for _ in range(length):
            self._work = np.minimum(1 + ones @ self._work, weights.size)

    def rebuild(self, solved: Bool[np.ndarray, " task"]) -> None:
        self._redo(np.arange(solved.size), solved)

    def cross(self, crossed: Int64[np.ndarray, " crossed"], solved: Bool[np.ndarray, " task"]) -> None:
        solved[crossed] = ~solved[crossed]
        indptr, indices = self._in
        reached, frontier = [], crossed
        seen = np.zeros(solved.size, bool)
        for _ in range(self._length):
            sources = np.unique(indices[gather(indptr, frontier)[0]]).astype(np.int64)
            frontier = sources[~seen[sources]]
            if frontier.size == 0:
                break
            seen[frontier] = True
            reached.append(frontier)
        if reached:
            self._redo(np.concatenate(reached), solved)

    def total(self) -> Float64[np.ndarray, " task"]:
        return self._values.copy()

    def _redo(self, sources: Int64[np.ndarray, " source"], solved: Bool[np.ndarray, " task"]) -> None:
        part = (np.cumsum(self._work[sources]) // _CHUNK).astype(np.int64)
        for chunk in np.split(sources, np.flatnonzero(np.diff(part)) + 1):
            self._values[chunk] = self._from(chunk, solved)

    def _from(
        self, sources: Int64[np.ndarray, " source"], solved: Bool[np.ndarray, " task"]
    ) -> Float64[np.ndarray, " source"]:
        """D of some sources, by L rounds of relaxation of all pairs (source, reached task) at once."""
        indptr, indices, strengths = self._out
        size = self._weights.size
        owners, nodes, values = np.arange(sources.size), sources, np.ones(sources.size)
        keys, best = np.zeros(0, np.int64), np.zeros(0)
        for _ in range(self._length):
            positions, origin = gather(indptr, nodes)
            ends, owner = indices[positions], owners[origin]
            kept = ~solved[ends] & (ends != sources[owner])
            found = owner[kept] * size + ends[kept]
            if found.size == 0:
                break
            worth = strengths[positions[kept]] * values[origin[kept]]
            known = np.concatenate([np.ones(keys.size, bool), np.zeros(found.size, bool)])
            keys, best = np.concatenate([keys, found]), np.concatenate([best, worth])
            order = np.argsort(keys)
            keys, best, known = keys[order], best[order], known[order]
            starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
            before = np.maximum.reduceat(np.where(known, best, 0.0), starts)
            keys, best = keys[starts], np.maximum.reduceat(best, starts)
            improved = best > before
            owners, nodes = np.divmod(keys[improved], size)
            values = best[improved]
        if keys.size == 0:
            return np.zeros(sources.size)
        owners, nodes = np.divmod(keys, size)
        return np.bincount(owners, self._weights[nodes] * best, sources.size)
