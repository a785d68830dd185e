"""A judging run on disk: `plan.json`, `replies.jsonl`, `requests.jsonl`, `batches.jsonl`, `lock`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forethought.files import sync_directory
from forethought.judging.journal import Journal, Locked, lock, read_journal
from forethought.judging.plan import Plan
from forethought.judging.replies import Reply
from forethought.judging.state import Judgment, State

__all__ = ["Judgment", "Locked", "Run", "Writer", "create_run", "open_run"]

PLAN, REPLIES, REQUESTS, BATCHES = "plan.json", "replies.jsonl", "requests.jsonl", "batches.jsonl"


class Run:
    """A run directory, read afresh by every method.

    Attributes:
        path: the directory.
        plan: what the run asks.
    """

    def __init__(self, path: Path, plan: Plan):
        self.path = path
        self.plan = plan

    def replies(self) -> Iterator[Reply]:
        """Every stored reply, good or bad, in the order of arrival; a ValueError names a line that is none."""
        for number, line in enumerate(read_journal(self.path / REPLIES), 1):
            try:
                yield Reply.from_line(line)
            except ValueError as error:
                raise ValueError(f"{self.path / REPLIES}, line {number}: {error}") from error

    def judgments(self) -> Iterator[Judgment]:
        """What valid replies have settled, in the order of arrival; a target is settled once for each query."""
        state = State(self.plan)
        for reply in self.replies():
            judgment, _ = state.take(reply)
            if judgment.selections:
                yield judgment

    def missing(self) -> dict[str, tuple[int, ...]]:
        """Targets without a valid judgment, by query."""
        return self.state().missing()

    def state(self, asks: int | None = None) -> State:
        """Where the run stands; `asks` replaces the plan's number of times that one target is asked."""
        state = State(self.plan, asks)
        for reply in self.replies():
            state.take(reply)
        for request in self.requests():
            state.note_attempt(request["query"], request["attempt"])
        return state

    def requests(self) -> Iterator[dict[str, Any]]:
        """Every request made: `query`, `attempt`, `targets`, `prompt_hash`, `schema_hash`, `dialect`, `via`, `time`."""
        return (line for line in read_journal(self.path / REQUESTS) if "query" in line)

    def dialect(self) -> str | None:
        """The dialect of response schemas that this run's provider has taken last; None before the first reply."""
        settled = [line["settled_dialect"] for line in read_journal(self.path / REQUESTS) if "settled_dialect" in line]
        return settled[-1] if settled else None

    def batch_events(self) -> list[dict[str, Any]]:
        """The record of batches: `intent`, `handle`, `collected` and `abandoned` events in order."""
        return list(read_journal(self.path / BATCHES))

    @contextmanager
    def writing(self, purpose: str) -> Iterator["Writer"]:
        """Hold the run for writing.

        Args:
            purpose: what for, shown to another process that finds the run held.

        Raises:
            Locked: another process holds it.
        """
        with lock(self.path, purpose):
            writer = Writer(self.path)
            try:
                yield writer
            finally:
                writer.close()


class Writer:
    """Appends to the files of a run that is held."""

    def __init__(self, path: Path):
        self._replies, self._requests, self._batches = (Journal(path / name) for name in (REPLIES, REQUESTS, BATCHES))

    def reply(self, reply: Reply) -> None:
        """Store a reply; it is on disk when this returns."""
        self._replies.append(reply.to_line())

    def request(self, record: dict[str, Any]) -> None:
        """Note a request before it is sent."""
        self._requests.append(record, durable=False)

    def settle_dialect(self, dialect: str) -> None:
        """Note the dialect of response schemas that the provider takes."""
        self._requests.append({"settled_dialect": dialect})

    def batch(self, event: dict[str, Any]) -> None:
        """Store an event of a batch; it is on disk when this returns."""
        self._batches.append(event)

    def close(self) -> None:
        """Put everything on disk."""
        for journal in (self._replies, self._requests, self._batches):
            journal.close()


def open_run(path: str | Path) -> Run:
    """Read a run directory; takes no lock. A ValueError says what is wrong with it."""
    path = Path(path)
    if not path.is_dir():
        raise ValueError(f"{path}: no such judging run; make one with: forethought judge plan")
    return Run(path, Plan.load(path / PLAN))


def create_run(path: str | Path, plan: Plan) -> Run:
    """Make a run directory for a plan, or find it again.

    Raises:
        ValueError: the directory holds a run with another plan, or something else.
    """
    path = Path(path)
    if (path / PLAN).exists():
        run = open_run(path)
        if run.plan.digest != plan.digest:
            raise ValueError(f"{path} holds a run with another plan; name another directory")
        return run
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"{path} exists and is no judging run; name another directory")
    path.mkdir(parents=True, exist_ok=True)
    plan.save(path / PLAN)
    sync_directory(path.parent)
    return Run(path, plan)
