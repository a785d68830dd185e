"""What a scheduler's process does with one run; imports nothing heavy before it has set how many threads there are."""

import os
import socket
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path


class CutOff(Exception):
    """A signal has ended a run early; it is saved, and another attempt goes on with it."""


class InUse(Exception):
    """Another process is at work on the run."""


def attempt(run_dir: str, cores: int, runs_per_gpu: int, job: str) -> None:
    """Bring a run to its end in this process; what it says goes to its log.

    Args:
        run_dir: The run.
        cores: How many threads its libraries use.
        runs_per_gpu: Runs that share the GPU; 0: it has none.
        job: What the scheduler calls this, the same at every attempt.

    Raises:
        CutOff: If it was told to stop.
        InUse: If another process is at work on it.
        Exception: What went wrong.
    """
    set_environment(os.environ, cores, runs_per_gpu)
    from forethought.experiments.claim import Busy
    from forethought.experiments.runs import log_path, run_one

    with _said_in(log_path(run_dir)):
        print(_where(os.environ, cores, runs_per_gpu, job), flush=True)
        try:
            done = run_one(run_dir, job)
        except Busy as error:
            raise InUse(str(error)) from None
        except BaseException:
            traceback.print_exc()
            raise
    if not done:
        raise CutOff(run_dir)


def attempt_in(folder: str, run_dir: str, cores: int, runs_per_gpu: int, job: str) -> None:
    """`attempt` with files that the run's configuration names looked for in `folder`."""
    os.chdir(folder)
    attempt(run_dir, cores, runs_per_gpu, job)


def set_environment(environment: MutableMapping[str, str], cores: int, runs_per_gpu: int) -> None:
    """Set threads, and the share of the GPU's memory that JAX takes: nine tenths of it over all runs.

    JAX reads the fraction as one of the whole memory, and takes three quarters if it is not set.
    """
    environment.update(threads(environment, cores))
    if runs_per_gpu > 1:
        # JAX refuses the older name beside this one.
        environment.pop("XLA_PYTHON_CLIENT_MEM_FRACTION", None)
        environment["XLA_CLIENT_MEM_FRACTION"] = f"{0.9 / runs_per_gpu:.3f}"


def threads(environment: Mapping[str, str], count: int) -> dict[str, str]:
    """An environment for a process whose libraries use so many threads."""
    pools = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
    flags = environment.get("XLA_FLAGS", "")
    if count == 1 and "xla_cpu_multi_thread_eigen" not in flags:
        flags = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    changed = dict.fromkeys(pools, str(count)) | ({"XLA_FLAGS": flags} if flags else {})
    return {**environment, **changed}


def _where(environment: Mapping[str, str], cores: int, runs_per_gpu: int, job: str) -> str:
    gpu = environment.get("CUDA_VISIBLE_DEVICES") if runs_per_gpu else None
    share = f", {environment['XLA_CLIENT_MEM_FRACTION']} of its memory" if runs_per_gpu > 1 else ""
    device = f", GPU {gpu}{share}" if gpu is not None else ""
    return f"{job} on {socket.gethostname()}: {cores} core{'s' if cores > 1 else ''}{device}"


@contextmanager
def _said_in(log: Path) -> Iterator[None]:
    """Everything that this process prints goes to the end of a file, as long as this lasts."""
    kept = [os.dup(number) for number in (1, 2)]
    with open(log, "a", encoding="utf-8", buffering=1) as file:
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            # Schedulers put objects of their own in the place of the standard streams.
            with redirect_stdout(file), redirect_stderr(file):
                yield
        finally:
            for number, original in zip((1, 2), kept, strict=True):
                os.dup2(original, number)
                os.close(original)
