import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import polars
import pytest
from polars.testing import assert_frame_equal

from forethought import checkpoint
from forethought.cli import run
from forethought.cli.eval import evaluate
from forethought.config import load_config
from forethought.domains import choose_backend
from forethought.progress import SilentReporter
from forethought.run import eligible_goals
from forethought.rundir import WALL_TIME_FIELDS, RunDirectory
from forethought.signals import stop_on_signals
from forethought.training import train

TINY = {
    "iterations": 6, "checkpoint_minutes": 0, "curriculum.warmup": 2,
    "tasks.target": "gem", "tasks.target_share": 0.5, "tasks.fixed_target_slots": 1,
    "tasks.goals_per_iteration": 4, "environment.envs_per_goal": 2,
    "environment.steps_per_iteration": 16, "environment.episode_limit": 8,
    "ppo.rollout_length": 8, "ppo.window": 4, "ppo.minibatches": 2,
    "network.cell_embedding": 4, "network.cell_features": 4, "network.channels": 4,
    "network.feature_units": 8, "network.observation_units": 8, "network.fuse_units": 8,
    "network.width": 8, "network.heads": 2, "network.memory": 4, "network.feedforward": 8,
    "network.head_units": 8, "network.head_layers": 1,
    "evaluation.every": 3, "evaluation.episodes": 3, "evaluation.num_envs": 16, "evaluation.chunk": 8,
}  # fmt: skip


def tiny(**changes):
    return load_config("toy", overrides=TINY | changes)


class At(SilentReporter):
    """Does something when an iteration is reported."""

    def __init__(self, iteration, action):
        self.at, self.action, self.messages = iteration, action, []

    def iteration(self, row, top):
        if row["iteration"] == self.at:
            self.action()

    def message(self, text):
        self.messages.append(text)


def send(*signals):
    def action():
        for number in signals:
            os.kill(os.getpid(), number)

    return action


def records(path):
    run = RunDirectory(path)
    wall = [name for name in run.metrics().columns if name in WALL_TIME_FIELDS]
    return run.metrics().drop(wall), run.curriculum(), run.evaluations()


def assert_same_runs(path, expected):
    for ours, theirs in zip(records(path), records(expected), strict=True):
        assert_frame_equal(ours, theirs, check_exact=True)
    ours, theirs = (checkpoint.load_latest(Path(run) / "checkpoints") for run in (path, expected))
    assert ours.iteration == theirs.iteration
    assert ours.info == theirs.info
    flat, other = checkpoint._flatten(ours.arrays), checkpoint._flatten(theirs.arrays)
    assert flat.keys() == other.keys()
    for name, value in flat.items():
        assert value.tobytes() == other[name].tobytes(), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbs."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    result = train(tiny(), path, reporter=SilentReporter(), argv=["here"])
    assert (result.iteration, result.steps, result.interrupted) == (6, 6 * 8 * 16, False)
    assert result.evaluation is not None
    return path


def test_a_run_leaves_its_records(whole):
    run = RunDirectory(whole)
    assert load_config(whole / "config.toml") == choose_backend(tiny())
    meta = run.meta
    assert meta["argv"] == ["here"]
    assert meta["versions"]["jax"] == jax.__version__
    assert set(meta["hashes"]) == {"goals", "connectivity", "feasibility", "embeddings"}
    assert meta["device"].startswith("cpu")

    metrics, curriculum, evaluations = run.metrics(), run.curriculum(), run.evaluations()
    assert metrics["iteration"].to_list() == [1, 2, 3, 4, 5, 6]
    assert metrics["steps"].to_list() == [128 * iteration for iteration in range(1, 7)]
    assert (metrics["learner/steps"] == 128).all()
    assert (metrics["learner/episodes"] == metrics["episodes"]).all()
    assert metrics["episodes"].sum() > 0
    assert metrics["learner/first_ratio_error"].max() < 1e-5
    assert any(name.startswith("curriculum/") for name in metrics.columns)
    assert any(name.startswith("environment/") for name in metrics.columns)

    rows = curriculum.drop("task").group_by("iteration", maintain_order=True).sum()
    assert rows["iteration"].to_list() == [1, 2, 3, 4, 5, 6]
    assert rows["selections"].to_list() == [4] * 6
    np.testing.assert_allclose(rows["probability"], 1)
    fixed = (curriculum["task"] == "gem").to_numpy()
    np.testing.assert_allclose(curriculum["effective_share"], (fixed + 3 * curriculum["probability"].to_numpy()) / 4)
    assert (curriculum["selections"].to_numpy() >= fixed).all()
    assert (curriculum["successes"] <= curriculum["episodes"]).all()
    assert curriculum["episodes"].sum() <= metrics["episodes"].sum()

    assert evaluations["iteration"].unique(maintain_order=True).to_list() == [0, 3, 6]
    assert (evaluations["steps"] == evaluations["iteration"] * 128).all()
    assert (evaluations["episodes"] == 3).all()
    assert checkpoint.iterations(run.checkpoints) == [5, 6]


