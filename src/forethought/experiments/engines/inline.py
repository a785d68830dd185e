"""Runs on this machine: each a process of its own on cores of its own.

Runs are told to save when the sweep is told to stop; if it is killed outright, they end by themselves, and stay claimed
until then.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from forethought.config import ConfigError
from forethought.experiments.engines.attempt import threads
from forethought.experiments.runs import BUSY, INTERRUPTED, in_use, log_path
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

_POLL = 0.1
"""Seconds between two looks at the processes."""

_STOPPED = {INTERRUPTED: "is saved", -signal.SIGTERM: "had not begun", -signal.SIGINT: "ended at once"}
"""What the end of a process that was told to end means."""


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
    waiting = settled(planned)
    tally = Tally(len(planned), len(planned) - len(waiting), say)
    pool = _Pool(waiting, shares, tally)
    with told_to_stop() as signals:
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
    return tally.result()


class _Pool:
    """The runs at work, a slot with cores for each, and those that wait for one."""

    def __init__(self, waiting: Sequence[Planned], shares: Sequence[set[int]], tally: Tally):
        self.waiting = list(waiting)
        self.free = list(shares)
        self.running: list[_Process] = []
        self.tally = tally
        self._told = 0

    def busy(self, stopping: bool) -> bool:
        return bool(self.running or (self.waiting and not stopping))

    def fill(self) -> None:
        """Begin runs while there are cores for them."""
        while self.waiting and self.free:
            run = self.waiting.pop(0).again()
            if run.state.done:
                self.tally.done(run.path, " by another process")
                continue
            if reason := in_use(run.path):
                self.tally.elsewhere(run.path, reason)
                continue
            cores = self.free.pop(0)
            self.running.append(_Process(run, cores))
            self.tally.begins(run, f"core {','.join(map(str, sorted(cores)))}")

    def reap(self, stopping: bool) -> None:
        """Take note of the runs that have ended."""
        for process in list(self.running):
            if (code := process.popen.poll()) is None:
                continue
            self.running.remove(process)
            self.free.append(process.cores)
            path, seconds = process.run.path, round(time.monotonic() - process.started)
            if code == 0:
                self.tally.done(path, f" in {seconds // 60}:{seconds % 60:02d}")
            elif code == BUSY:
                self.tally.elsewhere(path, process.last_words())
            elif stopping and code in _STOPPED:
                self.tally.say(f"{path} {_STOPPED[code]}")
            else:
                self.tally.failed(_failure(process, code))

    def pass_on(self, signals: Sequence[int]) -> None:
        """Tell the runs what this process has been told since."""
        if self._told == len(signals):
            return
        self._told = len(signals)
        at_once = len(signals) > 1 and signals[-1] == signal.SIGINT
        self.tally.say("ending at once" if at_once else f"telling {len(self.running)} runs to save and end")
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


class _Process:
    """A run at work."""

    def __init__(self, run: Planned, cores: set[int]):
        self.run = run
        self.cores = cores
        self.started = time.monotonic()
        prepare(run)
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

    def last_words(self) -> str:
        """The last line that the run said this time; empty if it said nothing."""
        text = log_path(self.run.path).read_bytes()[self.log_start :].decode("utf-8", errors="replace")
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def run_command(path: Path) -> list[str]:
    """The program that brings a run to its end."""
    return [sys.executable, "-m", "forethought.experiments.runs", str(path)]


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


def _failure(process: _Process, code: int) -> Failure:
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    words = process.last_words()
    return Failure(process.run.path, f"{how}: {words}" if words else how, log_path(process.run.path))
