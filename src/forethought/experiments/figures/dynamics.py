"""Figures 2 and 5 to 11: what a curriculum gave its time to, above what the agent could do.

The captions give the two rows, the blocks, and which runs are shown; the text discusses ALP, ALP+F, ALP+D and ALP+D+F.
Which auxiliary goals are drawn is not known: `RELATED` is our selection for the paper's targets, from the goals that
the shipped graph calls helpful to them; for any other target it is the evaluated goals that got most of the training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forethought.experiments.figures.names import goal_name, group_name, method_name
from forethought.experiments.figures.options import Options
from forethought.experiments.figures.output import Drawn
from forethought.experiments.figures.scores import final
from forethought.experiments.figures.style import SERIES_COLOURS, TARGET_COLOUR, grid, leftmost, legend_below

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    from forethought.experiments.figures.study import Study
    from forethought.experiments.suites import RunSpec

COMPARED = ("alp", "alp+f", "alp+d", "alp+d+f")
"""The methods of Section 5.3.1's account of the dynamics."""

BLOCK = 15
"""Curriculum decisions averaged over (Figure 2)."""

LEAST_BLOCKS = 24
"""Runs too short for so many blocks of `BLOCK` get shorter blocks."""

MOST_RELATED = 6
"""Auxiliary goals that are drawn where none are named."""

RELATED = {
    "reach_floor_1": (
        "obtain_wood_pickaxe",
        "see_ladder_down_floor_0",
        "adjacent_to_ladder_down_floor_0",
        "see_mossy_wall",
        "see_chest",
        "reach_floor_2",
    ),
    "defeat_skeleton": (
        "obtain_wood_sword",
        "defeat_zombie",
        "reach_floor_1",
        "see_skeleton",
        "adjacent_to_skeleton",
        "damage_skeleton",
    ),
    "have_64_wood": ("have_1_wood", "have_2_wood", "have_4_wood", "have_8_wood", "have_16_wood", "have_32_wood"),
    "place_furnace": (
        "place_crafting_table",
        "obtain_wood_pickaxe",
        "have_1_stone",
        "have_2_stone",
        "have_4_stone",
        "have_8_stone",
    ),
}
"""Auxiliary goals drawn for the paper's targets, from early to late in the game."""


@dataclass(frozen=True)
class Shown:
    """One column: a run and its title."""

    run: "RunSpec"
    title: str


def across_methods(study: "Study", options: Options, target: str) -> Drawn:
    """Figures 2, 5, 6 and 7: of each method, the seed that ends best on the target."""
    from forethought.experiments.results import comparable

    rows = _main_runs(study, target)
    methods = options.chosen(rows["method"].unique(), COMPARED)
    shown = []
    for method in methods:
        run = best_run(study, comparable(study.suite, rows.filter(rows["method"] == method)), target)
        shown.append(Shown(run, f"{method_name(method)} (seed {run.seed})"))
    if not shown:
        raise study.missing(f"of its methods with the target {target}", lambda run: _main(run, target))
    drawn = _draw(study, options, target, shown, 4, COMPARED)
    name = group_name(target, study.texts)
    return Drawn(
        drawn.figure,
        drawn.table,
        f"What each method trained on: {name}",
        f"{drawn.caption} One column a method: of its seeds, the one that ends with the highest success on the target "
        "(of equal ones that with the higher success along the way).",
        drawn.note,
    )


def across_seeds(study: "Study", options: Options, target: str) -> Drawn:
    """Figures 8 to 11: every seed of ALP+D+F on a target."""
    rows = _main_runs(study, target)
    if len(options.methods) > 1:
        raise ValueError(f"methods are {', '.join(options.methods)}; the seeds of one method are shown, name one")
    methods = options.chosen(rows["method"].unique(), ("alp+d+f",))
    if not methods:
        raise study.missing(
            f"of ALP+D+F with the target {target}", lambda run: _main(run, target) and run.method == "alp+d+f"
        )
    method = methods[0]
    seeds = rows.filter(rows["method"] == method)["seed"].unique().sort().to_list()
    shown = [Shown(_run(study, target, method, seed), f"seed {seed}") for seed in seeds]
    drawn = _draw(study, options, target, shown, 5, (method,), every_run=True)
    return Drawn(
        drawn.figure,
        drawn.table,
        f"{method_name(method)}, seed by seed: {group_name(target, study.texts)}",
        f"{drawn.caption} One column a training seed of {method_name(method)}.",
        drawn.note,
    )


