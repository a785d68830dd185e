"""`forethought results`: what an experiment found."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import bad_input

if TYPE_CHECKING:
    import polars as pl


def command(arguments: Sequence[str]) -> int:
    """Run `forethought results`."""
    from forethought.cli.parsing import call

    return call(results, arguments, "forethought results")


def results(
    suite: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")],
    scale: str = "laptop",
    out: str = "runs",
) -> int:
    """Write an experiment's tables, and print how the methods did and how they compare.

    The tables are Parquet files in OUT/results/SUITE-SCALE: evaluations, summary, comparisons of all methods in paired
    runs, overlap of the goals achieved, profiles (share of goals above every threshold), targets (which can be learned
    at all) and permuted (what the permuted graphs value). Runs that are not at their end count in the first only.

    Args:
        suite: Name of a suite, or a TOML file.
        scale: paper, gpu-hour or laptop.
        out: Folder of the runs.
    """
    with bad_input():
        from forethought.experiments.outcome import write_results
        from forethought.experiments.suites import load_suite

        chosen = load_suite(suite, scale)
        folder, tables = write_results(chosen, out)
    done = (
        tables["profiles"].n_unique(["group", "learner", "method", "variant", "seed"]) if len(tables["profiles"]) else 0
    )
    print(f"suite {chosen.name} at scale {chosen.scale}: {chosen.title}\n{done} of {len(chosen.runs)} runs done")
    for show in (summary_text, comparison_text, overlap_text, target_text, permuted_text):
        if text := show(tables):
            print(f"\n{text}")
    print(f"\ntables in {folder}")
    return 0


def summary_text(tables: "Mapping[str, pl.DataFrame]") -> str:
    """How the methods did."""
    heads = ("group", "learner", "method", "runs", "success", "IQM", "95 % interval", "area", "goals > 0", "50 % at")
    rows = []
    for row in tables["summary"].iter_rows(named=True):
        spread = "" if row["deviation"] is None else f" +- {row['deviation']:.1%}"
        half = f"{row['steps_to_half']:.3g} steps" if row["steps_to_half"] < float("inf") else "-"
        rows.append(
            (
                row["group"],
                row["learner"],
                _label(row["method"], row["variant"]),
                str(row["runs"]),
                f"{row['mean']:.1%}{spread}",
                f"{row['iqm']:.1%}",
                _interval(row["iqm_low"], row["iqm_high"], ".1%"),
                f"{row['area']:.3f}",
                f"{row['coverage']:.1%}",
                f"{half} ({row['reached']} of {row['runs']})",
            )
        )
    return _aligned(heads, rows)


def comparison_text(tables: "Mapping[str, pl.DataFrame]") -> str:
    """How they compare in paired runs."""
    heads = (
        "group",
        "learner",
        "first",
        "second",
        "pairs",
        "difference",
        "95 % interval",
        "P(first higher)",
        "interval",
    )
    rows = [
        (
            row["group"],
            row["learner"],
            _label(row["first_method"], row["first_variant"]),
            _label(row["second_method"], row["second_variant"]),
            str(row["pairs"]),
            f"{row['difference']:+.1%}",
            _interval(row["difference_low"], row["difference_high"], "+.1%"),
            f"{row['improvement']:.2f}",
            _interval(row["improvement_low"], row["improvement_high"], ".2f"),
        )
        for row in tables["comparisons"].iter_rows(named=True)
    ]
    return _aligned(heads, rows)


def overlap_text(tables: "Mapping[str, pl.DataFrame]") -> str:
    """How far the goals achieved by one method are achieved by another, too, where all goals count."""
    import polars as pl

    if not len(tables["overlap"]):
        return ""
    keys = ("learner", "first_method", "first_variant", "second_method", "second_variant")
    uniform = tables["overlap"].filter(pl.col("group") == "uniform").group_by(keys, maintain_order=True)
    rows = [
        (
            row["learner"],
            _label(row["first_method"], row["first_variant"]),
            _label(row["second_method"], row["second_variant"]),
            f"{row['achieved']:.1%}",
            "-" if row["shared"] is None else f"{row['shared']:.1%}",
        )
        for row in uniform.agg(pl.col("achieved", "shared").mean()).iter_rows(named=True)
    ]
    return _aligned(("learner", "goals achieved by", "of these also by", "of all goals", "of these"), rows)


def target_text(tables: "Mapping[str, pl.DataFrame]") -> str:
    """Which targets any method learns."""
    rows = [
        (
            row["group"],
            f"{row['best']:.1%}",
            f"{_label(row['best_method'], row['best_variant'])}, seed {row['best_seed']}",
            "stays" if row["stays"] else "goes",
        )
        for row in tables["targets"].iter_rows(named=True)
    ]
    return _aligned(("target", "best", "by", "a target"), rows)


def permuted_text(tables: "Mapping[str, pl.DataFrame]", most: int = 3) -> str:
    """What the permuted graphs value most."""
    lines = []
    for key, run in (
        tables["permuted"].partition_by("group", "variant", "seed", as_dict=True, maintain_order=True).items()
    ):
        goals = ", ".join(
            f"{row['goal']} {row['potential']:.2g}{' (a prerequisite)' if row['prerequisite'] else ''}"
            for row in run.head(most).iter_rows(named=True)
        )
        success = "-" if run["success"][0] is None else f"{run['success'][0]:.1%}"
        known = f"{int(run['prerequisite'].sum())} of {len(run)}"
        lines.append((key[0], str(key[2]), success, known, goals))
    return _aligned(("target of perm", "seed", "success", "prerequisites", "largest potential"), lines)


def _interval(low: float | None, high: float | None, form: str) -> str:
    return "-" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def _label(method: str, variant: str) -> str:
    return f"{method} {variant}".strip()


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in columns; nothing without rows."""
    if not rows:
        return ""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    )
