"""Figures 1 and 12: success on single targets over training, one panel a target.

Of these figures the captions are known, and Figure 12's line styles. That the panels stand side by side, each with a
scale of its own, that Figure 1 shows every method of the suite, and that colour tells the methods of Figure 12 apart,
are choices.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forethought.experiments.figures.names import LEARNERS, group_name, learner_name, method_name, ordered
from forethought.experiments.figures.options import Options
from forethought.experiments.figures.output import Drawn
from forethought.experiments.figures.panel import draw_curves, handle
from forethought.experiments.figures.scores import curves, run_scores
from forethought.experiments.figures.style import Line, grid, legend_below, method_line, percent_axis, step_axis, title
from forethought.experiments.figures.variants import DEFAULTS, changes_only, settings
from forethought.experiments.suites.schema import UNIFORM

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from forethought.experiments.figures.study import Study
    from forethought.experiments.suites import RunSpec

SMOOTHED = ("alp", "alp+d+f")
"""The methods of Appendix E.2."""


def single_targets(study: "Study", options: Options) -> Drawn:
    """Figure 1: each method's success on each target."""

    def wanted(run: "RunSpec") -> bool:
        return run.group != UNIFORM and run.variant == "" and options.wants(run.method)

    scores = _target_scores(study)
    scores = scores.filter(scores["variant"] == "")
    methods = options.chosen(scores["method"].unique())
    scores = scores.filter(scores["method"].is_in(methods))
    if not scores.height:
        raise study.missing("of the main configuration with a target", wanted)
    looks = {(method, ""): method_line(method) for method in methods}
    figure, table = _draw(study, scores, options, looks, {key: method_name(key[0]) for key in looks})
    return Drawn(
        figure,
        table,
        "Learning single targets",
        "How often the agent reaches the target, measured at intervals along training, when that one goal carries all "
        "of the weight. One panel a target, one line a method: the mean over the training seeds, in a band that "
        "reaches one sample standard deviation up and down.",
        study.note(scores, wanted),
    )


def smoothed_targets(study: "Study", options: Options) -> Drawn:
    """Figure 12: the same with half of the weight on the target (solid) and with all of it (dashed)."""

    def wanted(run: "RunSpec") -> bool:
        return run.group != UNIFORM and changes_only(run.variant, "share") and options.wants(run.method, SMOOTHED)

    scores = _target_scores(study)
    scores = scores.filter([changes_only(variant, "share") for variant in scores["variant"]])
    methods = options.chosen(scores["method"].unique(), SMOOTHED)
    shares = {variant: settings(variant)["share"] for variant in scores["variant"].unique()}
    looks = {
        (method, variant): Line(method_line(method).colour, (0, (3.5, 1.8)) if share == DEFAULTS["share"] else "-")
        for method in methods
        for variant, share in sorted(shares.items(), key=lambda item: -item[1])
    }
    scores = scores.filter(scores["method"].is_in(methods))
    if not scores.filter(scores["variant"] != "").height:
        raise study.missing("with part of the weight on a target", lambda run: wanted(run) and run.variant != "")
    labels = {key: f"{method_name(key[0])}, {100 * shares[key[1]]:g} % on the target" for key in looks}
    figure, table = _draw(study, scores, options, looks, labels)
    return Drawn(
        figure,
        table,
        "Spreading half of the weight over all goals",
        "Success on the target along training when the target carries half of the weight and the other goals share "
        "the rest (solid), against all of the weight on the target (dashed). Means over the training seeds, with "
        "bands of one sample standard deviation.",
        study.note(scores, wanted),
    )


def _target_scores(study: "Study") -> "pl.DataFrame":
    scores = run_scores(study.evaluations)
    scores = scores.filter(scores["group"] != UNIFORM)
    if not scores.height:
        raise study.missing("with a target", lambda run: run.group != UNIFORM)
    return scores


def _draw(
    study: "Study",
    scores: "pl.DataFrame",
    options: Options,
    looks: Mapping[tuple[str, str], Line],
    labels: Mapping[tuple[str, str], str],
) -> "tuple[Figure, pl.DataFrame]":
    from forethought.experiments.results import comparable

    table = curves(comparable(study.suite, scores))
    learners = ordered(table["learner"], LEARNERS)
    places = table.select("group", "learner").unique().rows()
    places.sort(key=lambda place: (study.targets.index(place[0]), learners.index(place[1])))
    figure, panels = grid(len(places), options.width, across=4)
    for (axes,), (group, learner) in zip(panels, places, strict=True):
        here = table.filter((table["group"] == group) & (table["learner"] == learner))
        highest = draw_curves(axes, here, looks)
        name = group_name(group, study.texts)
        title(axes, name if len(learners) == 1 else f"{name}: {learner_name(learner)}")
        step_axis(axes, float(here["steps"].max()))  # pyright: ignore
        percent_axis(axes, highest, "success (%)")
    legend_below(figure, [handle(line) for line in looks.values()], [labels[key] for key in looks])
    return figure, table