def best_run(study: "Study", rows: "pl.DataFrame", target: str) -> "RunSpec":
    """The run with the highest success on the target at the end, then along the way, then the lowest seed.

    Args:
        study: The study.
        rows: Evaluations of one method's runs on the target.
        target: The target.
    """
    import polars as pl

    rows = rows.filter(pl.col("goal") == target)
    ends = final(rows).select("seed", pl.col("success_rate").alias("end"))
    means = rows.group_by("seed").agg(pl.col("success_rate").mean().alias("mean"))
    order = ends.join(means, on="seed").sort("end", "mean", "seed", descending=[True, True, False])
    return _run(study, target, rows["method"][0], order["seed"][0])


def related_goals(target: str, shares: "pl.DataFrame", evaluated: Sequence[str]) -> list[str]:
    """The auxiliary goals that are drawn: a selection for the paper's targets, else those with the largest mean share.

    Args:
        target: The target, which is left out.
        shares: Columns `task` and `effective_share`, in the order of the tasks.
        evaluated: Goals that the runs were evaluated on.

    Returns:
        At most `MOST_RELATED` goals, in the order of the tasks (of the selection, for the paper's targets).
    """
    import polars as pl

    tasks = shares["task"].unique(maintain_order=True).to_list()
    selected = [goal for goal in RELATED.get(target, ()) if goal in tasks and goal in evaluated]
    if len(selected) > 1:
        return selected
    mean = shares.group_by("task", maintain_order=True).agg(pl.col("effective_share").mean())
    largest = mean.sort("effective_share", descending=True, maintain_order=True)["task"].to_list()
    kept = [goal for goal in largest if goal != target and goal in evaluated][:MOST_RELATED]
    return [task for task in tasks if task in kept]


