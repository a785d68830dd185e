"""What a suite's runs recorded, as tables: every evaluation, and the course of scores.

A run's score is its success rate on the target, or the mean over all goals where these count the same.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from forethought.experiments.runs import check_same
from forethought.experiments.suites import RUN, SERIES, UNIFORM, RunSpec, Suite
from forethought.rundir import RunDirectory

EVALUATION = ("iteration", "steps", "goal", "episodes", "successes", "success_rate")
"""The columns of an evaluation."""

_KEYS = dict.fromkeys(SERIES, pl.String) | {"seed": pl.Int64}
_COUNTS = {"iteration": pl.Int64, "steps": pl.Int64, "goal": pl.String, "episodes": pl.Int64, "successes": pl.Int64}


def evaluations(suite: Suite, out: str | Path) -> pl.DataFrame:
    """All evaluations of all runs that have begun: `RUN` and `EVALUATION`, one row a goal and evaluation.

    Args:
        suite: The runs.
        out: Folder of the sweep.

    Raises:
        ConfigError: If a directory holds a run with another configuration.
        ValueError: If a run's evaluations cannot be read.
    """
    empty = pl.DataFrame(schema=_KEYS | _COUNTS | {"success_rate": pl.Float64})
    return pl.concat([empty, *(_keyed(spec, _evaluations(run)) for spec, run in begun(suite, out))])


def begun(suite: Suite, out: str | Path) -> Iterator[tuple[RunSpec, RunDirectory]]:
    """The runs that have a directory.

    Raises:
        ConfigError: If a directory holds a run with another configuration.
    """
    for spec in suite.runs:
        path = Path(out) / spec.directory
        if path.exists():
            check_same(path, spec.config)
            yield spec, RunDirectory(path)


def run_curves(evaluations: pl.DataFrame) -> pl.DataFrame:
    """`RUN`, `iteration`, `steps`, `score` and `coverage` (share of goals above 0), one row a run and evaluation."""
    rate, own = pl.col("success_rate"), pl.col("goal") == pl.col("group")
    score = pl.when(pl.col("group").first() == UNIFORM).then(rate.mean()).otherwise(rate.filter(own).first())
    groups = evaluations.group_by(*RUN, "iteration", "steps", maintain_order=True)
    return groups.agg(score=score, coverage=(rate > 0).mean())


def at_fraction(suite: Suite, evaluations: pl.DataFrame, fraction: float = 1.0) -> pl.DataFrame:
    """The rows of each run's last evaluation at or before a share of its iterations; none of a run not that far.

    Args:
        suite: The runs.
        evaluations: As `evaluations` or `run_curves` gives them.
        fraction: In (0, 1]; 1 for the evaluation after the last iteration.

    Raises:
        ValueError: If `fraction` is out of range.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction is {fraction}; it must lie in (0, 1]")
    due = [(*spec.key, _due(spec, fraction)) for spec in suite.runs]
    table = pl.DataFrame(due, schema=_KEYS | {"iteration": pl.Int64}, orient="row")
    return evaluations.join(table, on=[*RUN, "iteration"], how="semi", maintain_order="left")


def finished(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """All rows of the runs whose last evaluation is there."""
    return evaluations.join(at_fraction(suite, evaluations), on=RUN, how="semi", maintain_order="left")


def comparable(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """All rows of the runs whose means can be shown: the finished ones of a series, or all where it has none yet.

    So a run that has only begun takes nothing away from its finished siblings.
    """
    done = finished(suite, evaluations)
    rest = evaluations.join(done, on=SERIES, how="anti", maintain_order="left")
    return pl.concat([done, rest])


def key_columns(key: Iterable[str | int]) -> list[pl.Expr]:
    """A run's `RUN` as constant columns, or a series' `SERIES`."""
    return [pl.lit(value, kind).alias(name) for (name, kind), value in zip(_KEYS.items(), key, strict=False)]


def _due(spec: RunSpec, fraction: float) -> int:
    config = spec.config
    if fraction == 1:
        return config.iterations
    # A third of the iterations is meant exactly, whatever becomes of it in binary.
    at = math.floor(config.iterations * fraction + 1e-9)
    return at - at % config.evaluation.every


def _evaluations(run: RunDirectory) -> pl.DataFrame:
    try:
        return run.evaluations().select(EVALUATION)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{run.path}: its evaluations cannot be read: {error}") from None


def _keyed(spec: RunSpec, table: pl.DataFrame) -> pl.DataFrame:
    return table.select(*key_columns(spec.key), pl.all())
