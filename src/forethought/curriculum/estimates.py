"""Success rate and learning progress of every task, from what was observed (paper, Appendix A.2)."""

import numpy as np
from jaxtyping import Float64, Int, Int64

SMALLEST_SLOPE = 1e-9
"""Slopes below this are rounding, not progress; a one-hot target would otherwise draw all the mass for it."""

NEVER = np.iinfo(np.int32).min
"""Iteration of a slot of the history that holds no observation."""


class Estimates:
    """Moving averages of the success rates, and slopes of lines through the latest observations.

    Only the rows of observed tasks are ever touched, so that an update costs the same with ten tasks and a million.

    Args:
        size: number of tasks.
        smoothing: beta, weight of a new observation in the moving average.
        max_observations: N_obs, points in a fit, the current observation and the pseudo-observation counted in.
        lookback: H_LP, iterations before the current one from which points are taken.
    """

    def __init__(self, size: int, *, smoothing: float, max_observations: int, lookback: int):
        self.smoothing = smoothing
        self.lookback = lookback
        self.success_rate = np.zeros(size)
        self.learning_progress = np.zeros(size)
        self.observations = np.zeros(size, np.int64)
        self.times = np.full((size, max_observations), NEVER, np.int32)
        self.values = np.zeros((size, max_observations))
        self.times[:, -1] = -1

    def observe(self, tasks: Int64[np.ndarray, " seen"], rates: Float64[np.ndarray, " seen"], iteration: int) -> None:
        """Take in one observation of each of some tasks.

        Args:
            tasks: indices, each at most once.
            rates: empirical success rates in [0, 1].
            iteration: when they were observed; later than any observation before.
        """
        before = self.success_rate[tasks]
        averaged = (1 - self.smoothing) * before + self.smoothing * rates
        self.success_rate[tasks] = np.where(self.observations[tasks] == 0, rates, averaged)
        self.observations[tasks] += 1
        times, values = self.times[tasks], self.values[tasks]
        times[:, :-1], values[:, :-1] = times[:, 1:], values[:, 1:]
        times[:, -1], values[:, -1] = iteration, rates
        self.times[tasks], self.values[tasks] = times, values
        self.learning_progress[tasks] = slopes(times, values, self.lookback)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that is estimated, by name; the arrays themselves, not copies."""
        return {
            "success_rate": self.success_rate,
            "learning_progress": self.learning_progress,
            "observations": self.observations,
            "history_times": self.times,
            "history_values": self.values,
        }


def slopes(
    times: Int[np.ndarray, "task point"], values: Float64[np.ndarray, "task point"], lookback: int
) -> Float64[np.ndarray, " task"]:
    """Ordinary least-squares slope of each row, the last point being the current observation.

    Points from `lookback` iterations before the current one onwards enter; if there is none, the latest earlier
    point enters as if observed then (paper, A.2). Slots at `NEVER` are empty. Slopes below 1e-9 are 0.
    """
    x = times.astype(np.float64) - times[:, -1:]
    inside = x >= -lookback
    alone = ~inside[:, -2]
    inside[alone, -2] = True
    x[alone, -2] = -lookback
    x = np.where(inside, x, 0.0)
    y = np.where(inside, values, 0.0)
    points = inside.sum(axis=1, keepdims=True)
    dx = np.where(inside, x - x.sum(axis=1, keepdims=True) / points, 0.0)
    dy = np.where(inside, y - y.sum(axis=1, keepdims=True) / points, 0.0)
    slope = (dx * dy).sum(axis=1) / (dx * dx).sum(axis=1)
    return np.where(np.abs(slope) < SMALLEST_SLOPE, 0.0, slope)
