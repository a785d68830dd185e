"""`sweep status` reads directories only, and two sweeps of one suite share it; `sweep budget` adds suites up."""

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from forethought.cli import run as forethought
from forethought.config import ConfigError
from forethought.experiments.budget import Speed, budget, measured_on, speed_of
from forethought.experiments.claim import claimed
from forethought.experiments.cost import evaluation_steps, evaluations
from forethought.experiments.engines import inline
from forethought.experiments.runs import log_path, write_plan
from forethought.experiments.status import counts, status
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import plan
from forethought.rundir import EVALUATION_COLUMNS, METRICS, RunDirectory


@pytest.fixture
def runs(suite_file, tmp_path):
    return plan(load_suite(suite_file, "tiny"), tmp_path / "out", "jax")


def begin(run, *rates, meta=None, done=False):
    """A run directory with a line of metrics for each rate."""
    config = run.spec.config
    record = RunDirectory.create(run.path, config.to_toml(), meta or {})
    for iteration, rate in enumerate(rates, 1):
        record.record_metrics({"iteration": iteration, "steps_per_second": rate})
    if done:
        kinds = EVALUATION_COLUMNS.items()
        values = {"Int64": config.iterations, "Float64": 0.5, "String": "gem"}
        record.record_evaluation({name: [values[kind]] for name, kind in kinds})
    return record


def everything(folder):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def test_status_is_what_the_directories_say_and_changes_nothing(runs, suite_file, tmp_path, capsys):
    alp, unif, perm = runs
    begin(alp, 5.0, done=True)
    begin(unif, 1000.0, 1234.0)
    with open(unif.path / METRICS, "a") as file:
        file.write('{"iteration": 3, "steps')  # A line that is being written.
    write_plan(perm.path, perm.spec.config)
    log_path(perm.path).write_text("something\nValueError: no luck\n\n")
    arguments = ["sweep", "status", str(suite_file), "--scale", "tiny", "--out", str(tmp_path / "out")]
    with claimed(unif.path, "slurm 7"):
        before = everything(tmp_path / "out")
        assert forethought(arguments) == 0
        assert everything(tmp_path / "out") == before
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [str(alp.path), "done"]
    who = rf"process {os.getpid()} on \S+ \(slurm 7\) for \d s, last sign of life \d s ago"
    assert re.fullmatch(rf"{unif.path} +at work, 2 of 60 iterations, 1\.23k steps/s: {who}", lines[1])
    assert lines[2].split(maxsplit=1) == [str(perm.path), "waiting; last words: ValueError: no luck"]
    assert lines[3] == "3 runs: 1 done, 1 at work, 1 waiting"

    # What was not saved is not counted once nobody is at work; a void claim says who was.
    assert status([unif])[0].iteration == 0
    program = (
        "import sys, os; from forethought.experiments.claim import claimed\nwith claimed(sys.argv[1]): os._exit(1)"
    )
    gone = subprocess.Popen([sys.executable, "-c", program, str(unif.path)])
    gone.wait()
    assert forethought([*arguments, "--only", "unif"]) == 0
    printed = capsys.readouterr().out
    assert f"stopped, 0 of 60 iterations: gone is process {gone.pid} on" in printed
    assert printed.endswith("1 runs: 1 stopped\n")


def test_status_of_a_suite_that_nobody_has_begun(runs, tmp_path):
    assert counts(status(runs)) == {"new": 3}
    assert not (tmp_path / "out").exists()


SLOW = """
import sys, time
from forethought.experiments.claim import Busy, claimed
try:
    with claimed(sys.argv[1]), open(sys.argv[2], "a") as file:
        print("begin", sys.argv[1], file=file, flush=True)
        time.sleep(0.3)
        print("end", sys.argv[1], file=file, flush=True)
except Busy as error:
    print("error:", error, flush=True)
    sys.exit(75)
"""


