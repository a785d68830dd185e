"""The files in infra/ do what they say, with programs that only pretend to be the cluster's."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

INFRA = Path(__file__).parents[2] / "infra"

SWEEP = """#!/usr/bin/env python3
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(85))
open("{folder}/began", "w").write("\\n".join(sys.argv[1:]))
time.sleep(60)
"""


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def worker(tmp_path):
    """The Slurm script at work, on a sweep that has begun."""
    program(tmp_path / "bin" / "forethought", SWEEP.format(folder=tmp_path))
    program(tmp_path / "bin" / "scontrol", f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "SLURM_JOB_ID": "12"}
    environment |= {"SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "3"}
    command = ["bash", str(INFRA / "slurm.sbatch"), "targets", "--scale", "paper"]
    with subprocess.Popen(command, env=environment) as process:
        until((tmp_path / "began").exists)
        until((tmp_path / "began").read_text)
        yield process
        process.kill()


def test_a_slurm_job_whose_time_ends_is_requeued_when_the_sweep_has_saved(worker, tmp_path):
    expected = ["sweep", "run", "targets", "--scale", "paper", "--engine", "inline", "--jobs", "1"]
    assert (tmp_path / "began").read_text().split("\n") == expected
    worker.send_signal(signal.SIGUSR1)
    assert worker.wait(60) == 0
    assert (tmp_path / "asked").read_text() == "requeue 9_3\n"


def test_a_slurm_job_that_is_cancelled_saves_and_stays_away(worker, tmp_path):
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 85
    assert not (tmp_path / "asked").exists()


def test_what_sbatch_reads():
    lines = (INFRA / "slurm.sbatch").read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    options = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    assert {"--requeue", "--signal=B:USR1@180", "--open-mode=append"} <= set(options)


@pytest.mark.parametrize(("codes", "ends", "calls"), [((85, 85, 0), 0, 3), ((85, 1, 0), 1, 2), ((0,), 0, 1)])
def test_a_rented_machine_sweeps_until_nothing_is_left(tmp_path, codes, ends, calls):
    task = yaml.safe_load((INFRA / "sky.yaml").read_text())
    steps = "\n".join(f"  {number}) exit {code};;" for number, code in enumerate(codes, 1))
    counting = f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncase $(wc -l < {tmp_path}/calls) in\n{steps}\nesac\n'
    program(tmp_path / "venv" / "bin" / "forethought", counting)
    program(tmp_path / "bin" / "sleep", "#!/bin/sh\n")
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    environment |= {name: str(value) for name, value in task["envs"].items()}
    done = subprocess.run(["bash", "-c", task["run"]], env=environment, check=False)
    assert done.returncode == ends
    lines = (tmp_path / "calls").read_text().splitlines()
    assert len(lines) == calls
    expected = "sweep run targets --scale paper --seeds 0 1 2 3 4 --out /runs --engine ray --runs-per-gpu 2"
    assert set(lines) == {expected}


def test_a_rented_machine_is_asked_for_what_the_sweep_takes(capsys):
    from forethought.cli import run as forethought

    task = yaml.safe_load((INFRA / "sky.yaml").read_text())
    assert set(task) == {"name", "resources", "envs", "workdir", "volumes", "setup", "run"}
    assert list(task["volumes"]) == ["/runs"]
    envs = task["envs"]
    flags = ["--scale", envs["SCALE"], "--seeds", *envs["SEEDS"].split(), "--runs-per-gpu", str(envs["RUNS_PER_GPU"])]
    assert (
        forethought(["sweep", "run", envs["SUITE"], *flags, "--out", "/nowhere", "--engine", "ray", "--dry-run"]) == 0
    )
    assert "160 runs, 160 not done" in capsys.readouterr().out
