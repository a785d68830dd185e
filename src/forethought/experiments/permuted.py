"""What the permuted graphs of PERM runs took for useful, against what the graph itself says.

A permuted graph may still, by chance, value a goal that does lead to the target; a PERM run that succeeds calls for a
look at that.
"""

from pathlib import Path

import numpy as np
import polars as pl

from forethought.curriculum import Curriculum
from forethought.experiments.results import begun
from forethought.experiments.suites import RunSpec, Suite
from forethought.rundir import RunDirectory

MOST = 10
"""Goals shown of each run."""

PREREQUISITE = 0.5
"""Weight of the edge to the target, in the graph as it is, from which a goal counts as a prerequisite."""

_COLUMNS = {
    "group": pl.String,
    "variant": pl.String,
    "seed": pl.Int64,
    "success": pl.Float64,
    "rank": pl.Int64,
    "goal": pl.String,
    "potential": pl.Float64,
    "mean_potential": pl.Float64,
    "true_rank": pl.Int64,
    "true_potential": pl.Float64,
    "true_weight": pl.Float64,
    "prerequisite": pl.Boolean,
}


def permuted(suite: Suite, out: str | Path, most: int = MOST) -> pl.DataFrame:
    """The goals with the largest downstream potential in each PERM run: largest first, equal ones as in the task set.

    `success` is the target's in the run's last evaluation so far; `potential` is D under the run's permuted graph
    before anything is learned, `mean_potential` its mean over the run so far; `true_potential` is D under the graph as
    it is before anything is learned, with `true_rank` its place among all goals (from 1; ties share the best), and
    `true_weight` the weight of the goal's own edge to the target, which makes it a `prerequisite` from `PREREQUISITE`
    on. Goals of no potential are left out, and runs without a target or without a record.

    Args:
        suite: The runs.
        out: Folder of the sweep.
        most: Goals of each run, at least 1.
    """
    tables = [
        _table(spec, run, most)
        for spec, run in begun(suite, out)
        if spec.method == "perm" and spec.config.tasks.target is not None
    ]
    return pl.concat([pl.DataFrame(schema=_COLUMNS), *tables])


def _table(spec: RunSpec, run: RunDirectory, most: int) -> pl.DataFrame:
    from forethought.domains import load_domain

    record = run.curriculum().select("iteration", "task", "downstream_potential")
    first = record.filter(pl.col("iteration") == pl.col("iteration").min())
    mean = record.group_by("task").agg(mean_potential=pl.col("downstream_potential").mean())

    domain = load_domain(spec.config.model_copy(update={"embeddings": "minilm"}))
    tasks = domain.tasks
    itself = Curriculum(
        tasks,
        connectivity=domain.connectivity,
        feasibility=domain.feasibility,
        method="alp+d+f",
        config=spec.config.curriculum,
    ).downstream_potential
    assert domain.connectivity is not None
    weights = domain.connectivity.align(tasks).weights[:, [tasks.index(spec.group)]].toarray()[:, 0]
    truth = pl.DataFrame({"task": tasks.ids, "true_potential": itself, "true_weight": np.asarray(weights, np.float64)})
    truth = truth.with_columns(true_rank=pl.col("true_potential").rank("min", descending=True).cast(pl.Int64))

    found = first.join(mean, on="task", maintain_order="left").join(truth, on="task", maintain_order="left")
    found = (
        found.filter(pl.col("downstream_potential") > 0)
        .sort("downstream_potential", descending=True, maintain_order=True)
        .head(most)
    )
    return found.select(
        group=pl.lit(spec.group),
        variant=pl.lit(spec.variant),
        seed=pl.lit(spec.seed, pl.Int64),
        success=pl.lit(_success(spec, run), pl.Float64),
        rank=pl.int_range(1, pl.len() + 1),
        goal="task",
        potential="downstream_potential",
        mean_potential="mean_potential",
        true_rank="true_rank",
        true_potential="true_potential",
        true_weight="true_weight",
        prerequisite=pl.col("true_weight") >= PREREQUISITE,
    )


def _success(spec: RunSpec, run: RunDirectory) -> float | None:
    measured = run.evaluations().filter(pl.col("goal") == spec.group).sort("iteration")
    return measured["success_rate"][-1] if len(measured) else None
