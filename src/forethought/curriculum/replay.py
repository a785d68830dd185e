"""Prioritised level replay over tasks: ranks of surprise, and staleness (Jiang, Grefenstette, Rocktäschel 2021).

    P(m) = (1 - rho) P_S(m) + rho P_C(m)
    P_S(m) proportional to (1 / rank(S_m)) ^ (1 / beta),    P_C(m) proportional to c - C_m,

over the tasks observed so far; c is the current iteration, C_m that of m's latest observation (there they count
episodes, and C_m is when the level was last played). S_m is the mean absolute
error of the value function over the latest episodes. A curriculum sees outcomes and no value function, so the
estimated success rate v before the observation stands for it: with undiscounted returns of 0 or 1 and mean r, the
error is r (1 - v) + (1 - r) v. Tasks never observed are left to the warm-up and to exploration.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int64

from forethought.curriculum.estimates import Estimates

_LEAST = 2.0**-60

_DECIMALS = 9
"""Surprises that differ by less are ties; moving averages end in rounding."""


class Replay:
    """The two signals of prioritised replay.

    Args:
        size: number of tasks.
        temperature: beta > 0.
        staleness_share: rho in [0, 1].
    """

    def __init__(self, size: int, temperature: float, staleness_share: float):
        self._temperature, self._staleness_share = temperature, staleness_share
        self._surprise = np.zeros(size)

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """The latest surprise replaces the one before."""
        self._surprise[tasks] = surprise(rates, before).round(_DECIMALS)

    def refresh(self, estimates: Estimates) -> None:
        """Surprise does not follow from the estimates."""

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """`rank` and `staleness`."""
        seen = estimates.observations > 0
        stale = np.where(seen, float(iteration) - estimates.times[:, -1], 0.0)
        ranks = rank_weights(self._surprise, seen, self._temperature)
        return [("rank", 1 - self._staleness_share, ranks), ("staleness", self._staleness_share, stale)]

    def arrays(self) -> dict[str, np.ndarray]:
        """S of every task."""
        return {"surprise": self._surprise}


def surprise(
    rates: Float64[np.ndarray, " seen"], expected: Float64[np.ndarray, " seen"]
) -> Float64[np.ndarray, " seen"]:
    """Mean of |outcome - expected| over outcomes of 0 or 1 whose mean is `rates`.

    >>> surprise(np.array([0.75]), np.array([0.5])).tolist(), surprise(np.array([0.0]), np.array([0.9])).tolist()
    ([0.5], [0.9])
    """
    return rates * (1 - expected) + (1 - rates) * expected


def rank_weights(
    scores: Float64[np.ndarray, " task"], ranked: Bool[np.ndarray, " task"], temperature: float
) -> Float64[np.ndarray, " task"]:
    """(1 / rank) ^ (1 / temperature), rank 1 for the largest score; 0 for tasks that are not ranked.

    Equal scores share the weights of their ranks equally, which is what random tie-breaking gives on average.

    >>> rank_weights(np.array([0.2, 0.9, 0.2, 0.0]), np.array([True, True, True, False]), 1.0).round(4).tolist()
    [0.4167, 1.0, 0.4167, 0.0]
    """
    tasks = np.flatnonzero(ranked)
    result = np.zeros(scores.size)
    if tasks.size == 0:
        return result
    weights = np.arange(1.0, tasks.size + 1) ** (-1 / temperature)
    # All the weights from some rank on are together less than the rounding of the first: their order does not matter.
    counted = int(np.count_nonzero(weights > _LEAST / tasks.size))
    if counted < tasks.size // 2:
        own = scores[tasks]
        first = own >= np.partition(own, -counted)[-counted]
        last = tasks[~first]
        tasks = tasks[first]
        result[last] = weights[tasks.size :].sum() / max(last.size, 1)
        weights = weights[: tasks.size]
    tasks = tasks[np.argsort(-scores[tasks])]
    ordered = scores[tasks]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(starts, append=tasks.size)
    result[tasks] = np.repeat(np.add.reduceat(weights, starts) / counts, counts)
    return result
