"""Many runs on this machine: each a process of its own on cores of its own, until all are done or told to stop.

A sweep keeps nothing but the run directories: what is done is skipped, and what was cut off goes on exactly. So it can
be stopped, killed and started again at any time. Runs are told to save when the sweep is told to stop; if it is killed
outright, they end by themselves, and their directories stay locked until then.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from forethought.config import ConfigError
from forethought.experiments.runs import (
    INTERRUPTED,
    RunState,
    check_same,
    log_path,
    run_state,
    write_plan,
)
from forethought.experiments.suites import RunSpec, Suite
from forethought.rundir import RunDirectory

_POLL = 0.1
"""Seconds between two looks at the processes."""

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")

_STOPPED = {INTERRUPTED: "is saved", -signal.SIGTERM: "had not begun", -signal.SIGINT: "ended at once"}
"""What the end of a process that was told to end means."""


@dataclass(frozen=True)
class Planned:
    """A run of a sweep, and how far it is."""

    spec: RunSpec
    path: Path
    state: RunState


@dataclass(frozen=True)
class Failure:
    """A run that ended as it should not."""

    path: Path
    reason: str
    """How the process ended, and the last thing that it said."""
    log: Path


@dataclass(frozen=True)
class SweepResult:
    """How a sweep ended."""

    done: int
    """Runs that are done, those included that were done before."""
    failures: tuple[Failure, ...]
    left: int
    """Runs that are neither done nor failed, because the sweep was told to stop."""


def plan(suite: Suite, out: str | Path, backend: Literal["auto", "engine", "jax"] = "auto") -> tuple[Planned, ...]:
    """What a sweep would do, without doing it.

    Args:
        suite: The runs.
        out: Folder of the sweep.
        backend: What plays Craftax; `auto` goes on with what the suite's runs in `out` began with.

    Raises:
        ConfigError: If a directory holds a run with another configuration, or the runs there were played by both
            backends; nothing is mixed under one name.
    """
    if backend != "auto":
        suite = _played_by(suite, backend)
    planned, played = [], {}
    for spec in suite.runs:
        path = Path(out) / spec.directory
        state = run_state(path, spec.config.iterations)
        if state.begun:
            played.setdefault(check_same(path, spec.config).environment.backend, path)
        planned.append(Planned(spec, path, state))
    if len(played) > 1:
        named = " and ".join(f"{name!r} in {path}" for name, path in sorted(played.items()))
        raise ConfigError(f"environment.backend: {named}; the runs of a suite are comparable under one only")
    if backend == "auto" and played:
        suite = _played_by(suite, next(iter(played)))
    return tuple(replace(run, spec=spec) for run, spec in zip(planned, suite.runs, strict=True))


def sweep(
    planned: Sequence[Planned],
    *,
    jobs: int = 1,
    one_core_each: bool = False,
    say: Callable[[str], None] = print,
) -> SweepResult:
    """Bring runs to their ends, `jobs` at a time; a run that fails does not stop the others.

    SIGINT, SIGTERM and SIGHUP tell the runs to save and end; a second SIGINT ends them at once.

    Args:
        planned: The runs, in the order in which they begin.
        jobs: Runs side by side.
        one_core_each: Whether each has one core, however many there are, so that a run does not depend on `jobs`; else
            all cores that this process may use are shared out.
        say: Called with one line for each thing that happens.

    Raises:
        ConfigError: If `jobs` is out of range, or a run asks for goals or files that are not there.
    """
    shares = share_cores(jobs, one_core_each)
    settled = list(_settled([run for run in planned if not run.state.done]))
    pool = _Pool(settled, shares, len(planned), say)
    with _told_to_stop() as signals:
        try:
            while pool.busy(stopping=bool(signals)):
                if not signals:
                    pool.fill()
                pool.reap(stopping=bool(signals))
                pool.pass_on(signals)
                time.sleep(_POLL)
        finally:
            # Whatever went wrong here, no run may be left behind unattended.
            pool.end()
    return SweepResult(pool.done, tuple(pool.failures), len(planned) - pool.done - len(pool.failures))


class _Pool:
    """The runs at work, a slot with cores for each, and those that wait for one."""

    def __init__(self, waiting: Sequence[Planned], shares: Sequence[set[int]], total: int, say: Callable[[str], None]):
        self.waiting = list(waiting)
        self.free = list(shares)
        self.running: list[_Process] = []
        self.total, self.done = total, total - len(waiting)
        self.failures: list[Failure] = []
        self.say = say
        self._begun, self._told = self.done, 0

    def busy(self, stopping: bool) -> bool:
        return bool(self.running or (self.waiting and not stopping))

    def fill(self) -> None:
        """Begin runs while there are cores for them."""
        while self.waiting and self.free:
            run = self.waiting.pop(0)
            self._begun += 1
            if run.state.begun and (reason := _in_use(run.path)):
                self._fail(Failure(run.path, reason, log_path(run.path)))
                continue
            cores = self.free.pop(0)
            self.running.append(_Process(run, cores))
            verb = f"goes on after iteration {run.state.iteration}" if run.state.begun else "begins"
            self.say(f"{self._begun}/{self.total} {run.path} {verb}, core {','.join(map(str, sorted(cores)))}")

    def reap(self, stopping: bool) -> None:
        """Take note of the runs that have ended."""
        for process in list(self.running):
            if (code := process.popen.poll()) is None:
                continue
            self.running.remove(process)
            self.free.append(process.cores)
            seconds = round(time.monotonic() - process.started)
            if code == 0:
                self.done += 1
                self.say(f"{process.run.path} done in {seconds // 60}:{seconds % 60:02d}")
            elif stopping and code in _STOPPED:
                self.say(f"{process.run.path} {_STOPPED[code]}")
            else:
                self._fail(_failure(process, code))

    def _fail(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.say(f"{failure.path} failed: {failure.reason}")

    def pass_on(self, signals: Sequence[int]) -> None:
        """Tell the runs what this process has been told since."""
        if self._told == len(signals):
            return
        self._told = len(signals)
        at_once = len(signals) > 1 and signals[-1] == signal.SIGINT
        self.say("ending at once" if at_once else f"telling {len(self.running)} runs to save and end")
        for process in self.running:
            process.popen.send_signal(signal.SIGINT if at_once else signal.SIGTERM)

    def end(self) -> None:
        """Tell the runs that are still there to save, and wait for them."""
        for process in self.running:
            process.popen.terminate()
        for process in self.running:
            process.popen.wait()


def share_cores(jobs: int, one_core_each: bool = False) -> list[set[int]]:
    """The cores that this process may use, shared out among so many runs, or one for each.

    Raises:
        ConfigError: If there is not a core for each.
    """
    cores = usable_cores()
    if not 1 <= jobs <= len(cores):
        raise ConfigError(f"jobs: {jobs} given; allowed are 1 to {len(cores)}, a core for each")
    return [{cores[number]} if one_core_each else set(cores[number::jobs]) for number in range(jobs)]


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class _Process:
    """A run at work."""

    def __init__(self, run: Planned, cores: set[int]):
        self.run = run
        self.cores = cores
        self.started = time.monotonic()
        if not run.state.begun:
            write_plan(run.path, run.spec.config)
        with open(log_path(run.path), "ab") as log, _pinned(cores):
            self.log_start = log.tell()
            # A session of its own: Ctrl-C on the terminal reaches the sweep, and the runs by way of it.
            self.popen = subprocess.Popen(
                run_command(run.path),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=threads(os.environ, len(cores)),
                start_new_session=True,
            )


def run_command(path: Path) -> list[str]:
    """The program that brings a run to its end."""
    return [sys.executable, "-m", "forethought.experiments.runs", str(path)]


def threads(environment: Mapping[str, str], count: int) -> dict[str, str]:
    """An environment for a process whose libraries use so many threads."""
    pools = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
    flags = environment.get("XLA_FLAGS", "")
    if count == 1 and "xla_cpu_multi_thread_eigen" not in flags:
        flags = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    changed = dict.fromkeys(pools, str(count)) | ({"XLA_FLAGS": flags} if flags else {})
    return {**environment, **changed}


@contextmanager
def _pinned(cores: set[int]) -> Iterator[None]:
    """What is started meanwhile stays on these cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _told_to_stop() -> Iterator[list[int]]:
    """The signals that have asked this process to end, as long as this lasts."""
    received: list[int] = []
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # Only the main thread may, and a sweep in another one is not a process to be asked to end.
    previous = {number: signal.signal(number, lambda number, _: received.append(number)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _settled(waiting: Sequence[Planned]) -> Iterator[Planned]:
    """The runs with settled what they settle when they begin; what is missing is found before any begins."""
    from forethought.domains import choose_backend, load_domain

    backends, checked = {}, set()
    for run in waiting:
        config = run.spec.config
        key = (config.tasks.domain, config.environment.backend)
        if key not in backends:
            backends[key] = choose_backend(config).environment.backend
        environment = config.environment.model_copy(update={"backend": backends[key]})
        config = config.model_copy(update={"environment": environment})
        needs = (config.tasks, config.evaluation.goals, config.learner, config.embeddings)
        if needs not in checked:
            load_domain(config)
            checked.add(needs)
        yield replace(run, spec=replace(run.spec, config=config))


def _played_by(suite: Suite, backend: str) -> Suite:
    def changed(spec: RunSpec) -> RunSpec:
        environment = spec.config.environment.model_copy(update={"backend": backend})
        return replace(spec, config=spec.config.model_copy(update={"environment": environment}))

    return replace(suite, runs=tuple(changed(spec) for spec in suite.runs))


def _failure(process: _Process, code: int) -> Failure:
    log = log_path(process.run.path)
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    text = log.read_bytes()[process.log_start :].decode("utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    return Failure(process.run.path, f"{how}: {lines[-1].strip()}" if lines else how, log)


def _in_use(path: Path) -> str | None:
    """Which process is at work on a run, in one line; None if none is."""
    try:
        with RunDirectory(path).locked():
            return None
    except ValueError as error:
        return str(error)
