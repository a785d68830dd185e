"""What training on one task has done for another, measured in a run's own records.

In iteration i the run drew n of its selections from the distribution q_i. That task s was drawn more often than q_i
made likely is chance, unrelated to anything before; so whatever follows more often after such surpluses was caused by
them. With x_s(i) selections drawn, and the surplus of s among the draws that did not go to t,

    z_st(i) = x_s(i) - (n - x_t(i)) q_s(i) / (1 - q_t(i)),

the effect of s on t is

    effect(s, t) = sum over i of z_st(i) M_t(i) / sum over i of H_i n q_s(i) (1 - q_s(i) / (1 - q_t(i))),
    M_t(i)       = sum over j = i + 1 .. i + H of the gain of t at j / p_t(j):

the gain in the success rate of t, averaged over the H iterations after i (H_i of them recorded), that one selection
of s brought, compared with one of any other task but t. The gain at j is the rate observed at j less the estimate
that stood before i, less the mean of this difference. A rate is seen only when t is selected: dividing by the
probability p_t(j) of that makes up for it, so that a curriculum which looks at t more often when it expects a gain
misleads no one (inverse probability weighting: D. G. Horvitz and D. J. Thompson, Journal of the American
Statistical Association 47, 1952). In a uniform run q and p are constant, and the effect is a plain covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True)
class History:
    """One run's draws and outcomes, iteration by iteration."""

    drawn: Float[np.ndarray, "iteration task"]
    """Selections drawn from the distribution; fixed ones are left out."""
    probability: Float[np.ndarray, "iteration task"]
    """The distribution q drawn from; sums to 1."""
    fixed: Float[np.ndarray, "iteration task"]
    """Selections that were fixed beforehand."""
    rate: Float[np.ndarray, "iteration task"]
    """Success rate observed in the iteration, NaN where no episode ended."""
    estimate: Float[np.ndarray, "iteration task"]
    """The estimate of the success rate before the iteration."""


@dataclass(frozen=True)
class Effects:
    """Sums over blocks of iterations, from which effects with and without any block follow."""

    products: Float[np.ndarray, "block source target"]
    """Surplus of the source times later gain of the target."""
    variances: Float[np.ndarray, "block source target"]
    """Expected squares of the surplus, times the iterations in which a gain can be seen."""
    noise: Float[np.ndarray, "block source target"]
    """Variance of the products, were there no effect."""
    measured: Bool[np.ndarray, " target"]
    """Targets whose observed rate has ever changed."""

    def effect(self, without: int | None = None) -> Float[np.ndarray, "source target"]:
        """Gain of the target a selection of the source, over all blocks but one; NaN where it cannot be told."""
        products, variances = self._sum(self.products, without), self._sum(self.variances, without)
        return np.divide(products, variances, out=np.full_like(products, np.nan), where=variances > 0)

    def score(self, without: int | None = None) -> Float[np.ndarray, "source target"]:
        """Effect over its standard error; about standard normal without an effect; NaN where it cannot be told."""
        products, noise = self._sum(self.products, without), self._sum(self.noise, without)
        return np.divide(products, np.sqrt(noise), out=np.full_like(products, np.nan), where=noise > 0)

    @staticmethod
    def _sum(
        parts: Float[np.ndarray, "block source target"], without: int | None
    ) -> Float[np.ndarray, "source target"]:
        kept = np.ones(len(parts), bool)
        if without is not None:
            kept[without] = False
        return parts[kept].sum(axis=0)


def measure_effects(histories: Sequence[History], horizon: int, blocks: int) -> Effects:
    """The effect of every task on every other.

    Args:
        histories: runs over the same tasks, in the same order.
        horizon: H, iterations after a selection in which its effect is looked for.
        blocks: into how many blocks of consecutive iterations to cut each run.
    """
    parts = [part for history in histories for part in _blocks(history, horizon, blocks)]
    products, variances, noise = (np.stack(sums) for sums in zip(*parts, strict=True))
    changed = [np.nan_to_num(_spread(history.rate)) > 0 for history in histories]
    return Effects(products, variances, noise, np.any(changed, axis=0))


def _blocks(
    history: History, horizon: int, blocks: int
) -> list[
    tuple[Float[np.ndarray, "source target"], Float[np.ndarray, "source target"], Float[np.ndarray, "source target"]]
]:
    q, draws = history.probability, history.drawn.sum(axis=1, keepdims=True)
    surplus = history.drawn - draws * q
    others = np.maximum(1 - q, 1e-12)
    gains = _later_gains(history, horizon)
    seen = np.minimum(horizon, len(q) - 1 - np.arange(len(q)))[:, None] * draws
    parts = []
    for rows in np.array_split(np.arange(len(q)), blocks):
        z, m, p, rest = surplus[rows], gains[rows], q[rows], others[rows]
        products = z.T @ m + p.T @ (z * m / rest)
        variances = _expected_squares(p, rest, np.broadcast_to(seen[rows], p.shape))
        noise = _expected_squares(p, rest, draws[rows] * m**2)
        for sums in (products, variances, noise):
            np.fill_diagonal(sums, 0.0)
        parts.append((products, variances, noise))
    return parts


def _expected_squares(
    q: Float[np.ndarray, "iteration task"],
    others: Float[np.ndarray, "iteration task"],
    scale: Float[np.ndarray, "iteration task"],
) -> Float[np.ndarray, "source target"]:
    """Sum over iterations of scale_t q_s (1 - q_s / (1 - q_t)), the square of the surplus to be expected, scaled."""
    return np.maximum(q.T @ scale - (q**2).T @ (scale / others), 0.0)


def _later_gains(history: History, horizon: int) -> Float[np.ndarray, "iteration task"]:
    """M: the weighted sum of the gains in the iterations after each."""
    draws = history.drawn.sum(axis=1, keepdims=True)
    looked = np.where(history.fixed > 0, 1.0, 1 - (1 - history.probability) ** draws)
    seen = np.isfinite(history.rate)
    weights = np.divide(1.0, looked, out=np.zeros_like(looked), where=seen & (looked > 0))
    rates = np.where(seen, history.rate, 0.0)
    total = np.zeros_like(rates)
    for lag in range(1, min(horizon, len(rates) - 1) + 1):
        gain = rates[lag:] - history.estimate[:-lag]
        weight = weights[lag:]
        sums = weight.sum(axis=0)
        mean = np.divide((weight * gain).sum(axis=0), sums, out=np.zeros_like(sums), where=sums > 0)
        total[:-lag] += weight * (gain - mean)
    return total


def _spread(rates: Float[np.ndarray, "iteration task"]) -> Float[np.ndarray, " task"]:
    seen = np.isfinite(rates)
    highest, lowest = (np.where(seen, rates, fill) for fill in (-np.inf, np.inf))
    return np.where(seen.any(axis=0), highest.max(axis=0) - lowest.min(axis=0), 0.0)
