"""A sweep on a real Slurm of one node, from Debian's packages slurm-wlm and munge; needs to be root."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forethought.config import ConfigError
from forethought.experiments.claim import claim_on
from forethought.experiments.engines import slurm
from forethought.experiments.engines.attempt import threads
from forethought.experiments.engines.inline import run_command
from forethought.experiments.engines.slurm import SlurmOptions, submit
from forethought.experiments.runs import write_plan
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import plan
from forethought.rundir import WALL_TIME_FIELDS, RunDirectory

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel")

CONF = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=2,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES PriorityTier=1 GraceTime=120 PreemptMode=REQUEUE MaxTime=INFINITE
PartitionName=high Nodes={host} PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Slurm with two CPUs; low-priority jobs are told to save, and requeued, when a high-priority one comes."""
    if os.geteuid() or any(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None for name in PROGRAMS):
        pytest.skip("needs root, and Debian's slurm-wlm and munge")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    folder = tmp_path / "cluster"
    for path in (folder, folder / "state", folder / "spool"):
        path.mkdir(mode=0o755)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(CONF.format(folder=folder, host=host, control=free_port(), node=free_port()))
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    subprocess.run(
        ["munged", "--force", *(f"--{flag}={folder}/munge.{name}" for flag, name in files.items())], check=True
    )
    try:
        subprocess.run(["slurmctld"], check=True)
        subprocess.run(["slurmd", "-N", host], check=True)
        until(lambda: "idle" in ask("sinfo", "--noheader", "--format=%t"), 60)
        yield folder
    finally:
        subprocess.run(["scancel", "--signal=KILL", "--full", "--user=root"], check=False)
        for name in ("slurmd", "slurmctld", "munge"):
            with contextlib.suppress(FileNotFoundError):
                end(int((folder / f"{name}.pid").read_text()))


def end(process):
    """End a daemon, which may wait for its jobs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
        for _ in range(100):
            time.sleep(0.1)
            os.kill(process, 0)
        os.kill(process, signal.SIGKILL)


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def until(condition, seconds=900):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, ask("squeue") + ask("scontrol", "show", "jobs")
        time.sleep(0.2)


def states(array):
    """The states of an array's jobs, by their places in it."""
    lines = ask("squeue", "--noheader", "--array", "--format=%K %T", f"--jobs={array}").split("\n")
    return dict(line.split() for line in lines if line)


def begin_now(array):
    """Slurm waits two minutes before it runs a requeued job again."""
    for place in states(array):
        subprocess.run(["scontrol", "update", f"JobId={array}_{place}", "StartTime=now"], check=True)


