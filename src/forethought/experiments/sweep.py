"""What a sweep is, whatever runs it: the runs with how far they are, and how it ended.

A sweep keeps nothing but the run directories: what is done is skipped, and what was cut off goes on exactly. So it can
be stopped, killed and started again at any time, by any of `forethought.experiments.engines`, and by several at once.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from forethought.config import ConfigError
from forethought.experiments.runs import RunState, check_same, run_state, write_plan
from forethought.experiments.suites import RunSpec, Suite

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True)
class Planned:
    """A run of a sweep, and how far it is."""

    spec: RunSpec
    path: Path
    state: RunState

    def again(self) -> "Planned":
        """The same run, as far as it is now: another scheduler may have had it."""
        return replace(self, state=run_state(self.path, self.spec.config.iterations))


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
    elsewhere: int
    """Runs that other processes are at work on."""
    left: int
    """Runs that are none of these, because the sweep was told to stop."""


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


def settled(planned: Sequence[Planned]) -> tuple[Planned, ...]:
    """The runs that are not done, with settled what runs settle when they begin.

    Raises:
        ConfigError: If a run asks for goals or files that are not there; this is found before any begins.
    """
    return tuple(_settled([run for run in planned if not run.state.done]))


def _settled(waiting: Sequence[Planned]) -> Iterator[Planned]:
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


def prepare(run: Planned) -> None:
    """Write the plan of a run that has not begun, so that `run_one` can begin it."""
    if not run.state.begun:
        write_plan(run.path, run.spec.config)


class Tally:
    """How the runs of a sweep end, one after another."""

    def __init__(self, total: int, done: int, say: Callable[[str], None]):
        self.say = say
        self._total, self._done, self._begun = total, done, done
        self._failures: list[Failure] = []
        self._elsewhere = 0

    def begins(self, run: Planned, where: str) -> None:
        """A run has been started or handed on."""
        self._begun += 1
        verb = f"goes on after iteration {run.state.iteration}" if run.state.begun else "begins"
        self.say(f"{self._begun}/{self._total} {run.path} {verb}, {where}")

    def done(self, path: Path, note: str = "") -> None:
        """A run has come to its end."""
        self._done += 1
        self.say(f"{path} done{note}")

    def failed(self, failure: Failure) -> None:
        """A run has ended as it should not."""
        self._failures.append(failure)
        self.say(f"{failure.path} failed: {failure.reason}")

    def elsewhere(self, path: Path, reason: str) -> None:
        """Another process is at work on a run."""
        self._elsewhere += 1
        self.say(f"{path} is left to another process: {reason}")

    def result(self) -> SweepResult:
        """The end."""
        left = self._total - self._done - len(self._failures) - self._elsewhere
        return SweepResult(self._done, tuple(self._failures), self._elsewhere, left)


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def told_to_stop() -> Iterator[list[int]]:
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


def _played_by(suite: Suite, backend: str) -> Suite:
    def changed(spec: RunSpec) -> RunSpec:
        environment = spec.config.environment.model_copy(update={"backend": backend})
        return replace(spec, config=spec.config.model_copy(update={"environment": environment}))

    return replace(suite, runs=tuple(changed(spec) for spec in suite.runs))
