"""A run's picture shows its records, and the numbers plotted lie beside it."""

from pathlib import Path

import polars as pl
import pytest

from forethought.config import load_config
from forethought.experiments.curves import COLOURS, MARKERS, MOST_GOALS, OTHERS, TRAINING, draw_run
from forethought.rundir import RunDirectory

GOALS = ["wood", "stone", "gem"]


def make_run(path: Path, iterations: int = 6) -> RunDirectory:
    config = load_config("toy", overrides={"curriculum.warmup": 2})
    run = RunDirectory.create(path, config.to_toml(), {"run_id": "x"})
    for iteration in range(1, iterations + 1):
        run.record_metrics(
            {"iteration": iteration, "steps": 100 * iteration, "mean_success_rate": None if iteration == 1 else 0.4}
        )
        share = [0.5, 0.3, 0.2] if iteration > 2 else [1 / 3] * 3
        run.record_curriculum(
            iteration,
            {
                "task": GOALS,
                "probability": share,
                "effective_share": share,
                "success_rate": [0.1] * 3,
                "learning_progress": [0.0] * 3,
                "downstream_potential": [float("nan")] * 3,
                "feasibility": [0.0] * 3,
                "selections": [1, 1, 1],
                "episodes": [3, 3, 3],
                "successes": [1.0, 0.0, 2.0],
                "calls": [0, 0, 0],
            },
        )
    run.flush()
    for iteration, rate in ((0, 0.0), (iterations, 0.5)):
        run.record_evaluation(
            {
                "iteration": [iteration] * 2,
                "steps": [100 * iteration] * 2,
                "goal": ["wood", "gem"],
                "episodes": [4] * 2,
                "successes": [int(4 * rate)] * 2,
                "first_step_successes": [0] * 2,
                "episodes_with_call": [0] * 2,
                "successes_with_call": [0] * 2,
                "success_rate": [rate] * 2,
                "wilson_low": [max(rate - 0.3, 0)] * 2,
                "wilson_high": [rate + 0.3] * 2,
            }
        )
    return run


def test_the_picture_and_its_numbers(tmp_path):
    run = make_run(tmp_path / "run")
    picture = draw_run(run.path)
    assert picture == run.path / "curves.png"
    assert picture.read_bytes().startswith(b"\x89PNG")

    success = pl.read_csv(run.path / "curves-success.csv")
    assert set(success["series"]) == {"wood", "gem", TRAINING}
    assert success.filter(pl.col("series") == "gem")["success_rate"].to_list() == [0.0, 0.5]
    shares = pl.read_csv(run.path / "curves-shares.csv")
    assert set(shares["series"]) == {"wood", "gem", OTHERS}
    totals = shares.group_by("iteration").agg(pl.col("effective_share").sum())["effective_share"]
    assert totals.to_list() == pytest.approx([1.0] * 6)
    last = dict(shares.filter(pl.col("iteration") == 6).select("series", "effective_share").iter_rows())
    assert last == pytest.approx({"wood": 0.5, OTHERS: 0.3, "gem": 0.2})


def test_every_goal_has_a_mark_of_its_own():
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(MARKERS) == MOST_GOALS


def test_a_run_without_evaluations_is_drawn_too(tmp_path):
    run = make_run(tmp_path / "run")
    (run.path / "evaluations.parquet").unlink()
    draw_run(run.path)
    assert set(pl.read_csv(run.path / "curves-success.csv")["series"]) == {TRAINING}


def test_drawing_leaves_no_global_state(tmp_path):
    import sys

    draw_run(make_run(tmp_path / "run").path)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="not a run directory"):
        draw_run(tmp_path)
    RunDirectory.create(tmp_path / "run", load_config("toy").to_toml(), {"run_id": "x"})
    with pytest.raises(ValueError, match="no records to draw yet"):
        draw_run(tmp_path / "run")
