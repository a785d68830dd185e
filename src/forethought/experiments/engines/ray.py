"""Runs on Ray: this machine with all its GPUs, or a cluster. Queue, places and retries are Ray's."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forethought.config import ConfigError
from forethought.experiments.engines.attempt import CutOff, InUse, attempt_in
from forethought.experiments.runs import in_use, log_path
from forethought.experiments.sweep import (
    Failure,
    Planned,
    SweepResult,
    Tally,
    prepare,
    settled,
    told_to_stop,
    usable_cores,
)

_POLL = 0.5
"""Seconds between two looks at the tasks."""

_OBJECTS = 100_000_000
"""Bytes for Ray's object store on this machine; the tasks hand over names of folders."""


@dataclass(frozen=True)
class RayOptions:
    """How runs are placed."""

    address: str = "local"
    """`local` for this machine alone; `auto` or host:port for a cluster that is there."""
    jobs: int | None = None
    """Runs side by side, at most; unset: as many as there are cores and GPUs for."""
    cores: int = 1
    """Cores of a run."""
    runs_per_gpu: int | None = None
    """Runs that share a GPU; 0: no run needs one; unset: 1 if the cluster has GPUs and the runs may use one, else 0."""
    retries: int = 3
    """How often a run is tried again whose process, machine or spot instance was lost."""


def sweep(planned: Sequence[Planned], options: RayOptions, say: Callable[[str], None] = print) -> SweepResult:
    """Bring runs to their ends; a run that fails does not stop the others.

    SIGINT, SIGTERM and SIGHUP tell the runs to save and end; a second SIGINT ends them at once.

    Raises:
        ConfigError: If an option is out of range, or a run asks for goals or files that are not there.
        ModuleNotFoundError: If Ray is not installed.
    """
    _check(options)
    waiting = list(settled(planned))
    tally = Tally(len(planned), len(planned) - len(waiting), say)
    with _cluster(options) as ray, told_to_stop() as signals:
        share = _runs_per_gpu(options, waiting, ray)
        # A process runs one task only: JAX gives a GPU back when its process ends.
        task = ray.remote(
            num_cpus=options.cores,
            num_gpus=1 / share if share else 0,
            max_calls=1,
            max_retries=options.retries,
            retry_exceptions=[CutOff],
        )(attempt_in)
        folder = os.getcwd()
        running: dict[Any, Planned] = {}
        told = 0
        try:
            while running or (waiting and not signals):
                while waiting and not signals and (options.jobs is None or len(running) < options.jobs):
                    run = waiting.pop(0).again()
                    if run.state.done:
                        tally.done(run.path, " by another process")
                    elif reason := in_use(run.path):
                        tally.elsewhere(run.path, reason)
                    else:
                        prepare(run)
                        # The same at every attempt, so that the claim of a lost one is void at once; Ray's own names
                        # of tasks are the same in every cluster.
                        job = f"ray {uuid.uuid4().hex}"
                        reference = task.remote(folder, str(run.path.absolute()), options.cores, share, job)
                        running[reference] = run
                        tally.begins(run, "as Ray finds room")
                ended = ray.wait(list(running), timeout=_POLL)[0] if running else []
                for reference in ended:
                    _note(tally, running.pop(reference), _outcome(ray, reference), stopping=bool(signals))
                if told < len(signals):
                    told = len(signals)
                    at_once = told > 1 and signals[-1] == signal.SIGINT
                    say("ending at once" if at_once else f"telling {len(running)} runs to save and end")
                    for reference in running:
                        ray.cancel(reference, force=at_once)
        finally:
            # Whatever went wrong here, the runs save.
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait(list(running), num_returns=len(running))
    return tally.result()


def _outcome(ray: Any, reference: Any) -> Exception | None:
    try:
        ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return error.cause if isinstance(error.cause, Exception) else error
    except ray.exceptions.RayError as error:
        return error
    return None


def _note(tally: Tally, run: Planned, error: Exception | None, stopping: bool) -> None:
    if error is None:
        tally.done(run.path)
    elif isinstance(error, InUse):
        tally.elsewhere(run.path, str(error))
    elif stopping:
        state = run.again().state
        how = f"is saved after iteration {state.iteration}" if state.begun else "had not begun"
        tally.say(f"{run.path} {how}")
    else:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        reason = "cut off too often" if isinstance(error, CutOff) else f"{type(error).__name__}: {lines[0]}"
        tally.failed(Failure(run.path, reason, log_path(run.path)))


def _check(options: RayOptions) -> None:
    for name, least in (("jobs", 1), ("cores", 1), ("runs_per_gpu", 0), ("retries", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise ConfigError(f"{name}: {value} given; allowed is {least} or more")
    here = len(usable_cores())
    if options.address == "local" and options.cores > here:
        raise ConfigError(f"cores: {options.cores} given; allowed on this machine are 1 to {here}")


def _runs_per_gpu(options: RayOptions, runs: Sequence[Planned], ray: Any) -> int:
    if options.runs_per_gpu is not None:
        return options.runs_per_gpu
    may = any(run.spec.config.device != "cpu" for run in runs)
    return int(may and ray.cluster_resources().get("GPU", 0) > 0)


@contextmanager
def _cluster(options: RayOptions) -> Iterator[Any]:
    """Ray, connected; a cluster of this machine's ends with this."""
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_UV_RUN_RUNTIME_ENV", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        os.environ.setdefault(name, "0")
    import ray

    settings: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "warning"}
    if options.address == "local":
        settings |= {"num_cpus": len(usable_cores()), "object_store_memory": _OBJECTS}
    try:
        ray.init(options.address, **settings)
    except ConnectionError as error:
        hint = "one that asks for a token needs RAY_AUTH_MODE=token"
        raise ConfigError(f"address: {options.address!r} given, but no Ray cluster answers there ({hint})") from error
    try:
        yield ray
    finally:
        ray.shutdown()
