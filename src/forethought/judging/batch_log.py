"""The record of a run's batches: what was about to be made, what was made, what was collected.

A batch goes through `batches.jsonl` as events: `intent` before the provider is asked to make it, `handle` when it is
made, `collected` when its replies are stored, `abandoned` when none was made. A kill between the first two leaves an
intent without a handle, which only a person can settle: creating a batch is not idempotent at any provider.
"""

from dataclasses import dataclass
from typing import Any

from forethought.judging.journal import now
from forethought.judging.store import Run, Writer


@dataclass(frozen=True)
class BatchRecord:
    """What is known here of one batch.

    Attributes:
        id: the name that it has in this run.
        status: `unconfirmed`, `open`, `collected` or `abandoned`.
        requests: its requests: `custom_id`, `query`, `attempt`, `targets`, `dialect`, `prompt_hash`, `schema_hash`.
        is_probe: whether it is a probe.
        group: what the provider's client needs to find it again.
        submitted: when, ISO 8601 in UTC.
        handle: the provider's handle as plain data; None without one.
        detail: what was collected, or why it was abandoned.
    """

    id: str
    status: str
    requests: tuple[dict[str, Any], ...]
    is_probe: bool
    group: str
    submitted: str
    handle: dict[str, Any] | None = None
    detail: str = ""

    @property
    def dialect(self) -> str:
        """The dialect of its response schemas."""
        return self.requests[0]["dialect"]


def batch_records(run: Run) -> list[BatchRecord]:
    """The batches of a run, oldest first."""
    events: dict[str, dict[str, dict[str, Any]]] = {}
    for event in run.batch_events():
        events.setdefault(event["id"], {})[event["event"]] = event
    return [_record(id, seen) for id, seen in events.items() if "intent" in seen]


def held_targets(run: Run) -> set[tuple[str, int]]:
    """Query id and target of every judgment that a batch is still to bring."""
    return {
        (request["query"], target)
        for record in batch_records(run)
        if record.status in ("open", "unconfirmed")
        for request in record.requests
        for target in request["targets"]
    }


class BatchLog:
    """Writes the events of a run that is held."""

    def __init__(self, run: Run, writer: Writer):
        self._run = run
        self._writer = writer

    def intend(self, requests: list[dict[str, Any]], *, is_probe: bool, group: str) -> str:
        """Note that a batch is about to be made; the name that it has from now on."""
        id = f"batch-{len(batch_records(self._run)) + 1}"
        self._write("intent", id, requests=requests, probe=is_probe, group=group)
        return id

    def confirm(self, id: str, handle: dict[str, Any]) -> None:
        """Note that it was made."""
        self._write("handle", id, handle=handle)

    def collect(self, id: str, detail: str) -> None:
        """Note that its replies are stored."""
        self._write("collected", id, detail=detail)

    def abandon(self, id: str, reason: str) -> None:
        """Note that it was never made."""
        self._write("abandoned", id, detail=reason)

    def _write(self, event: str, id: str, **fields: Any) -> None:
        self._writer.batch({"event": event, "id": id, "time": now(), **fields})


def _record(id: str, seen: dict[str, dict[str, Any]]) -> BatchRecord:
    intent = seen["intent"]
    if "collected" in seen or "abandoned" in seen:
        status = "collected" if "collected" in seen else "abandoned"
    else:
        status = "open" if "handle" in seen else "unconfirmed"
    return BatchRecord(
        id=id,
        status=status,
        requests=tuple(intent["requests"]),
        is_probe=intent["probe"],
        group=intent["group"],
        submitted=intent["time"],
        handle=seen["handle"]["handle"] if "handle" in seen else None,
        detail=seen.get(status, {}).get("detail", ""),
    )
