"""What a run tells the person who waits for it: a live bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from forethought.evaluation import EvaluationResult

PLAIN_INTERVAL = 60.0
"""Seconds between two plain lines; an iteration that takes longer has a line of its own."""


@runtime_checkable
class Reporter(Protocol):
    """Shows the course of a run."""

    def start(self, iterations: int, done: int, device: str) -> None:
        """The run begins, or goes on after `done` iterations."""
        ...

    def message(self, text: str) -> None:
        """Something worth one line."""
        ...

    def iteration(self, row: Mapping[str, Any], top: Sequence[tuple[str, float]]) -> None:
        """An iteration is over: its line of `metrics.jsonl`, and the goals drawn most with their share."""
        ...

    def evaluation(self, iteration: int, result: "EvaluationResult") -> None:
        """An evaluation is over."""
        ...

    def close(self) -> None:
        """The run is over, one way or another."""
        ...


class SilentReporter:
    """Says nothing."""

    def start(self, iterations: int, done: int, device: str) -> None:
        """Say nothing."""

    def message(self, text: str) -> None:
        """Say nothing."""

    def iteration(self, row: Mapping[str, Any], top: Sequence[tuple[str, float]]) -> None:
        """Say nothing."""

    def evaluation(self, iteration: int, result: "EvaluationResult") -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""


class PlainReporter:
    """Lines for log files: one an iteration or one a minute, whichever is rarer."""

    def __init__(self, stream: IO[str] | None = None, interval: float = PLAIN_INTERVAL):
        self._stream = stream or sys.stderr
        self._interval = interval
        self._last = -math.inf
        self._iterations = 0
        self._pace = _Pace()

    def start(self, iterations: int, done: int, device: str) -> None:
        """Say what runs where."""
        self._iterations = iterations
        self.message(_opening(iterations, done, device))

    def message(self, text: str) -> None:
        """Print the line."""
        print(text, file=self._stream, flush=True)

    def iteration(self, row: Mapping[str, Any], top: Sequence[tuple[str, float]]) -> None:
        """Print a line if it is time for one, and always for the last iteration."""
        remaining = self._pace.remaining(row, self._iterations)
        now = time.monotonic()
        if now - self._last >= self._interval or row["iteration"] == self._iterations:
            self._last = now
            parts = [
                f"iteration {row['iteration']}/{self._iterations}",
                *_figures(row),
                f"ETA {_clock(remaining)}",
            ]
            self.message("  ".join([*parts, _top(top)]))

    def evaluation(self, iteration: int, result: "EvaluationResult") -> None:
        """Print the summary."""
        self.message(_summary(iteration, result))

    def close(self) -> None:
        """Nothing is held open."""


class LiveReporter:
    """A bar that stays at the bottom of the terminal."""

    def __init__(self, stream: IO[str] | None = None):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = Console(file=stream or sys.stderr)
        self._progress = Progress(
            TextColumn("[bold]{task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            transient=False,
        )
        self._task = self._progress.add_task("", total=1, figures="")
        self._iterations = 0
        self._pace = _Pace()

    def start(self, iterations: int, done: int, device: str) -> None:
        """Say what runs where and draw the bar."""
        self._iterations = iterations
        self.message(_opening(iterations, done, device))
        self._progress.update(self._task, total=iterations, completed=done)
        self._progress.start()

    def message(self, text: str) -> None:
        """Print the line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def iteration(self, row: Mapping[str, Any], top: Sequence[tuple[str, float]]) -> None:
        """Move the bar."""
        remaining = self._pace.remaining(row, self._iterations)
        figures = "  ".join([*_figures(row), f"ETA {_clock(remaining)}"])
        self._progress.update(self._task, completed=row["iteration"], figures=f"{figures}\n{_top(top)}")

    def evaluation(self, iteration: int, result: "EvaluationResult") -> None:
        """Print the summary above the bar."""
        self.message(_summary(iteration, result))

    def close(self) -> None:
        """Leave the last state of the bar on the screen."""
        self._progress.stop()


def make_reporter(stream: IO[str] | None = None) -> Reporter:
    """A live bar if the stream (default: stderr) is a terminal, else plain lines."""
    shown: IO[str] = stream or sys.stderr
    return LiveReporter(shown) if shown.isatty() else PlainReporter(shown)


class _Pace:
    """Seconds an iteration, the first one seen left out if it can be: it has the compilation in it."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def remaining(self, row: Mapping[str, Any], iterations: int) -> float:
        self._seconds.append(row["seconds"])
        recent = self._seconds[1:][-20:] or self._seconds
        return (iterations - row["iteration"]) * sum(recent) / len(recent)


def _opening(iterations: int, done: int, device: str) -> str:
    going_on = f", continuing after iteration {done}" if done else ""
    return f"device: {device}; {iterations} iterations{going_on}"


def _figures(row: Mapping[str, Any]) -> list[str]:
    mean = row["mean_success_rate"]
    success = "-" if mean is None or not math.isfinite(mean) else f"{mean:.3f}"
    return [
        f"{_count(row['steps'])} steps",
        f"{_count(row['steps_per_second'])} steps/s",
        f"success {success}",
        f"goals > 1/3: {round(row['goals_above_third'], 1):g}",
    ]


def _top(top: Sequence[tuple[str, float]]) -> str:
    return "top: " + ", ".join(f"{goal} {share:.0%}" for goal, share in top)


def _summary(iteration: int, result: "EvaluationResult") -> str:
    rates = result.success_rate
    above = int((rates > 1 / 3).sum())
    return (
        f"evaluation at iteration {iteration}: mean success {rates.mean():.3f}, "
        f"{above} of {len(rates)} goals above 1/3 ({int(result.episodes.sum())} episodes)"
    )


def _count(number: int | float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.2f}{unit}"
    return f"{number:.0f}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
