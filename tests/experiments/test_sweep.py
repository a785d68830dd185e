"""A sweep runs what is not done, on cores of its own, and loses nothing when it is told to stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from forethought.cli import run as forethought
from forethought.config import ConfigError, load_config
from forethought.experiments.cost import cost_of, evaluation_steps, measured_speeds, training_steps
from forethought.experiments.engines import inline
from forethought.experiments.engines.attempt import threads
from forethought.experiments.engines.inline import share_cores, sweep
from forethought.experiments.runs import RunState, log_path, plan_path, run_one, run_state, write_plan
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import plan, usable_cores
from forethought.rundir import EVALUATION_COLUMNS, RunDirectory


@pytest.fixture
def file(suite_file):
    return suite_file


@pytest.fixture
def suite(file):
    return load_suite(file, "tiny")


def begin(path, config, *evaluated):
    """A run directory that looks like one that was evaluated at these iterations."""
    run = RunDirectory.create(path, config.to_toml(), {"run_id": "x", "hashes": {"goals": "other"}})
    for iteration in evaluated:
        kinds = EVALUATION_COLUMNS.items()
        row = {name: [{"Int64": iteration, "Float64": 0.5, "String": "gem"}[kind]] for name, kind in kinds}
        run.record_evaluation(row)
    return run


PRETEND = """
import json, os, signal, sys, time
path, behaviour = sys.argv[1:]
def say(name):
    with open(f"{path}.json", "w") as file:
        json.dump({"what": name, "cores": sorted(os.sched_getaffinity(0)), "env": dict(os.environ)}, file)
signal.signal(signal.SIGTERM, lambda *_: (say("saved"), sys.exit(85)) if behaviour != "deaf" else None)
say("began")
if behaviour == "mute":
    sys.exit(3)
print("hello from", path, flush=True)
if behaviour == "fails":
    sys.exit("ValueError: no luck")
