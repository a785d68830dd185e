"""From evaluations to numbers that are drawn: each run's score, means and spreads over seeds, shares of goals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from forethought.experiments.figures.study import RUN
from forethought.experiments.suites.schema import UNIFORM

if TYPE_CHECKING:
    import polars as pl

SERIES = ("group", "learner", "method", "variant")
"""The columns that tell curves apart; seeds are averaged over."""


def run_scores(evaluations: "pl.DataFrame") -> "pl.DataFrame":
    """Each run's score at each evaluation, in per cent.

    The score is the success rate on the target, or, where all tasks weigh the same, its mean over the tasks.

    Args:
        evaluations: as `Study.evaluations`.

    Returns:
        Columns `RUN`, `iteration`, `steps`, `score`, ordered by them.
    """
    import polars as pl

    counted = (pl.col("group") == UNIFORM) | (pl.col("goal") == pl.col("group"))
    return (
        evaluations.filter(counted)
        .group_by(*RUN, "iteration", "steps")
        .agg((100 * pl.col("success_rate").mean()).alias("score"))
        .sort(*RUN, "iteration")
    )


def curves(scores: "pl.DataFrame", value: str = "score", over: str = "steps") -> "pl.DataFrame":
    """Mean and one sample standard deviation over seeds.

    A point is left out while some seed of its series has not reached it, so that a curve never jumps because
    other runs make it up.

    Args:
        scores: Columns `SERIES`, `seed`, `over` and `value`.
        value: The column averaged.
        over: The column along which the curve runs.

    Returns:
        Columns `SERIES`, `over`, `mean`, `sd` (0 for a single seed), `seeds`.
    """
    import polars as pl

    points = scores.group_by(*SERIES, over).agg(
        pl.col(value).mean().alias("mean"),
        pl.col(value).std(ddof=1).fill_null(0.0).alias("sd"),
        pl.col("seed").n_unique().alias("seeds"),
    )
    return points.filter(pl.col("seeds") == pl.col("seeds").max().over(SERIES)).sort(*SERIES, over)


def final(evaluations: "pl.DataFrame") -> "pl.DataFrame":
    """The rows of each run's last evaluation."""
    import polars as pl

    return evaluations.filter(pl.col("iteration") == pl.col("iteration").max().over(RUN))


def shares_above(last: "pl.DataFrame", thresholds: Sequence[float] | np.ndarray) -> "pl.DataFrame":
    """Per cent of goals whose success rate is strictly above each threshold, run by run.

    Args:
        last: Rows of one evaluation of each run.
        thresholds: Success rates in [0, 1].

    Returns:
        Columns `RUN`, `threshold` (per cent), `score`.
    """
    import polars as pl

    parts = [
        last.group_by(RUN)
        .agg((100 * (pl.col("success_rate") > threshold).mean()).alias("score"))
        .with_columns(pl.lit(100 * float(threshold)).alias("threshold"))
        for threshold in thresholds
    ]
    return pl.concat(parts).sort(*RUN, "threshold")