def block_length(iterations: int) -> int:
    """Decisions in a block: 15, or fewer in a short run, so that it has at least 24 blocks."""
    return min(BLOCK, max(iterations // LEAST_BLOCKS, 1))


def block_shares(record: "pl.DataFrame", goals: Sequence[str], length: int) -> "pl.DataFrame":
    """Mean effective share of each goal over consecutive blocks of decisions, in per cent.

    Returns:
        Columns `goal`, `from_iteration`, `to_iteration`, `share`; the last block may be shorter.
    """
    import polars as pl

    return (
        record.filter(pl.col("task").is_in(list(goals)))
        .with_columns(((pl.col("iteration") - 1) // length).alias("block"))
        .group_by(pl.col("task").alias("goal"), "block")
        .agg(
            pl.col("iteration").min().alias("from_iteration"),
            pl.col("iteration").max().alias("to_iteration"),
            (100 * pl.col("effective_share").mean()).alias("share"),
        )
        .sort("goal", "block")
        .drop("block")
    )


def _main_runs(study: "Study", target: str) -> "pl.DataFrame":
    import polars as pl

    if target not in study.targets:
        allowed = ", ".join(study.targets) or "none: the suite has uniform weights only"
        raise ValueError(f"target is {target!r}; targets of suite {study.suite.name} are: {allowed}")
    rows = study.evaluations.filter(
        (pl.col("group") == target) & (pl.col("variant") == "") & (pl.col("learner") == "primitive")
    )
    if not rows.height:
        raise study.missing(f"with the target {target}", lambda run: _main(run, target))
    return rows


def _main(run: "RunSpec", target: str) -> bool:
    return (run.group, run.learner, run.variant) == (target, "primitive", "")


def _run(study: "Study", target: str, method: str, seed: int) -> "RunSpec":
    runs = study.suite.select(groups=(target,), methods=(method,), seeds=(seed,), variants=("",)).runs
    return next(run for run in runs if run.learner == "primitive")


def _draw(
    study: "Study",
    options: Options,
    target: str,
    shown: Sequence[Shown],
    across: int,
    methods: Sequence[str],
    *,
    every_run: bool = False,
) -> Drawn:
    import polars as pl

    rows = _main_runs(study, target)
    rows = rows.filter(pl.col("method").is_in([item.run.method for item in shown]))
    records = [study.record(item.run) for item in shown]
    evaluated = rows["goal"].unique().to_list()
    goals = _goals(options, target, pl.concat(records), evaluated)
    length = block_length(shown[0].run.config.iterations)
    colours = {**dict(zip(goals, SERIES_COLOURS, strict=False)), target: TARGET_COLOUR}

    figure, panels = grid(len(shown), options.width, across=across, rows=2, height=1.25)
    tables = []
    for (above, below), item, record in zip(panels, shown, records, strict=True):
        shares = block_shares(record, list(colours), length)
        success = rows.filter((pl.col("method") == item.run.method) & (pl.col("seed") == item.run.seed))
        success = success.filter(pl.col("goal").is_in(list(colours))).sort("iteration")
        _stack(above, shares, colours)
        for goal in colours:
            points = success.filter(pl.col("goal") == goal)
            y = 100 * points["success_rate"].to_numpy()
            width = 1.6 if goal == target else 1.0
            below.plot(points["iteration"].to_numpy(), y, color=colours[goal], linewidth=width, clip_on=False)
        above.set_title(item.title)
        above.tick_params(labelbottom=False)
        below.set(xlabel="curriculum decision", xlim=(0, item.run.config.iterations))
        for axes, label in ((above, "share of\ntraining (%)"), (below, "success (%)")):
            axes.set_ylim(0, 100)
            axes.set_yticks([0, 50, 100])
            if leftmost(axes):
                axes.set_ylabel(label)
        tables += [_long(item, shares, success)]
    legend_below(
        figure,
        [_patch(colour) for colour in colours.values()],
        [goal_name(goal, study.texts) + (" (target)" if goal == target else "") for goal in colours],
    )
    over = "decision by decision" if length == 1 else f"in means over {length} curriculum decisions at a time"
    caption = (
        "Above: how much of the training went to the target and to some goals related to it, fixed draws counted in, "
        f"{over}; what is missing to 100 went to other goals. Below: how often the agent reaches these goals in "
        "evaluation."
    )
    unseen = [goal_name(goal, study.texts) for goal in colours if goal not in evaluated]
    note = study.note(
        rows,
        lambda run: _main(run, target) and options.wants(run.method, methods),
        means=not every_run,
    )
    note += f" Not evaluated in these runs: {'; '.join(unseen)}." if unseen else ""
    if options.goals == () and goals != list(RELATED.get(target, ())):
        note += " The related goals are those evaluated goals that got the most of the training."
    return Drawn(figure, pl.concat(tables), "", caption, note)


def _goals(options: Options, target: str, records: "pl.DataFrame", evaluated: Sequence[str]) -> list[str]:
    if not options.goals:
        return related_goals(target, records, evaluated)
    tasks = records["task"].unique().to_list()
    if unknown := [goal for goal in options.goals if goal not in tasks]:
        raise ValueError(f"goal is {unknown[0]!r}; these runs train on {len(tasks)} goals, see `forethought goals`")
    if len(options.goals) > len(SERIES_COLOURS):
        raise ValueError(f"{len(options.goals)} goals given; at most {len(SERIES_COLOURS)} can be told apart")
    return [goal for goal in options.goals if goal != target]


def _stack(axes: "Axes", shares: "pl.DataFrame", colours: dict[str, str]) -> None:
    """Each block as a step, goal on goal, the target at the bottom."""
    base: np.ndarray | float = 0.0
    for goal in reversed(colours):
        rows = shares.filter(shares["goal"] == goal).sort("from_iteration")
        if not rows.height:
            continue
        edges = np.append(rows["from_iteration"].to_numpy() - 1, rows["to_iteration"].to_numpy()[-1])
        top = base + rows["share"].to_numpy()
        axes.stairs(top, edges, baseline=base, fill=True, color=colours[goal], linewidth=0)
        base = top


def _long(item: Shown, shares: "pl.DataFrame", success: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    run = [pl.lit(item.run.method).alias("method"), pl.lit(item.run.seed).alias("seed")]
    above = shares.select(
        *run,
        pl.lit("share of training").alias("row"),
        "goal",
        "from_iteration",
        "to_iteration",
        pl.col("share").alias("percent"),
    )
    below = success.select(
        *run,
        pl.lit("success").alias("row"),
        "goal",
        pl.col("iteration").alias("from_iteration"),
        pl.col("iteration").alias("to_iteration"),
        (100 * pl.col("success_rate")).alias("percent"),
    )
    return pl.concat([above, below])


def _patch(colour: str) -> "Patch":
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, linewidth=0)
