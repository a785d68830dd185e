"""The signals that ask a run to end: each becomes a flag, which the loop reads between iterations."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from forethought.progress import Reporter


class Stop:
    """Whether a signal has asked the run to end."""

    asked = False


@contextmanager
def stop_on_signals(reporter: Reporter) -> Iterator[Stop]:
    """Turn the signals that ask a process to end into a flag, as long as this lasts."""
    stop = Stop()

    def ask(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        reporter.message(f"{signal.Signals(number).name}: saving at the end of this iteration{again}")

    previous: dict[int, Any] = {}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        try:
            previous[number] = signal.signal(number, ask)
        except ValueError:  # Only the main thread may, and a run in another one is not a process to be asked to end.
            break
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
