"""Table 3: success of ALP+D+F for other longest paths L and coefficients alpha. The layout is the paper's."""

from typing import TYPE_CHECKING

from forethought.experiments.figures.names import group_name, ordered
from forethought.experiments.figures.scores import run_scores
from forethought.experiments.figures.sensitivity import is_variant
from forethought.experiments.figures.variants import DEFAULTS, changes_only, settings
from forethought.experiments.suites.schema import UNIFORM
from forethought.experiments.tables.formats import Table

if TYPE_CHECKING:
    import polars as pl

    from forethought.experiments.figures.study import Study

FRACTIONS = (1 / 3, 2 / 3, 1.0)
"""Shares of the budget after which success is given."""

METHOD = "alp+d+f"


def sensitivity_table(study: "Study") -> Table:
    """Table 3 from the records of a suite that varies L or alpha.

    Raises:
        MissingRunsError: if no run of ALP+D+F with another L or alpha has been evaluated.
    """
    import polars as pl

    from forethought.experiments.results import at_fraction, comparable

    variants = [run.variant for run in study.suite.runs if changes_only(run.variant, "L", "alpha")]
    ours = study.evaluations.filter(
        (pl.col("method") == METHOD) & (pl.col("learner") == "primitive") & pl.col("variant").is_in(variants)
    )
    if not ours.filter(pl.col("variant") != "").height:
        raise study.missing("of ALP+D+F with another L or alpha", is_variant)
    scores = run_scores(ours)
    shown = comparable(study.suite, scores)
    rows: list[tuple[str, ...]] = []
    numbers: list[tuple[str, ...]] = [("group", "L", "alpha", "share of the budget", "steps", "seeds", "mean", "sd")]
    for group in ordered(ours["group"], [UNIFORM, *study.targets]):
        mine = shown.filter(pl.col("group") == group)
        columns = [at_fraction(study.suite, mine, fraction) for fraction in FRACTIONS]
        rows.append((f"{group_name(group, study.texts)}: {_about(columns)}",))
        for variant in sorted(ours.filter(pl.col("group") == group)["variant"].unique(), key=_order):
            values = settings(variant)
            cells = []
            for fraction, column in zip(FRACTIONS, columns, strict=True):
                runs = column.filter(pl.col("variant") == variant)
                if not runs.height:
                    cells.append("–")
                    continue
                mean, sd = runs["score"].mean(), runs["score"].std(ddof=1)
                cells.append(f"{mean:.2f}" + ("" if sd is None else f" ± {sd:.2f}"))
                place = (group, f"{values['L']:g}", f"{values['alpha']:g}", f"{fraction:.4f}", str(runs["steps"][0]))
                numbers.append((*place, str(runs.height), f"{mean:.4f}", "" if sd is None else f"{sd:.4f}"))
            rows.append(("" if variant else "main", f"{values['L']:g}", f"{values['alpha']:g}", *cells))
    return Table(
        "How much L and α matter",
        ("", "L", "α", "1/3 of the budget", "2/3", "all"),
        tuple(rows),
        "Success of ALP+D+F in evaluation, in per cent: mean ± one sample standard deviation over the training seeds, "
        "after a third, two thirds and all of the budget. L is the longest path that downstream potential follows, α "
        "the weight of that potential. Under uniform weights success is the mean over all tasks, otherwise that on the "
        "target.",
        study.note(scores, lambda run: (run.method, run.learner) == (METHOD, "primitive") and run.variant in variants)
        + " Where no evaluation falls on a third of the budget, the last one before it counts.",
        tuple(numbers),
    )


def _about(columns: "list[pl.DataFrame]") -> str:
    """How many seeds the means are of, and after how many steps the columns are."""
    seeds = [count for column in columns for (count,) in column.group_by("variant").len("seeds").select("seeds").rows()]
    if not seeds:
        return "no run has come to a third of the budget"
    least, most = min(seeds), max(seeds)
    count = f"{most} {'seed' if most == 1 else 'seeds'}" if least == most else f"{least} to {most} seeds"
    return f"{count}, after {_steps([column['steps'][0] for column in columns if column.height])} steps"


def _order(variant: str) -> tuple[bool, bool, float, float]:
    values = settings(variant)
    return variant != "", values["alpha"] != DEFAULTS["alpha"], values["L"], values["alpha"]


def _steps(steps: list[int]) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if max(steps) >= unit:
            return ", ".join(f"{step / unit:.1f}" for step in steps) + f" {name}"
    return ", ".join(map(str, steps))
