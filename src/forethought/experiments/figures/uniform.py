"""Figure 3: all tasks weigh the same; mean success over training, and the share of tasks above each threshold then.

The caption gives the four panels and their order. The methods are those that the text compares there, unless others
are asked for.
"""

from typing import TYPE_CHECKING

from forethought.experiments.figures.names import LEARNERS, learner_name, method_name, ordered
from forethought.experiments.figures.options import Options
from forethought.experiments.figures.output import Drawn
from forethought.experiments.figures.panel import draw_curves, handle
from forethought.experiments.figures.scores import curves, run_scores
from forethought.experiments.figures.style import grid, legend_below, method_line, percent_axis, step_axis
from forethought.experiments.suites.schema import UNIFORM

if TYPE_CHECKING:
    import polars as pl

    from forethought.experiments.figures.study import Study
    from forethought.experiments.suites import RunSpec

COMPARED = ("unif", "i-diff", "alp", "alp+d+f")
"""The methods of Section 5.3.2."""


def uniform_weights(study: "Study", options: Options) -> Drawn:
    """Figure 3: for each learner, curves on the left and shares of tasks on the right."""
    import polars as pl

    from forethought.experiments.results import comparable

    def wanted(run: "RunSpec") -> bool:
        return run.group == UNIFORM and run.variant == "" and options.wants(run.method, COMPARED)

    rows = study.evaluations.filter((pl.col("group") == UNIFORM) & (pl.col("variant") == ""))
    methods = options.chosen(rows["method"].unique(), COMPARED)
    rows = rows.filter(pl.col("method").is_in(methods))
    if not rows.height:
        raise study.missing("of these methods with uniform weights", wanted)
    scores = run_scores(rows)
    over_steps = curves(comparable(study.suite, scores))
    above = _shares(study, rows)
    learners = ordered(rows["learner"], LEARNERS)
    looks = {(method, ""): method_line(method) for method in methods}

    figure, panels = grid(2 * len(learners), options.width, across=4)
    curve_panels, share_panels = panels[: len(learners)], panels[len(learners) :]
    tops = [
        draw_curves(axes, over_steps.filter(over_steps["learner"] == learner), looks)
        for (axes,), learner in zip(curve_panels, learners, strict=True)
    ]
    for (axes,), learner in zip(curve_panels, learners, strict=True):
        axes.set_title(learner_name(learner).capitalize())
        step_axis(axes, float(over_steps.filter(over_steps["learner"] == learner)["steps"].max()))  # pyright: ignore
        percent_axis(axes, max(tops), "mean success (%)")
    tops = [
        draw_curves(axes, above.filter(above["learner"] == learner), looks, "threshold", stairs=True)
        for (axes,), learner in zip(share_panels, learners, strict=True)
    ]
    for (axes,), learner in zip(share_panels, learners, strict=True):
        axes.set_title(learner_name(learner).capitalize())
        axes.set(xlabel="success threshold (%)", xlim=(0, 100))
        percent_axis(axes, max(tops), "share of tasks (%)")
        axes.set_ylabel("share of tasks (%)")
        if not above.filter(above["learner"] == learner).height:
            axes.text(0.5, 0.5, "no run is finished", transform=axes.transAxes, ha="center")
    legend_below(figure, [handle(line) for line in looks.values()], [method_name(method) for method in methods])
    table = pl.concat(
        [
            over_steps.with_columns(pl.lit("mean success over steps").alias("panel")),
            above.with_columns(pl.lit("share of tasks above threshold").alias("panel")),
        ],
        how="diagonal",
    )
    return Drawn(
        figure,
        table.select("panel", *(name for name in table.columns if name != "panel")),
        "Learning the whole task set",
        "Left: success averaged over all tasks along training. Right: how many of the tasks the trained agent solves "
        "more often than a threshold, for every threshold; at 0 this is the coverage. In either pair the agent of "
        "primitive actions comes first and the one that can call its own behaviour second. Means over the training "
        "seeds, with bands of one sample standard deviation.",
        study.note(scores, wanted) + " The right panels show finished runs only.",
    )


def _shares(study: "Study", rows: "pl.DataFrame") -> "pl.DataFrame":
    """Mean share of tasks above each threshold, both in per cent, over finished runs."""
    import polars as pl

    from forethought.experiments.summaries import profiles

    shares = profiles(study.suite, rows)
    return curves(shares.with_columns(pl.col("share", "threshold") * 100), value="share", over="threshold")
