"""Tables hold what the paper's hold: every goal, every value tried, and success at thirds of the budget."""

import csv
import tomllib
from dataclasses import replace

import polars as pl
import pytest

from forethought.config import read_layer
from forethought.craftax.shipped import goals
from forethought.experiments.figures import MissingRunsError, Study
from forethought.experiments.suites import SUITES, load_suite
from forethought.experiments.tables import Table, make_table, markdown, write_table
from forethought.experiments.tables.formats import latex
from forethought.experiments.tables.goals import goal_rows
from forethought.experiments.tables.tuned import TUNED


def test_the_goals_of_the_benchmark_are_counted_to_256():
    rows = make_table(1).rows
    assert rows[0] == ("Have at least n wood.", "1, 2, 4, 8, 16, 32, 64", "7")
    assert rows[4] == ("Have at least n diamonds.", "1, 2, 3, 6, 12", "32")
    assert rows[11] == ("Obtain a wood pickaxe or better.", "–", "57")
    assert ("Reach dexterity level n.", "2, 3, 4, 5", "83") in rows
    assert ("Reach floor 1, the Dungeon.", "–", "92") in rows
    assert rows[-2:] == (
        ("Kill at least n hostile monsters on floor 8, the Graveyard.", "2, 8", "256"),
        ("all goals", "", "256"),
    )


def test_every_goal_is_in_one_row():
    texts = []
    for text, numbers in goal_rows(goals()):
        texts += [text.replace(" n ", f" {n} ").replace("level n.", f"level {n}.") for n in numbers] or [text]
    # Where n is 1 the goal itself is worded in the singular.
    plural = {goal.text for goal in goals()} - set(texts)
    assert len(texts) == len(set(texts)) == 256
    assert all(" 1 " in text for text in plural)


def test_tuned_settings_hold_the_value_that_the_experiments_use():
    preset = read_layer("paper")
    rows = {row[0]: row[1:] for row in make_table(2).rows}
    assert len(rows) == 10
    assert rows["Learning rate"] == ("3e-5, 5e-5, 1e-4, 2e-4", "2e-4")
    assert rows["Exponent of learning progress ρ"] == ("1/2, 2/3, 1", "1/2")
    for tuned in TUNED:
        section, field = tuned.field.split(".")
        assert preset[section][field] in tuned.values


def test_the_tuning_suite_tries_every_value_of_the_table():
    variants = tomllib.loads(SUITES["tuning"].read_text(encoding="utf-8"))["variants"]
    used = {run.variant for run in load_suite("tuning", "paper").runs}
    tried = {
        (f"{section}.{field}", round(value, 6))
        for name in used
        for section, fields in variants[name].items()
        for field, value in fields.items()
    }
    preset = read_layer("paper")
    for tuned in TUNED:
        section, field = tuned.field.split(".")
        others = {(tuned.field, round(value, 6)) for value in tuned.values if value != preset[section][field]}
        assert others <= tried


def test_sensitivity_is_given_at_thirds_of_the_budget(studies):
    study = studies("sensitivity")
    table = make_table(3, study)
    headings = [row[0] for row in table.rows if len(row) == 1]
    assert headings == [
        "Uniform weights: 3 seeds, after 1.0, 2.0, 3.0 billion steps",
        "Dungeon: 5 seeds, after 0.5, 1.0, 1.5 billion steps",
        "Skeleton: 5 seeds, after 0.5, 1.0, 1.5 billion steps",
    ]
    uniform, dungeon = table.rows[1:6], table.rows[7:12]
    assert [row[:3] for row in uniform] == [
        ("main", "2", "1"), ("", "1", "1"), ("", "3", "1"), ("", "2", "3"), ("", "2", "10"),
    ]  # fmt: skip
    assert [row[1:3] for row in dungeon] == [("2", "1"), ("1", "1"), ("3", "1"), ("2", "0.3"), ("2", "3")]
    rates = study.evaluations.filter(
        (pl.col("group") == "reach_floor_1")
        & (pl.col("goal") == "reach_floor_1")
        & (pl.col("variant") == "L=3")
        & (pl.col("iteration") == 480)
    )["success_rate"]
    assert len(rates) == 5
    assert dungeon[2][4] == f"{100 * rates.mean():.2f} ± {100 * rates.std(ddof=1):.2f}"
    numbers = [row for row in table.numbers if row[:4] == ("reach_floor_1", "3", "1", "0.6667")]
    assert [row[4:6] for row in numbers] == [("1006632960", "5")]


def test_budgets_that_no_run_has_reached_are_left_open(studies):
    study = studies("sensitivity", "laptop")
    early = study.evaluations.filter(pl.col("iteration") <= 40)
    rows = make_table(3, Study(study.suite, early, study.record, study.command, study.texts)).rows
    assert rows[0] == ("Uniform weights: 3 seeds, after 0.7, 1.3 million steps",)
    assert {row[5] for row in rows if len(row) > 1} == {"–"}
    with pytest.raises(MissingRunsError, match=r"table 3: no run .*: forethought sweep sensitivity --scale laptop"):
        make_table(3, Study(study.suite, early.clear(), study.record, study.command, study.texts))


def test_means_are_of_the_finished_seeds_and_say_how_many(studies):
    study = studies("sensitivity", "laptop")
    last = (pl.col("seed") == 2) & (pl.col("variant") == "L=1")
    begun = replace(study, evaluations=study.evaluations.filter(~last | (pl.col("iteration") < 45)))
    without = replace(study, evaluations=study.evaluations.filter(~last))
    assert make_table(3, begun).rows == make_table(3, without).rows
    assert make_table(3, begun).rows[0][0].startswith("Uniform weights: 2 to 3 seeds, after")
    single = replace(study, evaluations=study.evaluations.filter(pl.col("seed") == 0))
    made = make_table(3, single)
    assert made.rows[0][0].startswith("Uniform weights: 1 seed, after")
    assert not [cell for row in made.rows for cell in row if "±" in cell]
    assert {row[-1] for row in made.numbers[1:]} == {""}


def test_runs_that_have_only_begun_are_named_without_numbers(studies):
    study = studies("sensitivity", "laptop")
    made = make_table(3, replace(study, evaluations=study.evaluations.filter(pl.col("iteration") == 0)))
    assert made.rows[0] == ("Uniform weights: no run has come to a third of the budget",)
    assert {cell for row in made.rows if len(row) > 1 for cell in row[3:]} == {"–"}


def test_a_table_of_runs_needs_them():
    with pytest.raises(ValueError, match="table 3 shows runs of a suite such as sensitivity"):
        make_table(3)
    with pytest.raises(ValueError, match="table is 4; allowed are 1 to 3"):
        make_table(4)


def test_all_three_formats_hold_the_cells(tmp_path):
    table = Table("T", ("a|b", "n"), (("head",), ("x_1 & {y}", "3 ± 1")), "Caption.", "Note.")
    assert "| a\\|b | n |\n| --- | --- |\n| **head** |  |\n| x_1 & {y} | 3 ± 1 |" in markdown(table)
    assert "x\\_1 \\& \\{y\\} & 3 $\\pm$ 1 \\\\" in latex(table)
    assert "\\multicolumn{2}{l}{\\emph{head}}" in latex(table)
    paths = write_table(table, tmp_path / "new", "table-9")
    assert [path.name for path in paths] == ["table-9.md", "table-9.csv", "table-9.tex"]
    assert list(csv.reader(paths[1].read_text(encoding="utf-8").splitlines())) == [
        ["a|b", "n"],
        ["head"],
        ["x_1 & {y}", "3 ± 1"],
    ]
