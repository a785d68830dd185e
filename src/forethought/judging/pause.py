"""The pause that all requests share after a failure."""

import random
from time import monotonic

LONGEST = 60.0
"""Seconds to wait, at most, where the provider does not say how long."""


class Pause:
    """Says until when nothing is sent, and when to give up.

    Args:
        patience: failures in a row before giving up, at least 1.

    Attributes:
        until: time, by the monotonic clock, at which sending may go on.
        failures: failures in a row so far.
        is_new: whether the last failure began a new pause.
    """

    def __init__(self, patience: int):
        self.until = 0.0
        self.failures = 0
        self.is_new = False
        self._patience = patience
        self._began = 0.0

    def begin(self, asked: float | None, sent: float) -> bool:
        """Wait as long as the provider asks, or twice as long after each failure in a row.

        Args:
            asked: seconds that the provider asks to wait; None if it does not say.
            sent: when the request that failed was sent, by the monotonic clock.

        Returns:
            Whether patience is left.
        """
        # Requests that were in flight when the pause began fail for the same reason, and count once.
        self.is_new = sent >= self._began
        if self.is_new:
            self.failures += 1
            self._began = monotonic()
        wait = min(LONGEST, 2.0**self.failures) * random.uniform(0.8, 1.2)
        if asked is not None:
            # A provider that keeps asking for too little is not obeyed to the letter.
            wait = asked if self.failures <= 2 else max(asked, wait)
        self.until = max(self.until, monotonic() + wait)
        return self.failures < self._patience

    def over(self) -> None:
        """A reply came: the next failure is the first in a row again."""
        self.failures = 0
