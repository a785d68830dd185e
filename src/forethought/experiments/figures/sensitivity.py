"""Figure 4: curves of ALP+D+F for other longest paths L (above) and downstream coefficients alpha (below).

The caption gives the rows, the text the settings of the columns: uniform weights and two targets. That the columns
stand in this order, and that ALP is drawn for reference where the suite has it, are choices.
"""

from typing import TYPE_CHECKING

from forethought.experiments.figures.names import group_name, method_name, ordered
from forethought.experiments.figures.options import Options
from forethought.experiments.figures.output import Drawn
from forethought.experiments.figures.panel import draw_curves, handle
from forethought.experiments.figures.scores import curves, run_scores
from forethought.experiments.figures.style import (
    Line,
    grid,
    legend_below,
    method_line,
    percent_axis,
    step_axis,
    title,
)
from forethought.experiments.figures.variants import changes_only, settings
from forethought.experiments.suites.schema import UNIFORM

if TYPE_CHECKING:
    from forethought.experiments.figures.study import Study
    from forethought.experiments.suites import RunSpec

FULL, REFERENCE = "alp+d+f", "alp"

REFERENCE_LINE = Line("#8c8c8c", (0, (1, 1.2)))

COLOURS = ("#0072b2", "#009e73", "#e69f00", "#882255", "#56b4e9", "#332288", "#999933", "#000000")

DASHES = ((0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5)), (0, (1.5, 1)), (0, (4, 1, 1, 1)), "-.", (0, (2.5, 2.5)), ":")


def sensitivity(study: "Study", options: Options) -> Drawn:
    """Figure 4: one column a setting; L varies in the upper panels, alpha in the lower ones."""
    import polars as pl

    from forethought.experiments.results import comparable

    scores = run_scores(study.evaluations.filter(pl.col("learner") == "primitive"))
    variants = scores.filter(pl.col("method") == FULL)["variant"].unique().to_list()
    rows = {"L": _variants(variants, "L"), "alpha": _variants(variants, "alpha")}
    if not any(len(row) > 1 for row in rows.values()):
        raise study.missing("of ALP+D+F with another L or alpha", is_variant)
    shown = pl.col("variant").is_in([variant for row in rows.values() for variant in row])
    main = (pl.col("method") == REFERENCE) & (pl.col("variant") == "")
    scores = scores.filter(((pl.col("method") == FULL) & shown) | main)
    changed = [variant for row in rows.values() for variant in row if variant]
    line_of = {variant: Line(colour, dashes) for variant, colour, dashes in zip(changed, COLOURS, DASHES, strict=False)}
    looks = {
        name: {(REFERENCE, ""): REFERENCE_LINE}
        | {(FULL, variant): line_of[variant] for variant in row if variant in line_of}
        | {(FULL, ""): method_line(FULL)}
        for name, row in rows.items()
    }
    table = curves(comparable(study.suite, scores))
    varied = table.filter(pl.col("variant") != "")["group"].unique()
    groups = ordered(varied, [UNIFORM, *study.targets])

    figure, panels = grid(
        len(groups),
        options.width,
        across=4 if len(groups) > 3 else 3,
        rows=2,
        height=1.45 if options.width == "page" else 1.15,
    )
    for stack, group in zip(panels, groups, strict=True):
        here = table.filter(pl.col("group") == group)
        tops = [draw_curves(axes, here, looks[name]) for axes, name in zip(stack, rows, strict=True)]
        title(stack[0], group_name(group, study.texts))
        for axes, symbol in zip(stack, ("L", "α"), strict=True):
            step_axis(axes, float(here["steps"].max()))  # pyright: ignore
            percent_axis(axes, max(tops), f"success (%)\n{symbol} varies")
        stack[0].set_xlabel("")
        stack[0].tick_params(labelbottom=False)
    marks = [handle(method_line(FULL)), *(handle(line) for line in line_of.values())]
    names = [f"{_label('')} (main)", *map(_label, line_of)]
    if table.filter(pl.col("method") == REFERENCE).height:
        marks, names = [*marks, handle(REFERENCE_LINE)], [*names, method_name(REFERENCE)]
    legend_below(figure, marks, names)
    return Drawn(
        figure,
        table,
        "How much L and α matter",
        "Success of ALP+D+F along training when the longest path L that downstream potential follows changes (above, "
        "α at 1), and when the weight α of that potential does (below, L at 2). Under uniform weights success is the "
        "mean over all tasks, otherwise that on the target. Means over the training seeds, with bands of one sample "
        "standard deviation; ALP for comparison.",
        study.note(
            scores,
            lambda run: (
                run.learner == "primitive"
                and run.group in groups
                and (run.method == FULL or (run.method, run.variant) == (REFERENCE, ""))
            ),
        ),
    )


def is_variant(run: "RunSpec") -> bool:
    """Whether a run is of ALP+D+F, with primitive actions, with another L or alpha."""
    return (
        (run.method, run.learner) == (FULL, "primitive")
        and run.variant != ""
        and changes_only(run.variant, "L", "alpha")
    )


def _variants(variants: list[str], name: str) -> list[str]:
    """The variants in which nothing but `name` differs from the default, the default among them, by value."""
    kept = [variant for variant in variants if changes_only(variant, name)]
    return sorted(kept, key=lambda variant: settings(variant)[name])


def _label(variant: str) -> str:
    values = settings(variant)
    return f"L = {values['L']:g}, α = {values['alpha']:g}"