if behaviour == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.05 if behaviour == "works" else 60)
say("done")
"""


@pytest.fixture
def pretend(monkeypatch):
    """Processes that only pretend to train: `pretend(alp="fails", ...)`; the others work."""

    def set_up(**behaviours):
        def command(path):
            behaviour = behaviours.get(path.parent.name, behaviours.get("others", "works"))
            return [sys.executable, "-c", PRETEND, str(path), behaviour]

        monkeypatch.setattr(inline, "run_command", command)

    return set_up


def said(path):
    return json.loads(Path(f"{path}.json").read_text())


def when(condition, action):
    """Do something from another thread as soon as a condition holds."""

    def wait():
        end = time.monotonic() + 60
        while not condition() and time.monotonic() < end:
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def signal_me(number):
    return lambda: os.kill(os.getpid(), number)


def test_every_run_has_cores_and_threads_of_its_own(suite, tmp_path, pretend):
    pretend()
    jobs = min(2, len(usable_cores()))
    before = os.sched_getaffinity(0)
    lines = []
    planned = plan(suite, tmp_path / "out")
    result = sweep(planned, jobs=jobs, say=lines.append)
    assert (result.done, result.failures, result.left) == (3, (), 0)
    assert os.sched_getaffinity(0) == before
    shares = share_cores(jobs)
    for run in planned:
        there = said(run.path)
        assert set(there["cores"]) in shares
        count = str(len(there["cores"]))
        pools = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
        assert [there["env"][name] for name in pools] == [count] * 5
        assert "hello from" in log_path(run.path).read_text()
        # The plan is the configuration of the run, with nothing left open.
        written = load_config(plan_path(run.path))
        assert written.environment.backend == "jax"
        assert written.digest == plan(suite, tmp_path / "new", "jax")[planned.index(run)].spec.config.digest
    assert sum(", core" in line for line in lines) == 3


def test_threads_are_added_to_what_is_set():
    one = threads({"PATH": "p", "XLA_FLAGS": "--xla_dump_to=d"}, 1)
    assert one["XLA_FLAGS"] == "--xla_dump_to=d --xla_cpu_multi_thread_eigen=false"
    assert (one["PATH"], one["OMP_NUM_THREADS"]) == ("p", "1")
    assert threads(one, 1)["XLA_FLAGS"] == one["XLA_FLAGS"]
    assert "XLA_FLAGS" not in threads({}, 2)


def test_a_run_that_fails_stops_no_other_and_is_named(suite, tmp_path, pretend):
    pretend(alp="fails", unif="killed")
    planned = plan(suite, tmp_path)
    result = sweep(planned, say=lambda line: None)
    assert (result.done, result.left) == (1, 0)
    assert [failure.path for failure in result.failures] == [planned[0].path, planned[1].path]
    assert [failure.reason for failure in result.failures] == [
        "ended with 1: ValueError: no luck",
        f"killed by SIGKILL: hello from {planned[1].path}",
    ]
    assert result.failures[0].log == log_path(planned[0].path)


def test_a_run_that_was_begun_by_hand_is_left_alone(suite, tmp_path, pretend):
    pretend()
    run = plan(suite, tmp_path)[0]
    lines = []
    with begin(run.path, run.spec.config).locked():
        result = sweep(plan(suite, tmp_path), say=lines.append)
    assert (result.done, result.failures, result.elsewhere, result.left) == (2, (), 1, 0)
    reason = f"run directory {run.path} is in use by process {os.getpid()}"
    assert lines[0].startswith(f"{run.path} is left to another process: {reason}")
    assert not Path(f"{run.path}.json").exists()
    assert sweep(plan(suite, tmp_path)[:1], say=lambda line: None).done == 1


def test_only_what_the_run_said_this_time_is_its_reason(suite, tmp_path, pretend):
    pretend(alp="mute")
    run = plan(suite, tmp_path)[0]
    run.path.parent.mkdir(parents=True)
    log_path(run.path).write_text("ValueError: of yesterday\n")
    (failure,) = sweep([run], say=lambda line: None).failures
    assert failure.reason == "ended with 3"
    assert log_path(run.path).read_text() == "ValueError: of yesterday\n"


def test_told_to_stop_it_lets_the_runs_save_and_begins_no_other(suite, tmp_path, pretend):
    pretend(others="slow")
    planned = plan(suite, tmp_path)
    began = Path(f"{planned[0].path}.json")
    thread = when(lambda: began.exists() and began.read_text().endswith("}"), signal_me(signal.SIGTERM))
    result = sweep(planned, say=lambda line: None)
    thread.join()
    assert (result.done, result.failures, result.left) == (0, (), 3)
    assert said(planned[0].path)["what"] == "saved"
    assert not plan_path(planned[1].path).exists()


def test_a_second_interrupt_ends_at_once(suite, tmp_path, pretend):
    pretend(others="deaf")
    before = signal.getsignal(signal.SIGINT)
    planned = plan(suite, tmp_path)
    lines = []
    began = Path(f"{planned[0].path}.json")
    first = when(began.exists, signal_me(signal.SIGINT))
    second = when(lambda: any("save" in line for line in lines), signal_me(signal.SIGINT))
    result = sweep(planned, say=lines.append)
    first.join(), second.join()
    assert (result.done, result.failures, result.left) == (0, (), 3)
    assert lines[-2:] == ["ending at once", f"{planned[0].path} ended at once"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_sweep_itself_leaves_no_run_behind(suite, tmp_path, pretend):
    pretend(others="slow")
    planned = plan(suite, tmp_path)

    def say(line):
        began = Path(f"{planned[0].path}.json")
        while not (began.exists() and began.read_text().endswith("}")):
            time.sleep(0.02)
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        sweep(planned, say=say)
    assert said(planned[0].path)["what"] == "saved"


def test_what_is_done_is_skipped(suite, tmp_path, pretend):
    pretend()
    for run in plan(suite, tmp_path)[:2]:
        begin(run.path, run.spec.config, 60)
    planned = plan(suite, tmp_path)
    assert [run.state for run in planned] == [RunState(True, 0, True)] * 2 + [RunState(False, 0, False)]
    lines = []
    assert sweep(planned, say=lines.append).done == 3
    assert lines[0].startswith(f"3/3 {planned[2].path} begins")


def test_another_configuration_under_the_same_name_is_refused(suite, tmp_path):
    run = plan(suite, tmp_path)[1]
    other = run.spec.config.model_copy(
        update={"ppo": run.spec.config.ppo.model_copy(update={"clip": 0.3}), "device": "cpu"}
    )
    begin(run.path, other)
    with pytest.raises(ConfigError, match=r"unif/seed-0 holds another run: ppo\.clip is 0\.3 there and 0\.2 is asked"):
        plan(suite, tmp_path)
    shutil.rmtree(run.path)
    begin(run.path, run.spec.config.model_copy(update={"seed": 7}))
    with pytest.raises(ConfigError, match=r"unif/seed-0 holds another run: seed is 7 there and 0 is asked for"):
        plan(suite, tmp_path)


def test_the_runs_of_a_suite_are_played_by_one_backend(tmp_path):
    suite = load_suite("targets").select(seeds=[0], groups=["have_8_wood"], methods=["alp", "unif"])
    unif, alp = plan(suite, tmp_path, "jax")
    begin(unif.path, unif.spec.config)
    assert {run.spec.config.environment.backend for run in plan(suite, tmp_path)} == {"jax"}
    with pytest.raises(ConfigError, match=r"environment\.backend is 'jax' there and 'engine' is asked for"):
        plan(suite, tmp_path, "engine")
    begin(alp.path, plan(suite, tmp_path / "other", "engine")[1].spec.config)
    with pytest.raises(ConfigError, match=r"environment\.backend: 'engine' in .*alp/seed-0 and 'jax' in .*unif/seed-0"):
        plan(suite, tmp_path)


def test_what_is_missing_is_found_before_any_run_begins(file, tmp_path, pretend):
    pretend()
    file.write_text(file.read_text().replace('tiny = ["gem"]', 'tiny = ["gem", "gold"]'))
    planned = plan(load_suite(file, "tiny"), tmp_path / "out")
    with pytest.raises(ConfigError, match=r"tasks\.target: 'gold' given"):
        sweep(planned)
    assert not (tmp_path / "out").exists()


def test_there_is_a_core_for_every_job():
    cores = usable_cores()
    assert set().union(*share_cores(len(cores))) == set().union(*share_cores(1)) == set(cores)
    assert share_cores(1, one_core_each=True) == [{cores[0]}]
    assert share_cores(len(cores), one_core_each=True) == [{core} for core in cores]
    for jobs in (0, len(cores) + 1):
        with pytest.raises(ConfigError, match=f"jobs: {jobs} given; allowed are 1 to {len(cores)}"):
            share_cores(jobs)


def test_one_run_needs_a_plan_and_returns_at_once_when_done(suite, tmp_path):
    path, config = tmp_path / "run", plan(suite, tmp_path, "jax")[0].spec.config
    with pytest.raises(ConfigError, match=r"neither a run nor a plan for one \(run\.toml beside it\)"):
        run_one(path)
    write_plan(path, config)
    assert load_config(plan_path(path)) == config
    begin(path, config, 0, 30)
    assert run_state(path, config.iterations) == RunState(True, 0, False)
    # This run would not go on: its goals are others than those that it says it began with.
    with pytest.raises(ValueError, match="goals changed since"):
        run_one(path)
    begin(tmp_path / "done", config, 0, 30, 60)
    assert run_one(tmp_path / "done")
    with pytest.raises(ValueError, match="is not a run directory"):
        run_state(tmp_path, 1)


def test_costs(suite, tmp_path):
    alp, unif, perm = plan(suite, tmp_path)
    config = alp.spec.config
    assert training_steps(config) == 60 * 8 * 16
    assert training_steps(config, 40) == 20 * 8 * 16
    # Evaluations at 0, 30 and 60 of nine goals, three episodes of at most 8 steps.
    assert evaluation_steps(config) == 3 * 9 * 3 * 8
    assert evaluation_steps(config, 30) == 2 * 9 * 3 * 8
    planned = [alp, type(unif)(unif.spec, unif.path, RunState(True, 60, True)), perm]
    cost = cost_of(planned, {"primitive": 10.0}, jobs=2)
    assert (cost.runs, cost.training_steps, cost.evaluation_steps) == (2, 2 * 7680, 2 * 648)
    assert cost.training_hours == pytest.approx(2 * 7680 / 10 / 2 / 3600)
    assert cost.most_hours == pytest.approx(2 * (7680 + 648) / 10 / 2 / 3600)
    assert cost_of(planned, {"subroutines": 10.0}, jobs=2).training_hours is None


def test_speeds_are_the_median_of_what_was_measured(suite, tmp_path):
    assert measured_speeds(tmp_path, "tiny") == {}
    alp, unif, _ = plan(suite, tmp_path)
    for run, speeds in ((alp, (1.0, 100.0, 110.0)), (unif, (130.0, 120.0))):
        directory = begin(run.path, run.spec.config)
        for iteration, speed in enumerate(speeds, 1):
            directory.record_metrics({"iteration": iteration, "steps_per_second": speed})
    begin(plan(suite, tmp_path)[2].path, suite.runs[2].config)
    assert measured_speeds(tmp_path, "tiny") == {"primitive": 110.0}
    assert measured_speeds(tmp_path, "other") == {}


def test_a_suites_own_speeds_go_before_those_of_others(suite, tmp_path):
    first, *others = plan(suite, tmp_path)
    for run, speed in zip([first, *others], (5.0, 100.0, 120.0), strict=True):
        begin(run.path, run.spec.config).record_metrics({"iteration": 1, "steps_per_second": speed})
    assert measured_speeds(tmp_path, "tiny", plan(suite.select(methods=["alp"]), tmp_path)) == {"primitive": 5.0}
    assert measured_speeds(tmp_path, "tiny", [first]) == {"primitive": 100.0}  # It had not begun when it was planned.


def test_an_unknown_speed_is_named(file, tmp_path, capsys):
    file.write_text(
        file.read_text()
        + '\n[[blocks]]\nover = "targets"\nmethods = ["alp"]\nlearners = ["subroutines"]\nseeds = [0]\n'
    )
    out = tmp_path / "out"
    run = plan(load_suite(file, "tiny"), out)[0]
    begin(run.path, run.spec.config).record_metrics({"iteration": 1, "steps_per_second": 5.0})
    assert forethought(["sweep", str(file), "--scale", "tiny", "--out", str(out), "--jobs", "1", "--dry-run"]) == 0
    assert "hours: unknown; no run with subroutines has been measured" in capsys.readouterr().out


def test_a_dry_run_lists_everything_and_does_nothing(file, suite, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["sweep", str(file), "--scale", "tiny", "--out", str(out), "--jobs", "1", "--dry-run"]
    assert forethought(arguments) == 0
    printed = capsys.readouterr().out
    assert not out.exists()
    assert f"{out}/tiny/gem/primitive/perm/seed-0   7.68k steps  new" in printed
    assert "3 runs, 3 not done: 23k steps of training and at most 1.94k of evaluation left" in printed
    assert "hours: unknown" in printed
    alp = plan(suite, out)[0]
    begin(alp.path, alp.spec.config, 60)
    assert forethought([*arguments, "--only", "alp,unif", "--steps-per-second", "0.5"]) == 0
    printed = capsys.readouterr().out
    assert "perm" not in printed
    assert "alp/seed-0    7.68k steps  done" in printed
    assert "2 runs, 1 not done" in printed
    assert "hours: 4.3 of training, at most 4.6 with evaluation, 1 at a time" in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--only", "alf"], "method: 'alf' given; allowed in suite small are alp, unif, perm"),
        (["--jobs", "1000"], "jobs: 1000 given"),
        (["--dry-run", "--steps-per-second", "0"], "--steps-per-second: 0 given"),
        (["--variants", "L=7"], "variant: 'L=7' given; allowed in suite small are ''"),
    ],
)
def test_bad_input_is_one_line(file, tmp_path, capsys, flags, message):
    assert forethought(["sweep", str(file), "--scale", "tiny", "--out", str(tmp_path / "out"), *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_failure_is_reported_with_its_log(file, suite, tmp_path, pretend, capsys):
    pretend(unif="fails")
    out = tmp_path / "out"
    assert forethought(["sweep", str(file), "--scale", "tiny", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert "2 of 3 runs done" in printed.out
    path = plan(suite, out)[1].path
    assert f"failed: {path}: ended with 1: ValueError: no luck\n        log: {path}.log" in printed.err


def test_a_sweep_that_was_told_to_stop_goes_on_where_it_was(file, suite, tmp_path):
    """The real thing: two runs on the tiny domain, stopped during the first one."""
    out = tmp_path / "out"
    command = ["sweep", str(file), "--scale", "tiny", "--out", str(out), "--only", "alp,perm", "--jobs", "1"]
    program = [sys.executable, "-c", "from forethought.cli import main; main()", *command]
    alp, _, perm = plan(suite, out)
    # What the first process compiles, the others find.
    environment = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax")} | os.environ
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    settings = {"env": environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(program, **settings) as first:
        metrics = alp.path / "metrics.jsonl"
        while not metrics.exists() and first.poll() is None:
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        output, messages = first.communicate()
    assert first.returncode == 85, messages + log_path(alp.path).read_text()
    assert "0 of 2 runs done" in output
    assert "telling 1 runs to save and end" in messages
    assert f"{alp.path} is saved" in messages
    saved = run_state(alp.path, 60)
    assert saved.begun
    assert 0 < saved.iteration < 60
    assert not perm.path.exists()

    second = subprocess.run(program[:-2], **settings)
    assert second.returncode == 0, second.stderr + log_path(perm.path).read_text()
    assert f"1/2 {alp.path} goes on after iteration {saved.iteration}" in second.stderr
    for run in (alp, perm):
        records = RunDirectory(run.path)
        assert records.metrics()["iteration"].to_list() == list(range(1, 61))
        assert sorted(records.evaluated()) == [0, 30, 60]
        assert run_state(run.path, 60) == RunState(True, 60, True)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    third = subprocess.run(program, **settings)
    assert (third.returncode, third.stdout, third.stderr) == (0, "2 of 2 runs done\n", "")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