KILLED = """
import os, signal, sys
from forethought.config import load_config
from forethought.progress import SilentReporter
from forethought.training import train

class Killer(SilentReporter):
    count = 0
    def message(self, text):
        if text.startswith("evaluating"):
            Killer.count += 1
            if sys.argv[3] == "evaluation" and Killer.count == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    def iteration(self, row, top):
        if sys.argv[3] == "iteration" and row["iteration"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)

train(load_config(sys.argv[1]), sys.argv[2], reporter=Killer())
"""


@pytest.mark.parametrize("where", ["iteration", "evaluation"])
def test_killed_and_continued_equals_undisturbed(whole, tmp_path, where):
    path = tmp_path / "run"
    command = [sys.executable, "-c", KILLED, whole / "config.toml", path, where]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    killed_after = {"iteration": [1, 2, 3, 4, 5], "evaluation": [1, 2, 3]}[where]
    assert RunDirectory(path).metrics()["iteration"].to_list() == killed_after
    result = train(tiny(), path, resume=True, reporter=SilentReporter())
    assert (result.iteration, result.interrupted) == (6, False)
    assert_same_runs(path, whole)
    assert len(RunDirectory(path).meta["continued"]) == 1


def test_a_signal_saves_and_a_damaged_checkpoint_is_passed_over(whole, tmp_path):
    path = tmp_path / "run"
    before = signal.getsignal(signal.SIGTERM)
    reporter = At(4, send(signal.SIGTERM))
    result = train(tiny(), path, reporter=reporter)
    assert (result.iteration, result.interrupted) == (4, True)
    assert signal.getsignal(signal.SIGTERM) is before
    assert any("SIGTERM" in line for line in reporter.messages)
    assert checkpoint.iterations(path / "checkpoints") == [3, 4]

    state = path / "checkpoints" / "4" / "state.npz"
    state.write_bytes(state.read_bytes()[:-100])
    reporter = At(None, None)
    assert not train(tiny(), path, resume=True, reporter=reporter).interrupted
    assert any("damaged" in line for line in reporter.messages)
    assert RunDirectory(path).meta["continued"][0]["iteration"] == 3
    assert_same_runs(path, whole)