def sweep(*arguments):
    program = [sys.executable, "-c", "from forethought.cli import main; main()", "sweep", *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def metrics(path):
    return RunDirectory(path).metrics().drop(*WALL_TIME_FIELDS)


@pytest.mark.slow
def test_runs_that_are_preempted_cancelled_or_killed_go_on_exactly(cluster, tmp_path, suite_file, monkeypatch):
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    text = suite_file.read_text().replace("iterations = 60", "iterations = 400\ncheckpoint_minutes = 0")
    suite_file.write_text(text.replace("every = 30", "every = 400"))
    out = tmp_path / "out"
    common = (suite_file, "--scale", "tiny", "--out", out)
    alp, unif, perm = plan(load_suite(suite_file, "tiny"), out, "jax")

    def saved(run):
        return run.again().state.iteration

    def submit_more(*names):
        printed = sweep("run", *common, "--engine", "slurm", "--runs-per-gpu", "0", "--only", ",".join(names))
        assert f"{len(names)} of {len(names)} runs submitted as job array" in printed
        return printed.partition("job array ")[2].partition(";")[0]

    # A job of high priority takes the place of both, which save, and are requeued.
    array = submit_more("alp", "perm")
    until(lambda: saved(alp) > 2 and saved(perm) > 2)
    assert sorted(states(array).values()) == ["RUNNING", "RUNNING"]
    assert sweep("status", *common).endswith("3 runs: 2 at work, 1 new\n")
    subprocess.run(
        ["sbatch", "--partition=high", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 1"], check=True
    )
    until(lambda: sorted(states(array).values()) == ["PENDING", "PENDING"])
    cut = [saved(alp), saved(perm)]
    assert 2 < min(cut) <= max(cut) < 400
    assert sweep("status", *common).endswith("3 runs: 2 stopped, 1 new\n")
    begin_now(array)
    until(lambda: not states(array))
    assert sweep("status", *common).endswith("3 runs: 2 done, 1 new\n")
    for run, iteration in zip((alp, perm), cut, strict=True):
        assert [each["iteration"] for each in RunDirectory(run.path).meta["continued"]] == [iteration]
        assert claim_on(run.path) is None
    # As if nothing had been.
    again = tmp_path / "again" / "seed-0"
    write_plan(again, alp.spec.config)
    subprocess.run(run_command(again), env=threads(os.environ, 1), check=True)
    assert metrics(alp.path).equals(metrics(again))

    # A job that is cancelled saves, too, and stays away.
    array = submit_more("unif")
    until(lambda: saved(unif) > 2)
    subprocess.run(["scancel", array], check=True)
    until(lambda: not states(array))
    assert claim_on(unif.path) is None
    cut = saved(unif)
    assert 2 < cut < 400
    assert RunDirectory(unif.path).metrics()["iteration"].max() == cut

    # One that is killed leaves a void claim, which holds up nobody.
    array = submit_more("unif")
    until(lambda: saved(unif) > cut + 2)
    os.kill(claim_on(unif.path).owner.process, signal.SIGKILL)
    until(lambda: not states(array))
    assert claim_on(unif.path).void
    assert claim_on(unif.path).owner.job == f"slurm {array}"
    printed = sweep("status", *common)
    assert f"iterations: gone is process {claim_on(unif.path).owner.process} on" in printed
    assert "3 of 3 runs done" in sweep(*common)
    assert "nothing to submit: all 3 runs are done or in use" in sweep("run", *common, "--engine", "slurm")


@pytest.fixture
def runs(suite_file, tmp_path):
    return plan(load_suite(suite_file, "tiny"), tmp_path / "out", "jax")


@pytest.fixture
def no_slurm(tmp_path, monkeypatch):
    """An sbatch that notes what it is given."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("srun", ""), ("sbatch", f'cp "$1" {tmp_path}/script; echo "Submitted batch job 7"')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path / "script"


def test_what_is_asked_of_slurm(runs, tmp_path, no_slurm, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=d")
    options = SlurmOptions(jobs=2, cores=3, runs_per_gpu=1, hours=1.5, notice=60, sbatch={"partition": "gpu"})
    assert submit(runs, tmp_path / "out", options) == ("7", 3)
    lines = no_slurm.read_text().splitlines()
    for line in ("array=0-2%2", "time=90", "cpus-per-task=3", "gpus-per-node=1", "signal=USR2@60", "partition=gpu"):
        assert f"#SBATCH --{line}" in lines
    assert "#SBATCH --requeue" in lines
    assert {"export OMP_NUM_THREADS=3", "export XLA_FLAGS=--xla_dump_to=d"} <= set(lines)
    assert all(run.path.with_name("seed-0.toml").exists() for run in runs)


def test_one_run_is_a_job_of_its_own(runs, tmp_path, no_slurm):
    assert submit(runs[:1], tmp_path / "out", SlurmOptions()) == ("7", 1)
    assert "--array" not in no_slurm.read_text()
    assert "gpus" not in no_slurm.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SlurmOptions(runs_per_gpu=2), "runs_per_gpu: 2 given; allowed on Slurm are 0 and 1"),
        (SlurmOptions(cores=0), "cores: 0 given; allowed is 1 or more"),
        (SlurmOptions(hours=0.01), "hours: 0.01 given; allowed is more than the 120 s of notice"),
    ],
)
def test_options_that_slurm_cannot_have(runs, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        submit(runs, tmp_path / "out", options)


def test_a_machine_without_slurm_is_named(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="this machine has no srun"):
        submit(runs, tmp_path / "out", SlurmOptions())


def test_a_job_of_an_array_is_asked_about_alone(monkeypatch, tmp_path):
    """The number of one job of an array is that of the array, and squeue then answers for all of it."""
    assert slurm._number({"SLURM_JOB_ID": "2", "SLURM_ARRAY_JOB_ID": "2", "SLURM_ARRAY_TASK_ID": "1"}) == "2_1"
    assert slurm._number({"SLURM_JOB_ID": "2"}) == "2"


@pytest.mark.parametrize(("state", "handed_on"), [("RUNNING", True), ("COMPLETING", False), ("", False)])
def test_a_run_that_was_cut_off_is_requeued_unless_slurm_does_or_it_was_cancelled(
    monkeypatch, tmp_path, state, handed_on
):
    squeue = tmp_path / "squeue"
    squeue.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho {state}\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID", raising=False)

    def cut_off(*arguments):
        assert arguments == ("run", 1, 0, "slurm 9")
        raise slurm.CutOff("run")

    monkeypatch.setattr(slurm, "attempt", cut_off)
    received = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: received.append(number))
    try:
        with pytest.raises(SystemExit) as ended:
            slurm.Job(1, 0)("run")
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert ended.value.code == 85
    assert bool(received) == handed_on
    assert Path(f"{tmp_path}/asked").read_text().split()[-1] == "--jobs=9"


def test_what_submitit_pickles_finds_its_way_back(tmp_path):
    import submitit

    job = slurm.Job(2, 1)
    delayed = job.checkpoint("run")
    delayed.dump(tmp_path / "job.pkl")
    found = submitit.core.utils.DelayedSubmission.load(tmp_path / "job.pkl")
    assert (found.function, found.args) == (job, ("run",))
