"""Tables of synthetic records against numbers worked out by hand."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forethought.cli import run as forethought
from forethought.config import ConfigError
from forethought.curriculum import Curriculum
from forethought.domains import load_domain
from forethought.experiments.outcome import write_results
from forethought.experiments.permuted import permuted
from forethought.experiments.results import at_fraction, comparable, evaluations, finished, run_curves
from forethought.experiments.suites import load_suite
from forethought.experiments.summaries import ALL_TARGETS, comparisons, overlap, profiles, retained, summary
from forethought.rundir import RunDirectory

SUITE = """
title = "small"
targets.tiny = ["gem", "wood"]
scales.tiny.about = "seconds"
scales.tiny.targets = { preset = "toy", settings = { iterations = 6, evaluation = { every = 3 } } }
scales.tiny.uniform = { preset = "toy", settings = { iterations = 6, evaluation = { every = 3 } } }

[[blocks]]
over = "targets"
methods = ["alp", "perm"]
seeds = [0, 1]

[[blocks]]
over = "uniform"
methods = ["unif", "alp"]
seeds = [0, 1]
"""
GOALS = ["wood", "gem", "lava"]
STEPS = 1000


def record(run, iteration, rates, episodes=100):
    count = len(rates)
    run.record_evaluation(
        {
            "iteration": [iteration] * count,
            "steps": [STEPS * iteration] * count,
            "goal": GOALS,
            "episodes": [episodes] * count,
            "successes": [round(rate * episodes) for rate in rates],
            "first_step_successes": [0] * count,
            "episodes_with_call": [0] * count,
            "successes_with_call": [0] * count,
            "success_rate": list(rates),
            "wilson_low": [0.0] * count,
            "wilson_high": [1.0] * count,
        }
    )


def make_run(out, spec, *courses):
    """One evaluation for each of `courses`, three iterations apart."""
    run = RunDirectory.create(Path(out) / spec.directory, spec.config.to_toml(), {"run_id": "x"})
    for number, rates in enumerate(courses):
        record(run, 3 * number, rates)
    return run


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return load_suite(path, "tiny")


def spec_of(suite, group, method, seed):
    return next(run for run in suite.runs if (run.group, run.method, run.seed) == (group, method, seed))


NOTHING = (0.0, 0.0, 0.0)


@pytest.fixture
def out(tmp_path, suite):
    """Runs on gem: alp ends at 0.6 and 0.2, perm at 0.4 and (cut off) 0.1. Runs on wood: alp alone."""
    folder = tmp_path / "runs"
    make_run(folder, spec_of(suite, "gem", "alp", 0), NOTHING, (0.2, 0.5, 0.0), (0.9, 0.6, 0.0))
    make_run(folder, spec_of(suite, "gem", "alp", 1), NOTHING, NOTHING, (0.0, 0.2, 0.1))
    make_run(folder, spec_of(suite, "gem", "perm", 0), NOTHING, NOTHING, (0.5, 0.4, 0.3))
    make_run(folder, spec_of(suite, "gem", "perm", 1), NOTHING, (0.0, 0.1, 0.0))
    make_run(folder, spec_of(suite, "wood", "alp", 0), NOTHING, NOTHING, (0.8, 0.0, 0.0))
    make_run(folder, spec_of(suite, "wood", "alp", 1), NOTHING, NOTHING, (1.0, 0.0, 0.0))
    make_run(folder, spec_of(suite, "uniform", "unif", 0), NOTHING, NOTHING, (0.3, 0.0, 0.0))
    make_run(folder, spec_of(suite, "uniform", "alp", 0), NOTHING, (0.6, 0.0, 0.0), (0.9, 0.6, 0.0))
    return folder


def row(table, **where):
    found = table.filter(*(pl.col(name) == value for name, value in where.items()))
    assert len(found) == 1, found
    return found.row(0, named=True)


def test_evaluations_are_those_of_all_runs_that_have_begun(suite, out):
    table = evaluations(suite, out)
    assert table.columns == [
        "group", "learner", "method", "variant", "seed",
        "iteration", "steps", "goal", "episodes", "successes", "success_rate",
    ]  # fmt: skip
    assert len(table) == (7 * 3 + 2) * 3
    one = row(table, group="gem", method="alp", seed=0, iteration=6, goal="gem")
    assert (one["steps"], one["episodes"], one["successes"], one["success_rate"]) == (6000, 100, 60, 0.6)
    assert one["learner"] == "primitive"
    assert one["variant"] == ""
    assert len(evaluations(suite, out / "elsewhere")) == 0


def test_scores_are_the_targets_or_the_mean(suite, out):
    curves = run_curves(evaluations(suite, out))
    assert row(curves, group="gem", method="alp", seed=0, iteration=6)["score"] == 0.6
    assert row(curves, group="uniform", method="alp", iteration=6)["score"] == pytest.approx(0.5)
    assert row(curves, group="gem", method="alp", seed=0, iteration=6)["coverage"] == pytest.approx(2 / 3)


def test_a_broken_record_is_named(suite, out):
    path = out / spec_of(suite, "gem", "alp", 0).directory
    (path / "evaluations.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=f"^{path}: its evaluations cannot be read: "):
        evaluations(suite, out)


def test_only_runs_at_their_end_count_there(suite, out):
    table = evaluations(suite, out)
    assert set(finished(suite, table).filter(method="perm")["seed"]) == {0}
    assert len(finished(suite, table).filter(method="perm")) == 3 * 3
    assert set(at_fraction(suite, table)["iteration"]) == {6}
    assert set(at_fraction(suite, table, 0.5)["iteration"]) == {3}
    assert set(at_fraction(suite, table, 0.5).filter(method="perm")["seed"]) == {0, 1}
    assert set(at_fraction(suite, table, 0.99)["iteration"]) == {3}
    assert set(at_fraction(suite, table, 1 / 3)["iteration"]) == {0}
    with pytest.raises(ValueError, match=r"fraction is 1.5; it must lie in \(0, 1\]"):
        at_fraction(suite, table, 1.5)


def test_runs_that_have_only_begun_count_where_none_of_their_kind_is_finished(suite, out):
    table = evaluations(suite, out)
    assert set(comparable(suite, table).filter(group="gem", method="perm")["seed"]) == {0}
    early = table.filter(pl.col("iteration") < 6)
    assert set(comparable(suite, early).filter(group="gem", method="perm")["seed"]) == {0, 1}
    assert len(comparable(suite, early)) == len(early)


def test_a_third_of_the_iterations_is_a_third(tmp_path):
    path = tmp_path / "small.toml"
    for iterations in (720, 1440, 180, 90):
        path.write_text(SUITE.replace("iterations = 6", f"iterations = {iterations}"))
        suite = load_suite(path, "tiny")
        table = pl.DataFrame(
            {"group": "gem", "method": "alp", "learner": "primitive", "variant": "", "seed": 0, "iteration": third}
            for third in (iterations // 3, iterations // 3 * 2)
        )
        assert at_fraction(suite, table, 1 / 3)["iteration"].to_list() == [iterations // 3]
        assert at_fraction(suite, table, 2 / 3)["iteration"].to_list() == [iterations // 3 * 2]


def test_a_share_is_meant_as_it_is_written(tmp_path):
    assert 0.7 * 180 < 126
    path = tmp_path / "small.toml"
    path.write_text(SUITE.replace("iterations = 6", "iterations = 180"))
    keys = {"group": "gem", "method": "alp", "learner": "primitive", "variant": "", "seed": 0}
    table = pl.DataFrame([keys | {"iteration": iteration} for iteration in (123, 126)])
    assert at_fraction(load_suite(path, "tiny"), table, 0.7)["iteration"].to_list() == [126]


def test_the_summary(suite, out):
    table = summary(suite, evaluations(suite, out))
    alp = row(table, group="gem", method="alp")
    assert alp["runs"] == 2
    assert alp["mean"] == pytest.approx(0.4)
    assert alp["deviation"] == pytest.approx(math.sqrt(0.04 + 0.04))
    assert (alp["iqm"], alp["iqm_low"], alp["iqm_high"]) == pytest.approx((0.4, 0.2, 0.6))
    assert alp["coverage"] == pytest.approx(2 / 3)
    # Curves of the target 0, 0.5, 0.6 and 0, 0, 0.2 at even steps.
    assert alp["area"] == pytest.approx((0.4 + 0.05) / 2)
    assert alp["reached"] == 1
    assert alp["steps_to_half"] == math.inf

    perm = row(table, group="gem", method="perm")
    assert (perm["runs"], perm["mean"], perm["deviation"], perm["iqm_low"]) == (1, 0.4, None, None)
    assert row(table, group="wood", method="alp")["steps_to_half"] == 6000
    assert row(table, group="uniform", method="alp")["mean"] == pytest.approx(0.5)

    both = row(table, group=ALL_TARGETS)
    assert (both["method"], both["runs"], both["reached"], both["deviation"]) == ("alp", 4, 3, None)
    assert both["mean"] == pytest.approx((0.6 + 0.2 + 0.8 + 1.0) / 4)
    assert both["iqm"] == pytest.approx((0.6 + 0.8) / 2)


def test_comparisons_are_of_paired_runs(suite, out):
    table = comparisons(suite, evaluations(suite, out))
    one = row(table, group="gem")
    assert (one["first_method"], one["second_method"], one["pairs"]) == ("alp", "perm", 1)
    assert (one["difference"], one["improvement"], one["difference_low"]) == (pytest.approx(0.2), 1.0, None)
    record(RunDirectory(out / spec_of(suite, "gem", "perm", 1).directory), 6, (0.0, 0.5, 0.0))
    two = row(comparisons(suite, evaluations(suite, out)), group="gem")
    # Pairs 0.6 against 0.4 and 0.2 against 0.5; of the four pairings the first wins one: 0.6 beats both.
    assert two["pairs"] == 2
    assert two["difference"] == pytest.approx((0.2 - 0.3) / 2)
    assert (two["difference_low"], two["difference_high"]) == pytest.approx((-0.3, 0.2))
    assert two["improvement"] == pytest.approx(0.5)
    assert (two["improvement_low"], two["improvement_high"]) == pytest.approx((0, 1))
    uniform = row(table, group="uniform")
    assert (uniform["first_method"], uniform["second_method"]) == ("unif", "alp")
    assert uniform["difference"] == pytest.approx(0.1 - 0.5)


def test_overlap_is_seen_from_either_side(suite, out):
    table = overlap(suite, evaluations(suite, out))
    from_alp = row(table, group="gem", first_method="alp")
    from_perm = row(table, group="gem", first_method="perm")
    # alp achieves wood and gem; perm all three.
    assert (from_alp["seed"], from_alp["achieved"], from_alp["shared"]) == (0, pytest.approx(2 / 3), 1.0)
    assert (from_perm["achieved"], from_perm["shared"]) == (1.0, pytest.approx(2 / 3))
    assert row(table, group="uniform", first_method="alp")["shared"] == 0.5
    assert set(table["group"]) == {"gem", "uniform"}


def test_only_like_is_compared(suite, out, tmp_path):
    path = tmp_path / "small.toml"
    variant = '\n[variants]\n"goals=2" = { evaluation.goals = ["wood", "gem"] }\n'
    block = '\n[[blocks]]\nover = "uniform"\nmethods = ["alp"]\nvariants = ["goals=2"]\nseeds = [0]\n'
    path.write_text(SUITE.replace("\n[[blocks]]", variant + "\n[[blocks]]", 1) + block)
    suite = load_suite(path, "tiny")
    run = make_run(out, next(run for run in suite.runs if run.variant), NOTHING, NOTHING, (0.5, 0.0, 0.1))
    table = evaluations(suite, out).filter((pl.col("variant") == "") | (pl.col("goal") != "lava"))
    assert run.path.is_dir()
    # A mean over two goals is none over three; what both runs achieve is asked of the two goals that both measured.
    assert set(comparisons(suite, table).filter(group="uniform")["second_variant"]) == {""}
    one = row(overlap(suite, table), group="uniform", first_method="alp", first_variant="", second_variant="goals=2")
    assert (one["achieved"], one["shared"]) == (1.0, 0.5)


def test_profiles_count_goals_strictly_above(suite, out):
    table = profiles(suite, evaluations(suite, out))
    one = table.filter(group="gem", method="alp", seed=0)
    at = dict(zip(one["threshold"].round(2), one["share"], strict=True))
    assert (at[0.0], at[0.59], at[0.6], at[0.9], at[1.0]) == pytest.approx((2 / 3, 2 / 3, 1 / 3, 0, 0))
    assert len(table) == 7 * 101


def test_a_target_stays_if_any_method_ends_above_0(suite, out):
    table = retained(suite, evaluations(suite, out))
    assert table["group"].to_list() == ["gem", "wood"]
    gem = row(table, group="gem")
    assert (gem["best_method"], gem["best_seed"], gem["best"], gem["stays"]) == ("alp", 0, 0.6, True)
    none = evaluations(suite, out).with_columns(success_rate=pl.lit(0.0))
    assert retained(suite, none)["stays"].to_list() == [False, False]


def record_potential(suite, out, seed, potential=None):
    """The first rows of the record of a PERM run, by default with the potential that its curriculum begins with."""
    spec = spec_of(suite, "gem", "perm", seed)
    domain = load_domain(spec.config)
    if potential is None:
        potential = Curriculum(
            domain.tasks,
            connectivity=domain.connectivity,
            feasibility=domain.feasibility,
            method="perm",
            seed=seed,
            config=spec.config.curriculum,
        ).downstream_potential
    run = RunDirectory(out / spec.directory)
    for iteration in (1, 2):
        zeros = [0.0] * len(domain.tasks)
        run.record_curriculum(
            iteration,
            {
                "task": domain.tasks.ids,
                "downstream_potential": potential / iteration,
                **dict.fromkeys(
                    ("probability", "effective_share", "success_rate", "learning_progress", "feasibility", "successes"),
                    zeros,
                ),
                **dict.fromkeys(("selections", "episodes", "calls"), [0] * len(domain.tasks)),
            },
        )
    run.flush()
    return domain.tasks.ids, potential


def test_what_a_permuted_graph_values_is_held_against_the_graph_itself(suite, out):
    ids, potential = record_potential(suite, out, 0)
    record_potential(suite, out, 1, np.linspace(0.9, 0.1, 9))
    table = permuted(suite, out)
    assert set(table["seed"]) == {0, 1}
    one = table.filter(seed=0)
    valued = {ids[index]: potential[index] for index in np.flatnonzero(potential)}
    assert valued
    assert dict(zip(one["goal"], one["potential"], strict=True)) == pytest.approx(valued)
    assert one["potential"].is_sorted(descending=True)
    assert one["rank"].to_list() == list(range(1, len(one) + 1))
    np.testing.assert_allclose(one["mean_potential"], one["potential"] * 0.75)
    assert set(one["success"]) == {0.4}

    every = table.filter(seed=1)
    assert every["goal"].to_list() == list(ids)
    # The graph itself: stone leads to gem with weight 0.9 (D = 0.3 x 0.9), wood by way of it, nothing else does.
    truth = {"stone": (1, 0.27, 0.9), "wood": (2, 0.0648, 0.0)}
    for goal, *found, prerequisite in every.select(
        "goal", "true_rank", "true_potential", "true_weight", "prerequisite"
    ).iter_rows():
        assert found == pytest.approx(truth.get(goal, (3, 0.0, 0.0)))
        assert prerequisite == (goal == "stone")
    assert permuted(suite, out, most=1)["goal"].to_list() == [one["goal"][0], ids[0]]


def test_goals_of_equal_potential_keep_the_order_of_the_tasks(suite, out):
    ids, _ = record_potential(suite, out, 1, np.full(9, 0.3))
    assert permuted(suite, out)["goal"].to_list() == list(ids)


def test_everything_is_written_and_printed(suite, out, tmp_path, capsys):
    record_potential(suite, out, 0)
    folder, _ = write_results(suite, out)
    assert folder == out / "results" / "small-tiny"
    names = ("evaluations", "summary", "comparisons", "overlap", "profiles", "targets", "permuted")
    assert {path.name for path in folder.iterdir()} == {f"{name}.parquet" for name in names}
    for name in names:
        table = pl.read_parquet(folder / f"{name}.parquet")
        assert table.columns[:2] == ["suite", "scale"]
        assert set(table["suite"]) == {"small"}
        assert table.schema.get("seed", pl.Int64) == pl.Int64
    assert forethought(["results", str(tmp_path / "small.toml"), "--scale", "tiny", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "7 of 12 runs done" in printed
    assert "40.0% +- 28.3%" in printed
    assert "6e+03 steps (2 of 2)" in printed
    assert "stays" in printed
    assert "primitive  alp                unif              66.7%         50.0%" in printed
    assert str(folder) in printed


def test_nothing_evaluated_and_other_configurations_are_refused(suite, out, tmp_path, capsys):
    arguments = ["results", str(tmp_path / "small.toml"), "--scale", "tiny", "--out"]
    assert forethought([*arguments, str(tmp_path / "nowhere")]) == 2
    command = f"forethought sweep {arguments[1]} --scale tiny --out {tmp_path / 'nowhere'}"
    assert f"no run in {tmp_path / 'nowhere'} has been evaluated yet; make them with: {command}" in (
        capsys.readouterr().err
    )
    path = out / spec_of(suite, "gem", "alp", 0).directory / "config.toml"
    path.write_text(path.read_text().replace("episode_limit = 32", "episode_limit = 33"))
    with pytest.raises(ConfigError, match=r"environment\.episode_limit is 33 there and 32 is asked for"):
        evaluations(suite, out)
    assert forethought([*arguments, str(out)]) == 2
    assert "episode_limit is 33 there" in capsys.readouterr().err