def test_a_run_with_subroutines_records_its_calls_and_continues_exactly(tmp_path):
    # Episodes are under way, and calls in them, when an iteration ends.
    config = tiny(learner="subroutines", **{"evaluation.episodes": 2, "environment.episode_limit": 11})
    train(config, tmp_path / "whole", reporter=SilentReporter())
    calls = RunDirectory(tmp_path / "whole").curriculum().group_by("task").sum()
    run = RunDirectory(tmp_path / "whole")
    assert calls["calls"].sum() == run.metrics()["learner/calls"].sum() > 0
    rows, evaluations = run.curriculum(), run.evaluations()
    assert (rows.filter(rows["success_rate"] < 1 / 3)["calls"] == 0).all()
    assert (run.metrics()["learner/steps_in_calls"] >= run.metrics()["learner/calls"]).all()
    # Nothing is known before the first iteration, so nothing can be called.
    untrained = evaluations["iteration"] == 0
    assert evaluations.filter(untrained)["episodes_with_call"].sum() == 0
    assert evaluations.filter(~untrained)["episodes_with_call"].sum() > 0
    stopped = train(config, tmp_path / "cut", reporter=At(4, send(signal.SIGTERM)))
    assert (stopped.iteration, stopped.interrupted) == (4, True)
    train(config, tmp_path / "cut", resume=True, reporter=SilentReporter())
    assert_same_runs(tmp_path / "cut", tmp_path / "whole")

    # Measured again, the agent calls the same goals in the same episodes.
    assert evaluate(str(run.path), device="cpu") == 0
    assert_frame_equal(polars.read_parquet(run.path / "eval.parquet"), evaluations.tail(len(calls)))
    assert evaluate(str(run.path), ("gem",), trace=str(tmp_path / "trace.jsonl"), device="cpu") == 0
    header = json.loads((tmp_path / "trace.jsonl").read_text().splitlines()[0])
    found = checkpoint.load_latest(run.checkpoints)
    assert found is not None
    known = eligible_goals(found.arrays["curriculum"]["success_rate"])
    assert header["eligible"] == [goal for goal, is_known in zip(rows["task"], known, strict=False) if is_known]


def test_goals_may_be_called_from_a_third_on():
    rates = np.array([0.0, np.nextafter(1 / 3, 0), 1 / 3, 0.5, 1.0])
    assert eligible_goals(rates).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2])
def test_signals_raise_a_flag_and_are_given_back(number):
    before, reporter = signal.getsignal(number), At(None, None)
    with stop_on_signals(reporter) as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        assert number.name in reporter.messages[0]
    assert signal.getsignal(number) is before


def test_a_second_interrupt_stops_at_once():
    with pytest.raises(KeyboardInterrupt), stop_on_signals(SilentReporter()):
        send(signal.SIGINT, signal.SIGINT)()


def test_a_finished_run_stays_as_it_is(whole):
    before = (whole / "metrics.jsonl").read_bytes(), (whole / "evaluations.parquet").read_bytes()
    result = train(tiny(), whole, resume=True, reporter=SilentReporter())
    assert (result.iteration, result.interrupted) == (6, False)
    assert before == ((whole / "metrics.jsonl").read_bytes(), (whole / "evaluations.parquet").read_bytes())


