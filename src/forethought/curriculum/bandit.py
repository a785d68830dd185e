"""Thompson sampling over tasks by their recent changes (Matiisen et al. 2017, the Sampling algorithm of TSCL).

Of every task one of its latest changes |o_j - o_{j-1}| of the observed success rate is drawn at random, and the task
with the largest is trained on, ties broken at random. Instead of drawing, `best_probabilities` gives each task's
probability to be that one, so that a batch of draws is as many independent Thompson samples.

The buffer of a task are the changes between the observations that the fit of its learning progress keeps (N_obs - 1 of
them; the first change is from 0). A task never observed counts as no change, where TSCL takes it for the best: a task
whose episodes never end would else be all that is trained on.
"""

import math

import numpy as np
from jaxtyping import Float64, Int64

from forethought.curriculum.estimates import NEVER, Estimates

_DECIMALS = 9
"""Changes that differ by less are ties; success rates come with rounding errors."""

_NONE = -1.0
"""A place in a buffer that holds no change yet."""

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _NODE_WEIGHTS = (_NODES + 1) / 2, _NODE_WEIGHTS / 2
_DEPTH = 40.0
"""The integrals over ties are cut where the integrand has fallen by exp(-40)."""

_NEGLIGIBLE = -50.0
"""Logarithm of a probability that does not count any more."""


class BestChange:
    """The signal of Thompson sampling, and the buffers of changes that it draws from.

    Args:
        size: number of tasks.
        max_observations: N_obs, observations kept of each task.
    """

    def __init__(self, size: int, max_observations: int):
        self._changes = np.full((size, max_observations - 1), _NONE)
        self._smallest = np.zeros(size)
        self._largest = np.zeros(size)

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """Only the buffers of observed tasks change."""
        self._set(tasks, estimates)

    def refresh(self, estimates: Estimates) -> None:
        """All buffers follow from the observations kept."""
        self._set(np.arange(self._largest.size), estimates)

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """The one signal `best_change`."""
        return [("best_change", 1.0, best_probabilities(self._changes, self._smallest, self._largest))]

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing that the estimates do not hold."""
        return {}

    def _set(self, tasks: Int64[np.ndarray, " task"], estimates: Estimates) -> None:
        changes = np.abs(np.diff(estimates.values[tasks], axis=1)).round(_DECIMALS)
        there = estimates.times[tasks, :-1] != NEVER
        self._changes[tasks] = np.where(there, changes, _NONE)
        self._largest[tasks] = np.where(there, changes, 0.0).max(axis=1)
        smallest = np.where(there, changes, np.inf).min(axis=1)
        self._smallest[tasks] = np.where(there.any(axis=1), smallest, 0.0)


def best_probabilities(
    changes: Float64[np.ndarray, "task place"],
    smallest: Float64[np.ndarray, " task"],
    largest: Float64[np.ndarray, " task"],
) -> Float64[np.ndarray, " task"]:
    """The probability of each task to have the largest of one random change of every task, ties broken at random.

    With F_j the distribution function of task j's draw and a_j(v) the probability of v, task i wins at v with

        prod over all j of F_j(v)  *  t_i * integral over s in [0, 1] of prod over tied j != i of (1 - t_j s),

    where t_j = a_j(v) / F_j(v). Only values from the largest of the smallest changes on can win. If all draws are 0,
    all tasks are tied.

    Args:
        changes: the buffers, >= 0; -1 where a place is empty, and an empty buffer stands for 0.
        smallest: the smallest change of each task, 0 if it has none.
        largest: the largest, 0 if it has none.

    Returns:
        Probabilities that sum to 1, up to 1e-12.
    """
    size = largest.size
    result = np.zeros(size)
    least = max(float(smallest.max()), np.finfo(np.float64).tiny)
    # Each of the tasks with the largest changes multiplies what is left for smaller ones by 1 - 1 / places or less.
    enough = math.ceil(_NEGLIGIBLE / math.log1p(-1 / max(changes.shape[1], 2)))
    if enough < size:
        least = max(least, float(np.partition(largest, -enough)[-enough]))
    tasks = np.flatnonzero(largest >= least)
    if tasks.size == 0:
        return np.full(size, 1 / size)
    kept = -np.sort(-changes[tasks], axis=1)
    rows, places = np.nonzero(kept >= least)
    values = kept[rows, places]
    # Of equal changes in one buffer, which lie side by side, the first one stands for all.
    first = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])]))
    count = np.diff(first, append=rows.size)
    rows, places, values = rows[first], places[first], values[first]
    not_above = (kept[rows] >= 0).sum(axis=1) - places
    share = count / not_above

    order = np.argsort(-values, kind="stable")
    rows, values, share = rows[order], values[order], share[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    with np.errstate(divide="ignore"):
        below = np.add.reduceat(np.log1p(-share), starts)
    reach = np.concatenate([[0.0], np.cumsum(below)])
    # The further down, the less likely that no larger change is drawn.
    groups = int(np.count_nonzero(reach[:-1] > _NEGLIGIBLE))
    ends = np.append(starts, rows.size)
    rows, share = rows[: ends[groups]], share[: ends[groups]]
    starts, ends = starts[:groups], ends[1 : groups + 1]
    group = np.repeat(np.arange(groups), ends - starts)
    wins = np.exp(reach[:groups])[group] * share * _tie_integrals(share, group, ends - starts)
    np.add.at(result, tasks[rows], wins)
    result += np.exp(reach[-1]) / size
    return result


def _tie_integrals(
    share: Float64[np.ndarray, " entry"], group: Int64[np.ndarray, " entry"], counts: Int64[np.ndarray, " group"]
) -> Float64[np.ndarray, " entry"]:
    """The integral over s in [0, 1] of the product over the others in the entry's group of (1 - share s)."""
    result = np.ones(share.size)
    tied = np.flatnonzero(counts[group] > 1)
    if tied.size == 0:
        return result
    # Entries of one group with equal shares have equal integrals; shares are ratios of small whole numbers.
    keys, which, many = np.unique(group[tied] + share[tied] / 2, return_inverse=True, return_counts=True)
    one = np.zeros(keys.size, np.int64)
    one[which] = tied
    kind_share, kind_group = share[one], group[one]
    starts = np.flatnonzero(np.concatenate([[True], kind_group[1:] != kind_group[:-1]]))
    owner = np.repeat(np.arange(starts.size), np.diff(starts, append=keys.size))
    fall = np.add.reduceat(many * kind_share, starts)
    width = np.minimum(1.0, _DEPTH / fall)[owner]
    factors = np.log1p(-kind_share[:, None] * width[:, None] * _NODES)
    product = np.add.reduceat(many[:, None] * factors, starts, axis=0)[owner]
    integral = (np.exp(product - factors) * _NODE_WEIGHTS).sum(axis=1) * width
    result[tied] = integral[which]
    return result
