"""The shape of a graph: which tasks reach a weighted one, and which evidence begins nowhere or goes in circles."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse
from scipy.sparse import csgraph


def reaches_weighted(
    weights: sparse.csr_array, weighted: Bool[np.ndarray, " task"], length: int
) -> Bool[np.ndarray, " task"]:
    """Which tasks have a path of at most `length` edges to a weighted task other than themselves.

    The others have no downstream potential at all, whatever is solved (paper, Section 4.1).

    >>> chain = sparse.csr_array(np.diag([0.2, 1.0], 1))
    >>> [reaches_weighted(chain, np.array([False, False, True]), length).tolist() for length in (1, 2)]
    [[False, True, False], [True, True, False]]
    """
    edges = weights.tocoo()
    size = weighted.size
    # The first and the last of the weighted tasks in reach: a task that reaches only itself has itself twice.
    first = np.where(weighted, np.arange(size), size)
    last = np.where(weighted, np.arange(size), -1)
    for _ in range(min(length, size)):
        lower, upper = first.copy(), last.copy()
        np.minimum.at(lower, edges.row, first[edges.col])
        np.maximum.at(upper, edges.row, last[edges.col])
        if (lower == first).all() and (upper == last).all():
            break
        first, last = lower, upper
    itself = np.arange(size)
    return (last >= 0) & ~((first == itself) & (last == itself))


def depth_from_scratch(weights: sparse.csr_array, starts: Bool[np.ndarray, " task"]) -> Int[np.ndarray, " task"]:
    """Edges on the shortest evidence path from a task that may be feasible from scratch; -1 where there is none.

    >>> chain = sparse.csr_array(np.diag([0.2, 1.0], 1))
    >>> depth_from_scratch(chain, np.array([False, True, False])).tolist()
    [-1, 0, 1]
    """
    edges = weights.tocoo()
    depth = np.where(starts, 0, -1)
    for level in range(1, len(depth)):
        found = edges.col[(depth[edges.row] == level - 1) & (depth[edges.col] < 0)]
        if not found.size:
            break
        depth[found] = level
    return depth


@dataclass(frozen=True)
class Cycles:
    """The circles of a graph."""

    groups: tuple[tuple[int, ...], ...]
    """Tasks that lie on common cycles (strongly connected components of two and more), the largest group first."""
    strongest: tuple[int, ...]
    """The cycle whose weakest edge is heaviest, a shortest one of these: from each task to the next, then the first."""
    weakest_edge: float
    """The weight of that edge; 0 without a cycle."""


def find_cycles(weights: sparse.csr_array) -> Cycles:
    """All groups of tasks on cycles, and the strongest cycle.

    >>> w = np.array([[0, 0.4, 0, 0], [0, 0, 1, 0], [0.2, 0, 0, 1], [0, 0, 0.6, 0]])
    >>> find_cycles(sparse.csr_array(w))
    Cycles(groups=((0, 1, 2, 3),), strongest=(2, 3), weakest_edge=0.6)
    """
    groups = _groups(weights)
    if not groups:
        return Cycles((), (), 0.0)
    levels = np.unique(weights.data)
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _groups(_at_least(weights, levels[middle])) else (low, middle - 1)
    strong = _at_least(weights, levels[low])
    return Cycles(tuple(groups), _shortest_cycle(strong, _groups(strong)), float(levels[low]))


def _at_least(weights: sparse.csr_array, level: float) -> sparse.csr_array:
    edges = weights.tocoo()
    kept = edges.data >= level
    return sparse.csr_array((edges.data[kept], (edges.row[kept], edges.col[kept])), shape=weights.shape)


def _groups(weights: sparse.csr_array) -> list[tuple[int, ...]]:
    _, labels = csgraph.connected_components(weights, directed=True, connection="strong")
    sizes = np.bincount(labels)
    order = sorted(np.flatnonzero(sizes > 1), key=lambda label: -sizes[label])
    return [tuple(np.flatnonzero(labels == label).tolist()) for label in order]


def _shortest_cycle(weights: sparse.csr_array, groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
    best: tuple[int, ...] = ()
    for start in (task for group in groups for task in group):
        came, queue = {start: start}, deque([start])
        while queue:
            task = queue.popleft()
            targets = weights.indices[weights.indptr[task] : weights.indptr[task + 1]].tolist()
            if start in targets:
                path = [task]
                while path[-1] != start:
                    path.append(came[path[-1]])
                if not best or len(path) < len(best):
                    best = tuple(reversed(path))
                break
            for target in targets:
                if target not in came:
                    came[target] = task
                    queue.append(target)
        if len(best) == 2:
            break
    return best
