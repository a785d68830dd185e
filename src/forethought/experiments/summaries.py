"""How the methods of a suite did at the end of training, and against each other in paired runs.

Only runs that are at their end count, and only pairs of which both are. Scores are those of
`forethought.experiments.results`. Intervals need two runs of each kind and are null without. A suite with several
targets has one more group, all of them together, in which each target is a stratum; it has the methods that have
finished runs on every target.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from forethought.experiments import statistics
from forethought.experiments.results import at_fraction, finished, key_columns, run_curves
from forethought.experiments.suites import RUN, SERIES, UNIFORM, Suite

ALL_TARGETS = "all targets"
"""The group of every target of a suite."""

THRESHOLDS = np.linspace(0, 1, 101)
"""Success rates at which performance profiles are read."""

HALF = 0.5
"""The success rate to which steps are counted."""


def summary(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """One row a group, learner, method and variant.

    `runs` counts the finished ones; `mean`, `deviation` (of a sample) and `iqm` with its 95 % interval are of their
    scores, the deviations left out where the runs are of several targets; `coverage` is the mean share of goals above
    0; `area` and `area_deviation` are of the areas under the curves; `reached` counts the runs that came to 50 %, and
    `steps_to_half` is the median of the steps that took, infinite where most never did.
    """
    rows = []
    for cell in _cells(suite, evaluations):
        final = [stratum.filter(pl.col("iteration") == pl.col("iteration").max()) for stratum in cell.strata]
        strata = [stratum["score"].to_numpy() for stratum in final]
        robust = statistics.stratified_bootstrap(strata, statistics.iqm)
        scores, spread = np.concatenate(strata), _several(strata)
        curves = [
            (curve["steps"].to_numpy(), curve["score"].to_numpy())
            for stratum in cell.strata
            for curve in stratum.partition_by("seed")
        ]
        areas = np.array([statistics.area_under_curve(*curve) for curve in curves])
        steps = [statistics.steps_to(*curve, HALF) for curve in curves]
        rows.append(
            {
                "group": cell.group,
                "method": cell.method,
                "learner": cell.learner,
                "variant": cell.variant,
                "runs": len(scores),
                "mean": scores.mean(),
                "deviation": _deviation(scores) if len(strata) == 1 else None,
                "iqm": robust.value,
                "iqm_low": robust.low if spread else None,
                "iqm_high": robust.high if spread else None,
                "coverage": pl.concat(final)["coverage"].mean(),
                "area": areas.mean(),
                "area_deviation": _deviation(areas) if len(strata) == 1 else None,
                "reached": sum(map(math.isfinite, steps)),
                "steps_to_half": float(np.median(steps)),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def comparisons(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """One row a group, learner and pair of methods or variants, over the seeds that both have finished.

    `difference` is the mean of the first's score minus the second's in paired runs, and `improvement` the probability
    that the first scores higher, ties counting a half; both with 95 % intervals. Means over different goals are not
    compared.
    """
    rows = []
    for first, second in itertools.combinations(_cells(suite, evaluations), 2):
        if (first.group, first.learner) != (second.group, second.learner) or first.goals != second.goals:
            continue
        pairs = [_paired(a, b) for a, b in zip(first.strata, second.strata, strict=True)]
        if not all(len(pair) for pair in pairs):
            continue
        ours, theirs = ([pair[name].to_numpy() for pair in pairs] for name in ("score", "score_right"))
        difference = statistics.paired_difference(ours, theirs)
        improvement = statistics.probability_of_improvement(ours, theirs)
        spread = _several(ours)
        rows.append(
            {
                **_named(first, second),
                "pairs": sum(map(len, pairs)),
                "difference": difference.value,
                "difference_low": difference.low if spread else None,
                "difference_high": difference.high if spread else None,
                "improvement": improvement.value,
                "improvement_low": improvement.low if spread else None,
                "improvement_high": improvement.high if spread else None,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def overlap(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """What paired runs achieve alike, one row a group, learner, ordered pair of methods or variants, and seed.

    Of the goals that both were evaluated on, `achieved` is the share that the first's run achieves (success above 0),
    and `shared` the share of these that the second's paired run achieves, too; null where the first achieves none.
    """
    runs = at_fraction(suite, evaluations).select(*RUN, "goal", "success_rate").partition_by(*RUN, as_dict=True)
    rows = []
    for (one, ours), (other, theirs) in itertools.permutations(runs.items(), 2):
        (group, learner, method, variant, seed), (other_group, other_learner, second, other_variant, pair) = one, other
        if (group, learner, seed) != (other_group, other_learner, pair):
            continue
        both = ours.join(theirs, on="goal")
        if not len(both):
            continue
        rates = both["success_rate"].to_numpy()
        shared = statistics.shared_coverage(rates, both["success_rate_right"].to_numpy())
        rows.append(
            {
                "group": group,
                "learner": learner,
                "first_method": method,
                "first_variant": variant,
                "second_method": second,
                "second_variant": other_variant,
                "seed": seed,
                "achieved": float(statistics.coverage(rates)),
                "shared": None if math.isnan(shared) else shared,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def profiles(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """The share of goals whose success at the end is strictly above each threshold, one row a run and threshold."""
    empty = evaluations.select(*RUN, threshold=pl.lit(0.0), share=pl.lit(0.0)).clear()
    tables = []
    for key, run in at_fraction(suite, evaluations).partition_by(*RUN, as_dict=True, maintain_order=True).items():
        shares = statistics.performance_profile(run["success_rate"].to_numpy(), THRESHOLDS)
        tables.append(pl.DataFrame({"threshold": THRESHOLDS, "share": shares}).select(*key_columns(key), pl.all()))
    return pl.concat([empty, *tables])


def retained(suite: Suite, evaluations: pl.DataFrame) -> pl.DataFrame:
    """Which targets can be learned at all, one row a target: a target stays if any finished run ends above 0."""
    final = run_curves(at_fraction(suite, evaluations)).filter(pl.col("group") != UNIFORM)
    best = final.sort("score", descending=True, maintain_order=True).group_by("group", maintain_order=True).first()
    return best.select(
        "group",
        best_method="method",
        best_variant="variant",
        best_seed="seed",
        best=pl.col("score"),
        stays=pl.col("score") > 0,
    ).sort(pl.col("group").cast(pl.Enum(list(suite.groups))))


@dataclass(frozen=True)
class _Cell:
    """The finished runs that differ in nothing but the seed, and in the target where the group is all of them."""

    group: str
    learner: str
    method: str
    variant: str
    strata: tuple[pl.DataFrame, ...]
    """Curves of scores, one table a group of like runs."""
    goals: frozenset[str] = frozenset()
    """What a score is the mean over, as the configuration lists it; empty where it is the success on a target."""


def _cells(suite: Suite, evaluations: pl.DataFrame) -> Iterator[_Cell]:
    """In the order of the suite's runs."""
    curves = run_curves(finished(suite, evaluations))
    found = {key: table.sort("seed", "iteration") for key, table in curves.partition_by(*SERIES, as_dict=True).items()}
    keys = {run.key[:-1]: run.config for run in suite.runs}
    for key, config in keys.items():
        if key in found:
            goals = config.evaluation.goals or config.tasks.goals
            yield _Cell(*key, (found[key],), frozenset(goals if key[0] == UNIFORM else ()))
    targets = [group for group in suite.groups if group != UNIFORM]
    if len(targets) < 2:
        return
    for key in dict.fromkeys(key[1:] for key in keys if key[0] != UNIFORM):
        if all((target, *key) in found for target in targets):
            yield _Cell(ALL_TARGETS, *key, tuple(found[target, *key] for target in targets))


def _paired(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    last = pl.col("iteration") == pl.col("iteration").max()
    return first.filter(last).join(second.filter(last), on="seed", maintain_order="left")


def _named(first: _Cell, second: _Cell) -> dict[str, str]:
    return {
        "group": first.group,
        "learner": first.learner,
        "first_method": first.method,
        "first_variant": first.variant,
        "second_method": second.method,
        "second_variant": second.variant,
    }


def _several(strata: Sequence[np.ndarray]) -> bool:
    """Whether resampling can say anything of the spread: one run resampled is always itself."""
    return all(len(stratum) > 1 for stratum in strata)


def _deviation(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None
