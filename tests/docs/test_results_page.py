"""The page of the study gives the numbers of the study's tables."""

from pathlib import Path

import polars as pl
import pytest

HERE = Path(__file__).parents[2]
STUDY = HERE / "results" / "laptop"
PAGE = (HERE / "docs" / "results.md").read_text(encoding="utf-8")


def table(suite: str, name: str = "summary") -> pl.DataFrame:
    return pl.read_parquet(STUDY / suite / f"{name}.parquet").filter(pl.col("learner") == "primitive")


def success(row: dict) -> str:
    return f"{100 * row['mean']:.1f} ± {100 * row['deviation']:.1f} %"


def rows_with_one_target() -> list[str]:
    return [
        f"| {row['method'].upper()} | {success(row)} | {100 * row['iqm']:.1f} % ({100 * row['iqm_low']:.1f} to "
        f"{100 * row['iqm_high']:.1f}) | {row['area']:.3f} | {100 * row['coverage']:.1f} % |"
        for row in table("targets").to_dicts()
    ]


def rows_with_more_goals() -> list[str]:
    found = {(row["method"], row["variant"]): success(row) for row in table("all-goals").to_dicts()}
    return [
        f"| {method.upper()} | {found[method, '']} | {found[method, 'goals=all']} |" for method in ("alp+d", "alp+d+f")
    ]


def rows_with_uniform_weights() -> list[str]:
    return [
        f"| {row['method'].upper()} | {success(row)} | {row['area']:.3f} | {100 * row['coverage']:.1f} % |"
        for row in table("uniform").to_dicts()
    ]


def rows_with_all_goals_and_uniform_weights() -> list[str]:
    evaluations = table("why-uniform", "evaluations").filter(pl.col("iteration") == 60)
    early = evaluations.filter(pl.col("variant") == "")["goal"].unique().to_list()
    rows = []
    for row in table("why-uniform").to_dicts():
        variant = row["variant"].removeprefix("goals=all")
        if not row["variant"].startswith("goals=all") or "steps" in variant:
            continue
        mine = evaluations.filter(pl.col("method") == row["method"], pl.col("variant") == row["variant"])
        near = mine.filter(pl.col("goal").is_in(early))["success_rate"].mean()
        far = mine.filter(~pl.col("goal").is_in(early))["success_rate"].mean()
        name = row["method"].upper() + variant.replace("+L=", ", L = ")
        rows.append(f"| {name} | {row['runs']} | {success(row)} | {100 * near:.1f} % | {100 * far:.1f} % |")
    return rows


MAKERS = (
    rows_with_one_target,
    rows_with_more_goals,
    rows_with_uniform_weights,
    rows_with_all_goals_and_uniform_weights,
)


def test_every_row_of_the_page_is_a_row_of_the_tables():
    given = [line for line in PAGE.splitlines() if line.startswith("| ") and " ± " in line]
    assert sorted(given) == sorted(row for make in MAKERS for row in make())


@pytest.mark.parametrize(
    ("suite", "first", "second", "variants"),
    [
        ("targets", "alp+d+f", "alp", ("", "")),
        ("targets", "alp+d+f", "perm", ("", "")),
        ("targets", "alp+d+f", "alp+d", ("", "")),
        ("all-goals", "alp+d+f", "alp+d", ("goals=all", "goals=all")),
        ("uniform", "unif", "alp+d+f", ("", "")),
        ("uniform", "alp", "alp+d+f", ("", "")),
        ("uniform", "i-diff", "alp+d+f", ("", "")),
        ("why-uniform", "alp+d+f", "alp", ("goals=all", "goals=all")),
    ],
)
def test_the_paired_differences_are_those_of_the_tables(suite, first, second, variants):
    there = {
        (row["first_method"], row["first_variant"], row["second_method"], row["second_variant"]): row
        for row in table(suite, "comparisons").to_dicts()
    }
    sign = 1
    row = there.get((first, variants[0], second, variants[1]))
    if row is None:
        sign, row = -1, there[second, variants[1], first, variants[0]]
    low, high = sorted(100 * sign * row[f"difference_{end}"] for end in ("low", "high"))
    difference = f"{100 * sign * row['difference']:.1f}"
    ways = [f"{plus}{difference}{unit} ({low:.1f} to {high:.1f})" for plus in ("", "+") for unit in ("", " points")]
    assert any(way in PAGE or way.replace(" (", ", ").rstrip(")") in PAGE for way in ways), ways
