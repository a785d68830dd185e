"""One run in one picture: success over environment steps, and what the curriculum gave its time to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.experiments.figures.style import SERIES_COLOURS, TARGET_COLOUR
from forethought.rundir import RunDirectory

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

PICTURE = "curves.png"
SUCCESS = "curves-success.csv"
SHARES = "curves-shares.csv"

COLOURS = (*SERIES_COLOURS, TARGET_COLOUR)
MARKERS = "osD^vP<>X"

MOST_GOALS = len(COLOURS)
"""Goals with a line of their own; more would need more colours than one can tell apart."""


def draw_run(run_dir: str | Path) -> Path:
    """Draw a run, finished or not, as `curves.png` in its directory, the numbers plotted as CSV beside it.

    Args:
        run_dir: The run directory.

    Returns:
        Path of the picture.

    Raises:
        ValueError: if `run_dir` is no run directory, or the run has recorded nothing yet.
    """
    # The figure is made without pyplot, which keeps figures and a backend in global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    run = RunDirectory(run_dir)
    evaluations, shares = run.evaluations(), run.curriculum()
    success = success_table(evaluations, run.metrics())
    if not len(success) and not len(shares):
        raise ValueError(f"{run.path} has no records to draw yet")

    figure = Figure(figsize=(9.0, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1)
    goals = shown_goals(evaluations, shares)
    colours = dict(zip(goals, COLOURS, strict=False))
    _draw_success(above, success, evaluations, goals, colours)
    plotted = share_table(shares, goals)
    _draw_shares(below, plotted, [*goals, OTHERS], colours, _warmup(run))
    success.write_csv(run.path / SUCCESS)
    plotted.write_csv(run.path / SHARES)
    path = run.path / PICTURE
    figure.savefig(path, dpi=130)
    return path


OTHERS = "all other goals"
TRAINING = "training, mean over all goals"


def shown_goals(evaluations: "pl.DataFrame", shares: "pl.DataFrame") -> list[str]:
    """Goals that get a line: those evaluated if they are few, else those evaluated with the largest share."""
    evaluated = evaluations["goal"].unique(maintain_order=True).to_list()
    mean = shares.group_by("task", maintain_order=True).mean().sort("effective_share", descending=True)
    by_share = mean["task"].to_list()
    if evaluated and len(evaluated) <= MOST_GOALS:
        return evaluated
    return [goal for goal in by_share if goal in evaluated or not evaluated][:MOST_GOALS] or evaluated[:MOST_GOALS]


def success_table(evaluations: "pl.DataFrame", metrics: "pl.DataFrame") -> "pl.DataFrame":
    """Success over steps: columns `steps`, `series`, `success_rate`, `wilson_low`, `wilson_high`.

    A series is an evaluated goal, or `TRAINING`, whose interval is null.
    """
    import polars as pl

    columns = ["steps", "series", "success_rate", "wilson_low", "wilson_high"]
    parts = [evaluations.rename({"goal": "series"}).select(columns)]
    if "mean_success_rate" in metrics.columns:
        missing = pl.lit(None, dtype=pl.Float64)
        parts.append(
            metrics.select(
                "steps",
                pl.lit(TRAINING).alias("series"),
                pl.col("mean_success_rate").cast(pl.Float64).alias("success_rate"),
                missing.alias("wilson_low"),
                missing.alias("wilson_high"),
            )
        )
    return pl.concat(parts)


def share_table(shares: "pl.DataFrame", goals: Sequence[str]) -> "pl.DataFrame":
    """Effective share over iterations: columns `iteration`, `series`, `effective_share`; 1 in sum."""
    import polars as pl

    own = pl.col("task").is_in(list(goals))
    return (
        shares.with_columns(pl.when(own).then(pl.col("task")).otherwise(pl.lit(OTHERS)).alias("series"))
        .group_by("iteration", "series")
        .agg(pl.col("effective_share").sum())
        .sort("iteration", "series")
    )


def _draw_success(
    axes: "Axes",
    success: "pl.DataFrame",
    evaluations: "pl.DataFrame",
    goals: Sequence[str],
    colours: Mapping[str, str],
) -> None:
    for goal, marker in zip(goals, MARKERS, strict=False):
        points = success.filter(success["series"] == goal).sort("steps")
        steps = points["steps"].to_numpy()
        axes.plot(steps, points["success_rate"].to_numpy(), marker=marker, color=colours[goal], label=goal)
        low, high = points["wilson_low"].to_numpy(), points["wilson_high"].to_numpy()
        axes.fill_between(steps, low, high, color=colours[goal], alpha=0.08, linewidth=0)
    training = success.filter(success["series"] == TRAINING).sort("steps")
    if len(training):
        rates = training["success_rate"].to_numpy()
        axes.plot(training["steps"].to_numpy(), rates, color="black", linestyle="--", label=TRAINING)
    axes.set(xlabel="environment steps", ylabel="success rate", ylim=(-0.02, 1.02))
    axes.set_title("Success in evaluation, with 95 % intervals", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")


def _draw_shares(
    axes: "Axes", shares: "pl.DataFrame", series: Sequence[str], colours: Mapping[str, str], warmup: int | None
) -> None:
    import numpy as np

    iterations = shares["iteration"].unique().sort().to_numpy()
    if not len(iterations):
        axes.set_axis_off()
        return
    heights = np.zeros((len(series), len(iterations)))
    rows, places = {name: i for i, name in enumerate(series)}, {int(x): i for i, x in enumerate(iterations)}
    for iteration, name, share in shares.iter_rows():
        heights[rows[name], places[iteration]] = share
    axes.stackplot(
        iterations,
        heights,
        labels=list(series),
        colors=[colours.get(name, "0.85") for name in series],
        step="mid",
        linewidth=0,
    )
    if warmup is not None and iterations[0] <= warmup < iterations[-1]:
        axes.axvline(warmup + 0.5, color="black", linestyle=":")
        axes.annotate(" warm-up ends", (warmup + 0.5, 0.96), va="top", fontsize="small")
    axes.set(xlabel="curriculum iteration", ylabel="share of the training", ylim=(0, 1))
    axes.margins(x=0)
    axes.set_title("What the curriculum chose (fixed draws included)", loc="left")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        labels[::-1],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize="small",
    )


def _warmup(run: RunDirectory) -> int | None:
    """Warm-up iterations of the run; None where the method has none."""
    from forethought.config import load_config
    from forethought.curriculum import METHODS

    config = load_config(run.path / "config.toml")
    return config.curriculum.warmup if METHODS[config.method].adaptive else None
