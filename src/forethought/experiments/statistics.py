"""Few runs, honestly summarised: robust means, intervals, and comparisons of methods.

Scores come as strata: one array for each group of runs that are alike, the runs along its first axis. The unit that
is resampled is the run. Whatever else an array holds (the goals that one policy was measured on) stays together,
because a policy's goals are not independent of each other. All intervals are percentile intervals of the bootstrap;
with five runs they are too narrow, as any bootstrap of five is: the 95 % interval covers a normal mean about 84 % of
the time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

Strata = Sequence[Float[np.ndarray, "_ ..."]]
"""One array of scores for each group of like runs."""

Statistic = Callable[[Float[np.ndarray, "*batch score"]], Float[np.ndarray, "*batch"]]
"""What is computed of scores along the last axis."""

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    low: float
    high: float


def mean(scores: Float[np.ndarray, "*batch score"]) -> Float[np.ndarray, "*batch"]:
    """Plain mean along the last axis."""
    return np.asarray(np.mean(scores, axis=-1))


def iqm(scores: Float[np.ndarray, "*batch score"]) -> Float[np.ndarray, "*batch"]:
    """Interquartile mean along the last axis: what is left without the lowest and the highest quarter.

    The quarters are rounded down to whole scores, so five scores lose one at each end (Agarwal et al. 2021).

    Raises:
        ValueError: If there are no scores.
    """
    count = np.shape(scores)[-1]
    if not count:
        raise ValueError("interquartile mean of no scores; there must be at least one")
    cut = count // 4
    return np.asarray(np.sort(scores, axis=-1)[..., cut : count - cut].mean(axis=-1))


def stratified_bootstrap(
    strata: Strata,
    statistic: Statistic = iqm,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """A statistic of all scores pooled, with the interval from resampling the runs within each stratum.

    Args:
        strata: Scores.
        statistic: Such as `iqm` or `mean`.
        resamples: Resamples, at least 1.
        confidence: Share of the resampled values inside the interval, in (0, 1).
        seed: Seed of the resampling.

    Raises:
        ValueError: If a stratum is empty or a setting is out of range.
    """
    strata = _checked(strata)
    rng = _resampling(resamples, confidence, seed)
    pooled = np.concatenate([stratum.ravel() for stratum in strata])
    parts = []
    for stratum in strata:
        drawn = rng.integers(len(stratum), size=(resamples, len(stratum)))
        parts.append(stratum.reshape(len(stratum), -1)[drawn].reshape(resamples, -1))
    return _estimate(float(statistic(pooled)), statistic(np.concatenate(parts, axis=1)), confidence)


def paired_difference(
    first: Strata,
    second: Strata,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """Mean of `first` minus `second` over runs that are paired, row by row, with the interval over the pairs.

    Args:
        first: Scores.
        second: Scores of the paired runs, in the same shape.
        resamples: Resamples, at least 1.
        confidence: Share of the resampled values inside the interval, in (0, 1).
        seed: Seed of the resampling.

    Raises:
        ValueError: If the two are not of one shape.
    """
    first, second = _paired(first, second)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return stratified_bootstrap(differences, mean, resamples=resamples, confidence=confidence, seed=seed)


def probability_of_improvement(
    first: Strata,
    second: Strata,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """How probable it is that a run of `first` scores higher than one of `second`, ties counting a half.

    All runs of a stratum are compared with all, entry by entry, and the strata weigh the same (the Mann-Whitney form of
    Agarwal et al. 2021). Paired runs are resampled together.

    Args:
        first: Scores.
        second: Scores of the paired runs, in the same shape.
        resamples: Resamples, at least 1.
        confidence: Share of the resampled values inside the interval, in (0, 1).
        seed: Seed of the resampling.

    Raises:
        ValueError: If the two are not of one shape.
    """
    first, second = _paired(first, second)
    rng = _resampling(resamples, confidence, seed)
    value, resampled = 0.0, np.zeros(resamples)
    for a, b in zip(first, second, strict=True):
        runs = len(a)
        # wins[i, j]: how far run i of the first beats run j of the second, over what else they were measured on.
        wins = ((a[:, None] > b[None]) + 0.5 * (a[:, None] == b[None])).reshape(runs, runs, -1).mean(axis=-1)
        drawn = rng.integers(runs, size=(resamples, runs))
        value += wins.mean() / len(first)
        resampled += wins[drawn[:, :, None], drawn[:, None, :]].mean(axis=(1, 2)) / len(first)
    return _estimate(float(value), resampled, confidence)


def steps_to(steps: Shaped[np.ndarray, " point"], rates: Float[np.ndarray, " rate"], threshold: float = 0.5) -> float:
    """Steps at the first evaluation with at least this success rate; infinity if there is none.

    Args:
        steps: Environment steps of the evaluations, ascending.
        rates: Success rates in [0, 1].
        threshold: In [0, 1].
    """
    _check_curve(steps, rates)
    reached = np.flatnonzero(np.asarray(rates) >= threshold)
    return float(steps[reached[0]]) if reached.size else math.inf


def area_under_curve(steps: Shaped[np.ndarray, " point"], rates: Float[np.ndarray, " rate"]) -> float:
    """Mean of the success rate over the steps from the first evaluation to the last, by the trapezoidal rule.

    Args:
        steps: Environment steps of the evaluations, strictly ascending.
        rates: Success rates in [0, 1].
    """
    _check_curve(steps, rates)
    if len(steps) == 1:
        return float(rates[0])
    widths = np.diff(np.asarray(steps, dtype=np.float64))
    return float((widths * (rates[1:] + rates[:-1]) / 2).sum() / widths.sum())


def performance_profile(
    rates: Float[np.ndarray, "*batch goal"], thresholds: Float[np.ndarray, " threshold"]
) -> Float[np.ndarray, "*batch threshold"]:
    """Share of the goals whose success rate is strictly above each threshold."""
    return (rates[..., None, :] > np.asarray(thresholds)[:, None]).mean(axis=-1)


def coverage(rates: Float[np.ndarray, "*batch goal"]) -> Float[np.ndarray, "*batch"]:
    """Share of the goals with any success."""
    return np.asarray((rates > 0).mean(axis=-1))


def shared_coverage(first: Float[np.ndarray, " goal"], second: Float[np.ndarray, " paired_goal"]) -> float:
    """Share of the goals achieved in `first` that are achieved in `second`, too; NaN if `first` achieved none.

    Args:
        first: Success rates of one run's goals; achieved means above 0.
        second: Those of the paired run, in the same order.

    Raises:
        ValueError: If the two are not of one shape.
    """
    if np.shape(first) != np.shape(second):
        raise ValueError(
            f"success rates of {np.shape(first)} and {np.shape(second)} goals; they must be the same goals"
        )
    achieved = np.asarray(first) > 0
    return float((np.asarray(second)[achieved] > 0).mean()) if achieved.any() else math.nan


def _checked(strata: Strata) -> list[np.ndarray]:
    arrays = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not arrays or any(not array.ndim or not array.size for array in arrays):
        shapes = [array.shape for array in arrays]
        raise ValueError(f"scores of the shapes {shapes}; there must be at least one stratum, and a run in each")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("scores hold a number that is not finite; every score must be")
    return arrays


def _paired(first: Strata, second: Strata) -> tuple[list[np.ndarray], list[np.ndarray]]:
    first, second = _checked(first), _checked(second)
    shapes = [[array.shape for array in side] for side in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"scores of the shapes {shapes[0]} and {shapes[1]}; paired runs must have the same")
    return first, second


def _resampling(resamples: int, confidence: float, seed: int) -> np.random.Generator:
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; it must be at least 1")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie in (0, 1)")
    return np.random.default_rng(seed)


def _estimate(value: float, resampled: Float[np.ndarray, " resample"], confidence: float) -> Estimate:
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, float(low), float(high))


def _check_curve(steps: np.ndarray, rates: np.ndarray) -> None:
    if np.ndim(steps) != 1 or np.shape(steps) != np.shape(rates) or not len(steps):
        raise ValueError(
            f"a curve of {np.shape(steps)} steps and {np.shape(rates)} rates; one rate a step, at least one"
        )
    if (np.diff(steps) <= 0).any():
        raise ValueError(f"the steps of a curve are {list(steps)}; they must ascend")
