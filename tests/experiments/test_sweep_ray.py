"""A sweep on Ray: workers that are killed, sweeps that are told to stop, runs that share a GPU."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from forethought.config import ConfigError
from forethought.experiments.claim import claim_on
from forethought.experiments.engines import ray as engine
from forethought.experiments.engines.attempt import CutOff, InUse, attempt, set_environment, threads
from forethought.experiments.engines.inline import run_command
from forethought.experiments.engines.ray import RayOptions
from forethought.experiments.runs import log_path, write_plan
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import Tally, plan
from forethought.rundir import WALL_TIME_FIELDS, RunDirectory


def until(condition, seconds=900):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def runs(suite_file, tmp_path, monkeypatch):
    """Three runs that save after every iteration, with a cache of their own for what JAX compiles."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    text = suite_file.read_text().replace("iterations = 60", "iterations = 300\ncheckpoint_minutes = 0")
    suite_file.write_text(text.replace("every = 30", "every = 300"))
    return plan(load_suite(suite_file, "tiny"), tmp_path / "out", "jax")


@pytest.fixture
def sweep(suite_file, tmp_path):
    """`sweep(flag, ...)`: a process that sweeps with Ray; what it says goes to `said`."""
    started = []

    def start(*flags):
        arguments = ["sweep", "run", str(suite_file), "--scale", "tiny", "--out", str(tmp_path / "out"), *flags]
        program = [sys.executable, "-c", "from forethought.cli import main; main()", *arguments, "--engine", "ray"]
        with open(tmp_path / "said", "ab") as said:
            started.append(subprocess.Popen(program, stdout=said, stderr=said, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def metrics(path):
    return RunDirectory(path).metrics().drop(*WALL_TIME_FIELDS)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_tried_again_and_the_run_goes_on_exactly(runs, sweep, tmp_path):
    alp, unif, _ = runs

    def saved(run):
        return run.again().state.iteration

    process = sweep("--only", "alp,unif", "--jobs", "1")
    until(lambda: saved(alp) > 2 or process.poll() is not None)
    victim = claim_on(alp.path).owner
    os.kill(victim.process, signal.SIGKILL)
    until(lambda: (claim := claim_on(alp.path)) and claim.owner and claim.owner.process != victim.process)
    assert claim_on(alp.path).owner.job == victim.job
    cut = saved(alp)
    assert 2 < cut < 300
    # Told to stop, the run saves; the other one has not begun.
    until(lambda: saved(alp) > cut + 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(900) == 85
    said = (tmp_path / "said").read_text()
    stopped = saved(alp)
    assert cut < stopped < 300
    assert f"{alp.path} is saved after iteration {stopped}" in said
    assert "0 of 2 runs done" in said
    assert claim_on(alp.path) is None
    assert not unif.path.exists()

    assert sweep("--only", "alp,unif").wait(900) == 0
    said = (tmp_path / "said").read_text()
    assert f"1/2 {alp.path} goes on after iteration {stopped}" in said
    assert "2 of 2 runs done" in said
    record = RunDirectory(alp.path)
    assert [each["iteration"] for each in record.meta["continued"]] == [cut, stopped]
    assert record.meta["argv"][2:] == ["forethought.experiments.runs", str(alp.path)]
    # An attempt may take the place of an earlier one of its own task, never of another sweep's.
    first, retried, later = re.findall(r"^ray (\w+) on ", log_path(alp.path).read_text(), re.MULTILINE)
    assert first == retried != later
    # As if nothing had been.
    again = tmp_path / "again" / "seed-0"
    write_plan(again, alp.spec.config)
    subprocess.run(run_command(again), env=threads(os.environ, 1), check=True)
    assert metrics(alp.path).equals(metrics(again))


@pytest.mark.slow
def test_on_a_cluster_runs_share_a_gpu_and_its_memory(runs, sweep, tmp_path, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv(
        "RAY_AUTH_MODE", "disabled"
    )  # Unset, only clusters that `auto` finds are shown the user's token.
    head = ["start", "--head", "--block", "--include-dashboard=false", f"--port={address.partition(':')[2]}"]
    program = [sys.executable, "-m", "ray.scripts.scripts", *head, "--num-cpus=2", "--num-gpus=1"]
    said = tmp_path / "cluster"
    for _ in range(4):  # Ray gives its processes half a minute to start, which is too little on a busy machine.
        with open(said, "wb") as file:
            cluster = subprocess.Popen(program, stdout=file, stderr=file, start_new_session=True)
        until(lambda process=cluster: b"Ray runtime started" in said.read_bytes() or process.poll() is not None)
        if cluster.poll() is None:
            break
    try:
        flags = ("--address", address, "--runs-per-gpu", "2", "--only", "alp,unif")
        assert sweep(*flags).wait(900) == 0, said.read_text() + (tmp_path / "said").read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(cluster.pid, signal.SIGTERM)
        cluster.wait()
    for run in runs[:2]:
        first = log_path(run.path).read_text().splitlines()[0]
        assert re.fullmatch(r"ray \w+ on .*: 1 core, GPU 0, 0\.450 of its memory", first)


def test_threads_and_memory_are_set_before_anything_reads_them():
    environment = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}
    set_environment(environment, cores=1, runs_per_gpu=3)
    # JAX raises where both names are set.
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in environment
    assert environment["XLA_CLIENT_MEM_FRACTION"] == "0.300"
    assert environment["OMP_NUM_THREADS"] == "1"
    for alone in (0, 1):
        environment = {}
        set_environment(environment, cores=2, runs_per_gpu=alone)
        assert "XLA_CLIENT_MEM_FRACTION" not in environment
    light = "import sys, forethought.experiments.engines.attempt; print('numpy' in sys.modules or 'jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], capture_output=True, text=True).stdout == "False\n"


def test_an_attempt_says_everything_in_the_log(runs, monkeypatch, capfd):
    from forethought.experiments import runs as module

    run = runs[0]
    write_plan(run.path, run.spec.config)
    outcomes = {"done": True, "cut off": False}
    for name in ("done", "cut off", "fails", "in use"):

        def pretend(path, job, name=name):
            os.write(1, f"{name} in {job}\n".encode())
            print("and this", file=sys.stderr)
            if name == "fails":
                raise ValueError("no luck")
            if name == "in use":
                raise module.Busy("run x is in use by y")
            return outcomes[name]

        monkeypatch.setattr(module, "run_one", pretend)
        monkeypatch.setattr(os, "environ", dict(os.environ))
        error = {"done": None, "cut off": CutOff, "fails": ValueError, "in use": InUse}[name]
        with contextlib.nullcontext() if error is None else pytest.raises(error):
            attempt(str(run.path), 1, 0, f"job {name}")
        text = log_path(run.path).read_text()
        assert f"job {name} on {socket.gethostname()}: 1 core\n{name} in job {name}\nand this\n" in text
    assert "ValueError: no luck" in text
    assert "in use by" not in text
    assert capfd.readouterr() == ("", "")


def test_how_a_task_ended_is_told(runs):
    import ray

    lines = []
    tally = Tally(4, 0, lines.append)
    run = runs[0]
    for error, stopping in (
        (None, False),
        (InUse("run x is in use by y"), False),
        (CutOff("x"), True),
        (ray.exceptions.TaskCancelledError(), True),
        (CutOff("x"), False),
        (ValueError("no luck\nat all"), False),
        (ray.exceptions.WorkerCrashedError(), False),
    ):
        engine._note(tally, run, error, stopping)
    result = tally.result()
    assert (result.done, result.elsewhere, len(result.failures)) == (1, 1, 3)
    assert [failure.reason for failure in result.failures[:2]] == ["cut off too often", "ValueError: no luck"]
    assert result.failures[2].reason.startswith("WorkerCrashedError: The worker died unexpectedly")
    assert lines[2:4] == [f"{run.path} had not begun"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RayOptions(jobs=0), "jobs: 0 given; allowed is 1 or more"),
        (RayOptions(runs_per_gpu=-1), "runs_per_gpu: -1 given; allowed is 0 or more"),
        (RayOptions(cores=10_000), "cores: 10000 given; allowed on this machine are 1 to"),
    ],
)
def test_options_that_ray_cannot_have(runs, options, message):
    with pytest.raises(ConfigError, match=message):
        engine.sweep(runs, options)


@pytest.mark.parametrize(("name", "module", "extra"), [("ray", "ray", "ray"), ("slurm", "submitit", "slurm")])
def test_a_missing_library_is_one_line(suite_file, tmp_path, monkeypatch, capsys, name, module, extra):
    from forethought.cli import run as forethought

    class Missing:
        def find_spec(self, wanted, path=None, target=None):
            if wanted.partition(".")[0] == module:
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    for loaded in [each for each in sys.modules if each.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    arguments = ["sweep", "run", str(suite_file), "--scale", "tiny", "--out", str(tmp_path / "out"), "--engine", name]
    assert forethought(arguments) == 2
    line = f"error: the package {module} is not installed; it comes with: pip install 'forethought[{extra}]'\n"
    assert capsys.readouterr().err == line
    assert not (tmp_path / "out").exists()