def test_the_step_count_passes_two_to_the_31(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    shutil.rmtree(path / "checkpoints" / "6")
    found = checkpoint.load_latest(path / "checkpoints")
    checkpoint.save(path / "checkpoints", 5, found.arrays, found.info | {"steps": 2**31 - 100})
    result = train(tiny(), path, resume=True, reporter=SilentReporter())
    assert result.steps == 2**31 + 28
    run = RunDirectory(path)
    assert run.metrics()["steps"].to_list()[-1] == 2**31 + 28
    assert run.evaluations()["steps"].to_list()[-1] == 2**31 + 28


def test_memory_is_flat_and_nothing_compiles_after_the_first_iteration(tmp_path):
    usage, compiled_at = {}, []
    now = [0]

    class Watch(SilentReporter):
        def iteration(self, row, top):
            now[0] = row["iteration"]
            usage[now[0]] = sum(array.nbytes for array in jax.live_arrays())

    def listen(event, *_args, **_kwargs):
        if "backend_compile" in event:
            compiled_at.append(now[0])

    config = tiny(**{"iterations": 200, "evaluation.every": 50, "checkpoint_minutes": 60})
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        train(config, tmp_path / "run", reporter=Watch())
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert usage[200] == usage[2]
    assert len({usage[iteration] for iteration in range(2, 201)}) == 1
    assert compiled_at
    assert set(compiled_at) == {0}


@pytest.mark.filterwarnings("ignore:no evidence is left")
def test_an_iteration_without_a_finished_episode_has_no_nan(tmp_path):
    changes = {
        "iterations": 1, "seed": 3, "tasks.goals": ("gem-se",), "tasks.target": "gem-se",
        "environment.episode_limit": 1000,
        "environment.steps_per_iteration": 4, "ppo.rollout_length": 4, "tasks.goals_per_iteration": 2,
        "environment.envs_per_goal": 1, "evaluation.episodes": 1,
    }  # fmt: skip
    train(tiny(**changes), tmp_path / "run", reporter=SilentReporter())
    run = RunDirectory(tmp_path / "run")
    row = json.loads((run.path / "metrics.jsonl").read_text())
    assert row["episodes"] == 0
    assert all(value is not None for name, value in row.items() if name.startswith("learner/"))
    assert run.curriculum()["episodes"].to_list() == [0]
    assert "NaN" not in (run.path / "metrics.jsonl").read_text()


def test_bad_places_are_refused_before_anything_is_written(whole, tmp_path):
    before = sorted(whole.rglob("*"))
    with pytest.raises(ValueError, match="exists already"):
        train(tiny(), whole)
    with pytest.raises(ValueError, match="is not a run directory"):
        train(tiny(), tmp_path, resume=True)
    with pytest.raises(ValueError, match="configuration is not the one"):
        train(tiny(seed=1), whole, resume=True, reporter=SilentReporter())
    with RunDirectory(whole).locked(), pytest.raises(ValueError, match="is in use"):
        train(tiny(), whole, resume=True, reporter=SilentReporter())
    assert not list(tmp_path.iterdir())
    assert [path for path in sorted(whole.rglob("*")) if path.name != ".lock"] == [
        path for path in before if path.name != ".lock"
    ]


def test_a_missing_gpu_is_an_error(tmp_path):
    if jax.default_backend() == "gpu":
        pytest.skip("there is one")
    with pytest.raises(ValueError, match="'gpu' given"):
        train(tiny(device="gpu"), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_seeds_side_by_side_are_runs_that_go_on_together(whole, tmp_path, monkeypatch, capsys):
    command = ["train", str(whole / "config.toml"), "--seeds", "0", "1", "--out", str(tmp_path)]
    monkeypatch.setattr("forethought.progress.make_reporter", lambda: At(2, send(signal.SIGTERM)))
    assert run(command) == 85
    assert [checkpoint.iterations(tmp_path / f"seed-{seed}" / "checkpoints") for seed in (0, 1)] == [[1, 2]] * 2
    # One that is behind goes on by itself until they are level.
    shutil.rmtree(tmp_path / "seed-1")
    monkeypatch.setattr("forethought.progress.make_reporter", SilentReporter)
    assert run(command) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-0", "seed-1"]
    for seed in (0, 1):
        assert load_config(tmp_path / f"seed-{seed}" / "config.toml").seed == seed
    for ours, theirs in zip(records(tmp_path / "seed-0"), records(whole), strict=True):
        assert_frame_equal(ours, theirs, rel_tol=1e-4, abs_tol=1e-5)
    assert [len(table) for table in records(tmp_path / "seed-1")] == [len(table) for table in records(whole)]
    assert not records(tmp_path / "seed-1")[1].equals(records(whole)[1])
    runs = [RunDirectory(tmp_path / f"seed-{seed}").meta for seed in (0, 1)]
    assert runs[0]["run_id"] != runs[1]["run_id"]
    assert [len(meta.get("continued", [])) for meta in runs] == [1, 0]
    # What is done is left as it is.
    assert run(command) == 0
    assert [RunDirectory(tmp_path / f"seed-{seed}").meta for seed in (0, 1)] == runs
    with RunDirectory(tmp_path / "seed-1").locked():
        shutil.rmtree(tmp_path / "seed-0")
        (tmp_path / "seed-1" / "evaluations.parquet").unlink()
        assert run(command) == 2
    assert "seed-1 is in use by process" in capsys.readouterr().err
    assert not (tmp_path / "seed-0").exists()