def test_two_sweeps_at_once_share_the_runs(runs, tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    monkeypatch.setattr(inline, "run_command", lambda path: [sys.executable, "-c", SLOW, str(path), str(notes)])
    monkeypatch.setattr(inline, "in_use", lambda path: None)  # Neither looks before it begins: the worst timing.
    monkeypatch.setattr(inline, "share_cores", lambda jobs, one: [os.sched_getaffinity(0)] * jobs)
    results = []
    sweeps = [
        threading.Thread(target=lambda: results.append(inline.sweep(runs, jobs=3, say=lambda line: None)))
        for _ in range(2)
    ]
    for each in sweeps:
        each.start()
    for each in sweeps:
        each.join()
    assert [(result.failures, result.left) for result in results] == [((), 0)] * 2
    assert all(result.done + result.elsewhere == 3 for result in results)
    # These processes leave no run that is done, so one that was late may have had its turn after the other.
    at_work, seen = set(), set()
    for line in notes.read_text().splitlines():
        verb, path = line.split(" ", 1)
        assert (path in at_work) == (verb == "end")
        at_work ^= {path}
        seen.add(path)
    assert at_work == set()
    assert seen == {str(run.path) for run in runs}


@contextmanager
def held(run):
    """Another process has claimed a run."""
    run.path.parent.mkdir(parents=True)
    program = "import sys; from forethought.experiments.claim import claimed\n"
    program += "with claimed(sys.argv[1]): print(1, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        yield process.pid


def test_what_another_process_is_at_or_has_done_meanwhile_is_left_to_it(runs, monkeypatch):
    alp, unif, perm = runs
    monkeypatch.setattr(inline, "run_command", lambda path: [sys.executable, "-c", "raise SystemExit('trained')"])
    begin(unif, done=True)
    lines = []
    with held(alp) as process:
        result = inline.sweep(runs, say=lines.append)
    assert (result.done, result.elsewhere, result.left) == (1, 1, 0)
    assert [failure.path for failure in result.failures] == [perm.path]
    in_use = f"{alp.path} is left to another process: run {alp.path} is in use by process {process} on"
    assert lines[0].startswith(in_use)
    assert lines[1] == f"{unif.path} done by another process"


def test_a_sweep_that_leaves_runs_to_others_is_not_done(suite_file, runs, tmp_path, capsys):
    arguments = ["sweep", str(suite_file), "--scale", "tiny", "--out", str(tmp_path / "out"), "--only", "alp"]
    with held(runs[0]):
        assert forethought(arguments) == 85
    printed = capsys.readouterr()
    assert printed.out == "0 of 1 runs done\n"
    assert printed.err.endswith("1 runs are in use by other processes\n")


# --- budget ---


def test_a_budget_counts_a_run_once_and_leaves_out_what_is_done(suite_file, runs, tmp_path):
    second = tmp_path / "second.toml"
    second.write_text(suite_file.read_text().replace('["alp", "unif", "perm"]', '["alp", "i-diff"]'))
    begin(runs[1], done=True)
    speeds = {"primitive": Speed(10.0, "as given")}
    names = (str(suite_file), str(second))
    first, other = budget(names, "tiny", tmp_path / "out", speeds, runs_per_device=2)
    config = runs[0].spec.config
    training, evaluation = 60 * 8 * 16, evaluation_steps(config)
    assert (first.suite, first.runs, len(first.counted), first.cost.runs) == ("small", 3, 3, 2)
    assert (other.suite, other.runs, len(other.counted), other.cost.runs) == ("second", 2, 1, 1)
    assert first.cost.training_hours == pytest.approx(2 * training / 10 / 2 / 3600)
    assert other.cost.most_hours == pytest.approx((training + evaluation) / 10 / 2 / 3600)
    # Where the time of an evaluation is known, the hours are no bound but the sum.
    assert evaluations(config) == (0, 30, 60)
    assert (first.cost.evaluations, other.cost.evaluations) == (6, 3)
    timed = budget(names, "tiny", tmp_path / "out", speeds, evaluation_seconds=36.0, runs_per_device=2)[0].cost
    assert timed.most_hours == pytest.approx(first.cost.training_hours + 6 * 36 / 2 / 3600)
    assert budget(names, "tiny", tmp_path / "out", {})[0].cost.training_hours is None


def test_a_speed_is_the_median_without_the_iteration_that_compiles(runs):
    begin(runs[0], 1.0, 100.0, 120.0, 110.0, meta={"device": "gpu (X)"})
    config, speed = speed_of(runs[0].path)
    assert (config.method, speed.steps_per_second) == ("alp", 110.0)
    assert speed.source == f"{runs[0].path}: gpu (X), 4 iterations"
    begin(runs[1], 7.0)
    assert speed_of(runs[1].path)[1].source.endswith(
        "a device that it does not name, 1 iteration, with the time of compiling"
    )
    begin(runs[2])
    with pytest.raises(ConfigError, match="no iteration is done"):
        speed_of(runs[2].path)


@pytest.mark.parametrize("meta", [{"devices": 8}, *({"devices": n, "continued": [{"devices": 9 - n}]} for n in (1, 8))])
def test_the_speed_of_several_devices_is_not_taken_for_that_of_one(runs, meta):
    begin(runs[0], 1.0, 100.0, meta=meta)
    with pytest.raises(ConfigError, match="8 devices shared this run"):
        speed_of(runs[0].path)


def test_a_speed_of_another_kind_of_run_is_refused(suite_file, runs, tmp_path):
    name = str(suite_file)
    begin(runs[0], 10.0, 20.0)
    assert measured_on([runs[0].path], [name], "tiny")["primitive"].steps_per_second == 20.0
    begin(runs[1], 10.0)
    with pytest.raises(ConfigError, match=r"a second run of learner 'primitive'"):
        measured_on([runs[0].path, runs[1].path], [name], "tiny")
    suite_file.write_text(suite_file.read_text().replace("width = 8", "width = 16"))
    with pytest.raises(ConfigError, match=r"network\.width is 8 there and 16 at scale tiny"):
        measured_on([runs[0].path], [name], "tiny")
    with pytest.raises(ConfigError, match=r"environments is 8 there and 512 at scale paper"):
        measured_on([runs[0].path], ["targets"], "paper")


def test_the_budget_of_the_paper(tmp_path, capsys):
    arguments = ["sweep", "budget", "targets", "uniform", "sensitivity", "smoothing", "--out", str(tmp_path)]
    assert forethought([*arguments, "--steps-per-second", "1e5", "--devices", "8", "--price", "2.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["suite", "runs", "counted", "left", "training", "evaluation", "hours", "at", "most"]
    # 160 runs of 720 iterations of 512 x 4096 steps, at 1e5 steps/s.
    assert lines[1].split()[:5] == ["targets", "160", "160", "160", "242G"]
    assert lines[1].split()[6] == f"{160 * 720 * 512 * 4096 / 1e5 / 3600:.0f}"
    assert lines[2].split()[:5] == ["uniform", "40", "40", "40", "121G"]
    # Runs with other L and alpha, and with half of the importance on the target, are all that these two add.
    assert lines[3].split()[:3] == ["sensitivity", "78", "52"]
    assert lines[4].split()[:3] == ["smoothing", "80", "40"]
    assert lines[5].split()[:3] == ["all", "292", "292"]
    assert re.fullmatch(
        r"in all at most [\d.]+ days on 8 devices, 7\.5 of them training; [\d,]+ at 2\.5 an hour, 3,607 of it training",
        lines[-1],
    ), lines[-1]
    assert forethought([*arguments[:3], "--out", str(tmp_path)]) == 0
    assert "hours unknown: no speed of primitive (give --measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--price", "0"], "--price: 0 given"),
        (["--runs-per-device", "0"], "--runs-per-device: 0 given"),
        (["--measured", "nowhere"], "nowhere is not a run directory"),
        (["--measured", "nowhere", "--steps-per-second", "3"], "allowed is one of them"),
        (["nosuite"], "suite: 'nosuite' given"),
    ],
)
def test_a_bad_budget_is_one_line(flags, message, capsys):
    assert forethought(["sweep", "budget", *flags]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
