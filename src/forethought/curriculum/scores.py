"""From beliefs about tasks to a score, and from a score to a distribution (paper, A.3 and Appendix D)."""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

INTERMEDIATE = (0.1, 0.9)
"""Success rates between which I-DIFF takes a task to be of intermediate difficulty (Florensa et al. 2018)."""

SMALLEST_VARIANCE = 1e-9
"""Variances of an outcome below this are rounding."""


def progress_signal(
    progress: Float64[np.ndarray, "*shape"], exponent: float, kind: Literal["absolute", "positive"]
) -> Float64[np.ndarray, "*shape"]:
    """h(x): |x|^rho or max(x, 0)^rho (paper, Section 5)."""
    magnitude = np.abs(progress) if kind == "absolute" else np.maximum(progress, 0.0)
    return np.sqrt(magnitude) if exponent == 0.5 else magnitude**exponent


def feasibility_signal(
    success_rate: Float64[np.ndarray, " task"], feasibility: Float64[np.ndarray, " task"], threshold: float
) -> Float64[np.ndarray, " task"]:
    """F where the success rate is at most tau_f, else 0 (paper, Section 4.2)."""
    return feasibility * (success_rate <= threshold)


def intermediate_signal(success_rate: Float64[np.ndarray, " task"]) -> Float64[np.ndarray, " task"]:
    """1 where the success rate is neither low nor high, else 0 (paper, I-DIFF)."""
    low, high = INTERMEDIATE
    return ((success_rate >= low) & (success_rate <= high)).astype(np.float64)


def learnability_signal(success_rate: Float64[np.ndarray, " task"]) -> Float64[np.ndarray, " task"]:
    """The variance of an outcome, p (1 - p) (Tzannetos et al. 2023, ProCuRL; Rutherford et al. 2024, SFL).

    ProCuRL derives it as the proximity of a task that can be mastered, and draws by a softmax of it; SFL trains on the
    best of many sampled levels. Over a fixed set of tasks the sampling here follows the score itself. Below 1e-9 it is
    0: a moving average comes to rest within rounding of 0 or 1, and tasks would differ by nothing else.
    """
    variance = success_rate * (1 - success_rate)
    return np.where(variance < SMALLEST_VARIANCE, 0.0, variance)


def normalisers(
    active: Bool[np.ndarray, " task"],
    weights: Float64[np.ndarray, " task"],
    downstream: Float64[np.ndarray, " task"],
) -> tuple[float, float]:
    """Factors that turn w into w-tilde and D into D-tilde over an active set (paper, A.3).

    A factor is 0 where the paper's divisor is 0, or the set is empty: then that term counts for nothing.
    """
    count = int(np.count_nonzero(active))
    if count == 0:
        return 0.0, 0.0
    mean_weight = float(np.dot(weights, active)) / count
    mean_downstream = float(np.dot(downstream, active)) / count
    larger = max(mean_weight, mean_downstream)
    return (1 / mean_weight if mean_weight > 0 else 0.0), (1 / larger if larger > 0 else 0.0)


def valued(
    signal: Float64[np.ndarray, " task"],
    weights: Float64[np.ndarray, " task"],
    downstream: Float64[np.ndarray, " task"] | None,
    coefficient: float,
) -> Float64[np.ndarray, " task"]:
    """A signal times what it is worth: w-tilde + alpha D-tilde, or w alone without D (paper, Section 4)."""
    if downstream is None:
        return signal * weights
    by_weight, by_downstream = normalisers(signal > 0, weights, downstream)
    worth = weights * by_weight
    worth += downstream * (coefficient * by_downstream)
    worth *= signal
    return worth


def distribution(score: Float64[np.ndarray, " task"]) -> tuple[Float64[np.ndarray, " task"], bool]:
    """N[S]: the score as shares, or uniform if it is 0 everywhere; and whether it was not (paper, App. D)."""
    total = float(score.sum())
    if total > 0:
        return score / total, True
    return np.full(score.size, 1 / score.size), False
