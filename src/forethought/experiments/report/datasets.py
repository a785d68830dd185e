"""The numbers of a report, as tables: what its charts draw and its CSV files hold."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from forethought.experiments.figures.dynamics import block_length, block_shares, related_goals
from forethought.experiments.figures.scores import curves, final, run_scores
from forethought.experiments.figures.study import Study
from forethought.experiments.report.runs import RunInfo
from forethought.experiments.results import comparable, key_columns
from forethought.experiments.suites import RUN, SERIES, RunSpec
from forethought.experiments.summaries import comparisons, profiles, summary

ABOUT = {
    "runs": "every run of the suite: how far it is, where it ran, how long it took",
    "summary": "final success of each method: means, interquartile means with 95 % intervals, coverage, speed",
    "comparisons": "paired differences between methods, with 95 % intervals",
    "curves": "mean success along training, with one sample standard deviation over seeds",
    "scores": "success along training, run by run",
    "dynamics": "share of the training that the target and related goals got, and success on them, run by run",
    "goals": "final success on every goal, mean over seeds",
    "coverage": "share of goals with final success above each threshold, mean over seeds",
}
"""What each table holds."""


def datasets(study: Study, infos: Sequence[RunInfo]) -> dict[str, pl.DataFrame]:
    """All tables of a report by name; those without rows are left out.

    Args:
        study: The records.
        infos: What is known of each run.
    """
    evaluations = study.evaluations
    tables = {
        "runs": pl.DataFrame([info.row() for info in infos], infer_schema_length=None),
        "summary": summary(study.suite, evaluations),
        "comparisons": comparisons(study.suite, evaluations),
    }
    if evaluations.height:
        scores = run_scores(evaluations)
        shares = profiles(study.suite, evaluations)
        tables["curves"] = curves(comparable(study.suite, scores)).with_columns(pl.col("mean", "sd").round(2))
        tables["scores"] = scores.with_columns(pl.col("score").round(2))
        tables["dynamics"] = dynamics(study)
        tables["goals"] = goal_success(study)
        if shares.height:
            percent = shares.with_columns(pl.col("share", "threshold") * 100)
            tables["coverage"] = curves(percent, value="share", over="threshold").with_columns(
                pl.col("mean", "sd").round(2)
            )
    return {name: table for name, table in tables.items() if table.height}


def dynamics(study: Study) -> pl.DataFrame:
    """What each evaluated run gave to its group's target and related goals in blocks of decisions, and its success.

    Returns:
        Columns `RUN`, `row` ("share of training" or "success"), `goal`, `from_iteration`, `to_iteration`, `percent`.
    """
    parts = []
    for group, runs in _evaluated(study).items():
        records = [study.record(run).select("iteration", "task", "effective_share") for run in runs]
        rows = study.evaluations.filter(pl.col("group") == group)
        goals = related_goals(group, pl.concat(records), rows["goal"].unique().to_list())
        goals += [group] * (group in records[0]["task"].unique())
        for run, record in zip(runs, records, strict=True):
            length = block_length(run.config.iterations)
            shares = block_shares(record, goals, length).rename({"share": "percent"})
            own = [pl.col(name) == value for name, value in zip(RUN, run.key, strict=True)]
            success = rows.filter(*own, pl.col("goal").is_in(goals)).select(
                "goal",
                pl.col("iteration").alias("from_iteration"),
                pl.col("iteration").alias("to_iteration"),
                (100 * pl.col("success_rate")).alias("percent"),
            )
            keys = key_columns(run.key)
            parts += [
                shares.select(*keys, pl.lit("share of training").alias("row"), pl.all()),
                success.select(*keys, pl.lit("success").alias("row"), pl.all()),
            ]
    return pl.concat(parts).with_columns(pl.col("percent").round(1))


def goal_success(study: Study) -> pl.DataFrame:
    """Mean success on each goal at the last evaluation, over the finished runs of a series, or all where it has none.

    Returns:
        Columns `SERIES`, `goal`, `percent`, `seeds`; the goals in the order of the tasks.
    """
    last = final(comparable(study.suite, study.evaluations))
    return last.group_by(*SERIES, "goal", maintain_order=True).agg(
        (100 * pl.col("success_rate").mean()).round(1).alias("percent"), pl.col("seed").n_unique().alias("seeds")
    )


def encoded(table: pl.DataFrame) -> dict[str, Any]:
    """A table for a page's script: columns by name, those of texts as indices into their distinct values."""
    return {name: _column(table[name]) for name in table.columns}


def _column(values: pl.Series) -> Any:
    if values.dtype != pl.String:
        # JSON has no NaN and no infinity.
        return values.to_list() if not values.dtype.is_float() else [_finite(x) for x in values.to_list()]
    levels = values.unique(maintain_order=True).to_list()
    place = {level: i for i, level in enumerate(levels)}
    return {"levels": levels, "codes": [place[value] for value in values.to_list()]}


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _evaluated(study: Study) -> dict[str, list[RunSpec]]:
    """The evaluated runs by group."""
    there = set(study.evaluations.select(RUN).unique().iter_rows())
    found: dict[str, list[RunSpec]] = {}
    for run in study.suite.runs:
        if run.key in there:
            found.setdefault(run.group, []).append(run)
    return found
