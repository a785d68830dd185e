"""Runs on Slurm, as a job array that submitit submits. Slurm queues, and puts back what it preempts; this only submits.

A run that is told to stop (the time limit comes near, or it is preempted) saves; its job then asks to be requeued, and
goes on when it runs again. A job that is cancelled saves as well, and ends with 85. So does every job that cannot be
requeued, which clusters with `RequeueExit=85` put back by themselves.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forethought.config import ConfigError
from forethought.experiments.engines.attempt import CutOff, InUse, attempt, threads
from forethought.experiments.runs import INTERRUPTED, in_use
from forethought.experiments.sweep import Planned, prepare, settled

FOLDER = "slurm"
"""Where the scripts and outputs of the jobs lie, below the sweep's folder."""

_MOST_REQUEUES = 1000
"""How often submitit lets a job reach its time limit."""


@dataclass(frozen=True)
class SlurmOptions:
    """What each job of the array asks for."""

    jobs: int | None = None
    """Jobs at work at the same time, at most; unset: all that Slurm has room for."""
    cores: int = 1
    """Cores of a run."""
    runs_per_gpu: int = 0
    """1: a run has a GPU; 0: it needs none. Slurm gives whole GPUs."""
    hours: float = 4.0
    """Time limit of a job; a longer run goes on in the next."""
    notice: int = 120
    """Seconds before that at which the run is told to save."""
    sbatch: Mapping[str, str] = field(default_factory=dict)
    """More options of sbatch, by their long names."""


def submit(planned: Sequence[Planned], out: str | Path, options: SlurmOptions) -> tuple[str | None, int]:
    """Submit the runs that are neither done nor in use as one job array.

    Args:
        planned: The runs.
        out: Folder of the sweep, which all machines must see at the same path.
        options: What each job asks for.

    Returns:
        The number of the array, None if there was nothing to submit; and how many runs are in it.

    Raises:
        ConfigError: If an option is out of range or refused by sbatch, or a run asks for goals or files that are not
            there.
        ModuleNotFoundError: If submitit is not installed.
    """
    import submitit
    from submitit.core.utils import FailedJobError

    _check(options)
    runs = [run for run in settled(planned) if not in_use(run.path)]
    if not runs:
        return None, 0
    try:
        executor = submitit.SlurmExecutor(Path(out).absolute() / FOLDER, max_num_timeout=_MOST_REQUEUES)
    except RuntimeError as error:
        raise ConfigError("engine: 'slurm' given, but this machine has no srun: it is in no Slurm cluster") from error
    flags = {name: os.environ[name] for name in ("XLA_FLAGS",) if name in os.environ}
    gpu = {"gpus_per_node": 1} if options.runs_per_gpu else {}
    executor.update_parameters(
        job_name="forethought",
        time=max(round(options.hours * 60), 1),
        cpus_per_task=options.cores,
        array_parallelism=options.jobs or len(runs),
        signal_delay_s=options.notice,
        # Before Python starts, as libraries read these when they are loaded.
        setup=[f"export {name}={shlex.quote(value)}" for name, value in threads(flags, options.cores).items()],
        additional_parameters={"requeue": True} | dict(options.sbatch),
        **gpu,
    )
    for run in runs:
        prepare(run)
    try:
        jobs = executor.map_array(Job(options.cores, options.runs_per_gpu), [str(run.path.absolute()) for run in runs])
    except FailedJobError as error:
        asked = " (runs_per_gpu: 0 asks for no GPU)" if gpu else ""
        raise ConfigError(f"{' '.join(str(error).split())}{asked}") from error
    return jobs[0].job_id.split("_")[0], len(runs)


@dataclass(frozen=True)
class Job:
    """What a job of the array does; submitit calls it, and `checkpoint` when it is told to stop before training."""

    cores: int
    runs_per_gpu: int

    def __call__(self, run_dir: str) -> None:
        """Bring a run to its end, or as far as this job may."""
        number = _number(os.environ)
        try:
            attempt(run_dir, self.cores, self.runs_per_gpu, f"slurm {number}")
        except InUse as error:
            print(error, file=sys.stderr)
        except CutOff:
            if _is_running(number):
                # The run took the signal for itself; now it is submitit's, which requeues the job.
                signal.raise_signal(signal.SIGUSR2)
            sys.exit(INTERRUPTED)

    def checkpoint(self, run_dir: str):
        """What the requeued job does: the same."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, run_dir)


def _number(environment: Mapping[str, str]) -> str:
    """What Slurm calls this job alone: the number of one job of an array is that of the whole array, too."""
    if "SLURM_ARRAY_TASK_ID" in environment:
        return f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    return environment["SLURM_JOB_ID"]


def _is_running(number: str) -> bool:
    """Whether a job is still meant to run: neither cancelled nor already put back by Slurm."""
    asked = subprocess.run(
        ["squeue", "--noheader", "--format=%T", f"--jobs={number}"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() == "RUNNING"


def _check(options: SlurmOptions) -> None:
    if options.runs_per_gpu > 1:
        raise ConfigError(
            f"runs_per_gpu: {options.runs_per_gpu} given; allowed on Slurm are 0 and 1, as it gives whole GPUs "
            "(Ray inside an allocation can share them)"
        )
    for name, least in (("jobs", 1), ("cores", 1), ("runs_per_gpu", 0), ("notice", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise ConfigError(f"{name}: {value} given; allowed is {least} or more")
    if not options.hours * 3600 > options.notice:
        raise ConfigError(f"hours: {options.hours:g} given; allowed is more than the {options.notice} s of notice")
