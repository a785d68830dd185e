"""From evaluations to numbers that are drawn: each run's score, and its mean and spread over seeds."""

from typing import TYPE_CHECKING

from forethought.experiments.suites import RUN, SERIES

if TYPE_CHECKING:
    import polars as pl


def run_scores(evaluations: "pl.DataFrame") -> "pl.DataFrame":
    """Each run's score at each evaluation, in per cent: success on the target, or its mean over all tasks.

    Args:
        evaluations: as `Study.evaluations`.

    Returns:
        Columns `RUN`, `iteration`, `steps`, `score`, ordered by them.
    """
    from forethought.experiments.results import run_curves

    scores = run_curves(evaluations).drop_nulls("score")
    return scores.select(*RUN, "iteration", "steps", 100 * scores["score"]).sort(*RUN, "iteration")


def curves(scores: "pl.DataFrame", value: str = "score", over: str = "steps") -> "pl.DataFrame":
    """Mean and one sample standard deviation over seeds.

    A point is left out while some seed of its series has not reached it, so that a curve never jumps because
    other runs make it up; `results.comparable` keeps seeds that have only begun from cutting the others short.

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
