"""Batches at half the price: submit, quit, collect later, and never pay for one twice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forethought.judging.backend import Answer, Backend, Failure, Refused, Rejected, answer, failure
from forethought.judging.batch_log import BatchLog, BatchRecord, batch_records, held_targets
from forethought.judging.cost import Price
from forethought.judging.journal import now
from forethought.judging.providers import PROVIDERS
from forethought.judging.replies import Reply
from forethought.judging.requests import custom_id, request_record
from forethought.judging.schemas import WITHOUT_SCHEMA, response_schema
from forethought.judging.state import Request, State
from forethought.judging.store import Run, Writer
from forethought.judging.wording import Message, Wording

if TYPE_CHECKING:
    from pydantic_ai.models.batch import Batch, EncodedBatchRequest

PROBE = 4
"""Queries of the first batch, whose replies must validate before more is sent."""

PROBE_SHARE = 0.75
"""Share of a probe's judgments that must be valid."""


@dataclass(frozen=True)
class Submitted:
    """What was submitted.

    Attributes:
        batches: the provider's ids of the new batches.
        queries: requests in them.
        is_probe: whether it is the probe, to be collected before the rest can follow.
        left: requests still to be submitted.
    """

    batches: tuple[str, ...]
    queries: int
    is_probe: bool
    left: int


@dataclass(frozen=True)
class Standing:
    """Where one batch stands.

    Attributes:
        id: the provider's id; None if its creation was never confirmed.
        queries: requests in it.
        status: `in_progress`, `canceling`, `ended`, `collected`, `abandoned`, or `unconfirmed`.
        submitted: when, ISO 8601 in UTC.
        detail: what more there is to say, such as the replies collected.
    """

    id: str | None
    queries: int
    status: str
    submitted: str
    detail: str = ""


class Batches:
    """The batches of one run, which must be held for writing.

    Args:
        run: the run.
        writer: writes to it.
        backend: whom to ask.
        price: of live requests.

    Raises:
        ValueError: the provider has no batch API.
    """

    def __init__(self, run: Run, writer: Writer, backend: Backend, price: Price | None = None):
        if backend.model.batch_max_requests is None:
            able = ", ".join(name for name, provider in PROVIDERS.items() if provider.batches)
            raise ValueError(f"{backend.settings.model} has no batch API; models of {able} have one")
        self.run = run
        self.writer = writer
        self.log = BatchLog(run, writer)
        self.backend = backend
        self.price = price

    def waiting(self, state: State) -> list[Request]:
        """The requests that are in no open batch yet."""
        held = held_targets(self.run)
        return [request for query in self.run.plan.queries for request in state.pending(query, held)]

    async def submit(self, dialect: str | None = None) -> Submitted:
        """Submit everything that waits, after a probe of four queries has come back valid.

        Args:
            dialect: where on the provider's ladder of dialects to begin; None for the one that is settled, or the best.

        Raises:
            ValueError: an earlier batch is unconfirmed, the probe is still out, or its replies did not validate.
            Failure: the provider refused.
        """
        unconfirmed = [record for record in batch_records(self.run) if record.status == "unconfirmed"]
        if unconfirmed:
            raise ValueError(
                f"a batch of {len(unconfirmed[0].requests)} queries was about to be made at {unconfirmed[0].submitted} "
                "and was never confirmed. Look for it in the provider's list of batches: if it is there, adopt it by "
                "its id; if it is not, say that it may be submitted again"
            )
        requests = self.waiting(self.run.state())
        if not requests:
            return Submitted((), 0, False, 0)
        rung = dialect or self.run.dialect()
        first = self._message(requests[0], rung)
        is_probe = self._needs_probe(first.dialect)
        chosen = requests[:PROBE] if is_probe else requests
        messages = {id(requests[0]): first} | {id(request): self._message(request, rung) for request in chosen[1:]}
        encoded, entries = [], {}
        for request in chosen:
            message, name = messages[id(request)], custom_id(self.run.plan, request)
            self.writer.request(request_record(request, message, "batch"))
            encoded.append(await self.backend.model.batch_encode(self.backend.request(name, message)))
            entries[name] = {"custom_id": name, **request_record(request, message, "batch")}
        batches = [
            await self._create(part, [entries[item.custom_id] for item in part], is_probe)
            for part in self._parts(encoded)
        ]
        return Submitted(tuple(batches), len(chosen), is_probe, len(requests) - len(chosen))

    async def adopt(self, id: str) -> None:
        """Take a batch that the provider has made as the one that was never confirmed.

        Raises:
            ValueError: no batch is unconfirmed, or this one has another number of queries.
            Failure: the provider does not know it.
        """
        from pydantic_ai.models.batch import Batch

        record = next((record for record in batch_records(self.run) if record.status == "unconfirmed"), None)
        if record is None:
            raise ValueError("every batch of this run is confirmed; there is none to adopt")
        batch = await self._status(
            Batch(
                id=id,
                model_name=self.backend.model.model_name,
                provider_name=self.backend.model.system,
                group=record.group,
                status="in_progress",
                created_at=datetime.now(UTC),
                request_count=len(record.requests),
            )
        )
        if batch.request_count != len(record.requests):
            raise ValueError(f"{id} has {batch.request_count} queries; the one to adopt has {len(record.requests)}")
        self.log.confirm(record.id, _dump(batch))

    def abandon(self) -> int:
        """Let the queries of unconfirmed batches be submitted again; the number of such batches."""
        unconfirmed = [record for record in batch_records(self.run) if record.status == "unconfirmed"]
        for record in unconfirmed:
            self.log.abandon(record.id, "by hand")
        return len(unconfirmed)

    async def standings(self) -> list[Standing]:
        """Every batch, as the provider sees it now."""
        found = []
        for record in batch_records(self.run):
            handle = _handle(record)
            if handle is not None and record.status == "open":
                handle = await self._status(handle)
                found.append(_standing(record, handle, handle.status))
            else:
                found.append(_standing(record, handle, record.status, record.detail))
        return found

    async def cancel(self) -> int:
        """Ask the provider to cancel the open batches; what they have done can still be collected."""
        handles = [_handle(record) for record in batch_records(self.run) if record.status == "open"]
        for handle in filter(None, handles):
            try:
                await self.backend.model.batch_cancel(handle)
            except Exception as error:
                raise failure(error) from error
        return len(handles)

    async def collect(self) -> list[Standing]:
        """Store the replies of the batches that have ended; never waits for one.

        A request that failed or was never run waits to be asked again, live or in another batch.
        """
        found = []
        for record in batch_records(self.run):
            handle = _handle(record)
            if record.status != "open" or handle is None:
                continue
            handle = await self._status(handle)
            if handle.status != "ended":
                found.append(_standing(record, handle, handle.status))
                continue
            try:
                results = await self.backend.model.batch_results(handle)
            except Exception as error:
                raise failure(error) from error
            detail = self._store(record, results)
            self.log.collect(record.id, detail)
            found.append(_standing(record, handle, "collected", detail))
        return found

    def _message(self, request: Request, rung: str | None) -> Message:
        return Wording(self.run.plan, request, self.backend.provider).message(rung)

    async def _create(
        self, part: "Sequence[EncodedBatchRequest]", entries: list[dict[str, Any]], is_probe: bool
    ) -> str:
        name = self.log.intend(entries, is_probe=is_probe, group=part[0].group)
        try:
            batch = await self.backend.model.batch_create(part)
        except Exception as error:
            found = failure(error)
            if _is_clear_no(error, found):
                self.log.abandon(name, str(found))
            raise found from error
        self.log.confirm(name, _dump(batch))
        return batch.id

    def _store(self, record: BatchRecord, results: Iterable[Any]) -> str:
        """Match results by their custom id alone; keep every reply before looking at it."""
        entries = {entry["custom_id"]: entry for entry in record.requests}
        known = {(reply.query, reply.attempt) for reply in self.run.replies()}
        state = self.run.state()
        stored = valid = failed = foreign = 0
        reasons: dict[str, int] = {}
        for result in results:
            entry = entries.pop(result.custom_id, None)
            if entry is None:
                foreign += 1
                continue
            if (entry["query"], entry["attempt"]) in known:
                continue
            try:
                found = answer(self.backend.model.batch_decode(result, self._decoding(entry)))
            except Exception as error:
                failed += 1
                reason = str(failure(error))
                reasons[reason] = reasons.get(reason, 0) + 1
                continue
            reply = self._reply(entry, found)
            self.writer.reply(reply)
            stored += 1
            valid += len(state.take(reply)[0].selections)
        asked = sum(len(entry["targets"]) for entry in record.requests)
        parts = [f"{stored} replies, {valid} of {asked} judgments valid"]
        parts += [f"{count} failed ({reason})" for reason, count in reasons.items()]
        parts += [f"{len(entries)} without a result"] if entries else []
        parts += [f"{foreign} results of unknown requests passed over"] if foreign else []
        return "; ".join(parts)

    def _reply(self, entry: dict[str, Any], found: Answer) -> Reply:
        return Reply(
            query=entry["query"],
            attempt=entry["attempt"],
            targets=tuple(entry["targets"]),
            text=found.text,
            received=now(),
            finish=found.finish,
            model_served=found.model_served,
            usage=found.usage,
            cost_usd=round(self.price.of(found.usage, batch=True), 8) if self.price and found.usage else None,
            response_id=found.response_id,
            prompt_hash=entry["prompt_hash"],
            schema_hash=entry["schema_hash"],
            via="batch",
        )

    def _decoding(self, entry: dict[str, Any]) -> Any:
        """The request that a result belongs to, as far as reading the result depends on it."""
        plan, query = self.run.plan, self.run.plan.by_id[entry["query"]]
        ids = plan.wire_ids
        schema = response_schema(
            plan.kind,
            plan.settings.shape,
            entry["dialect"],
            [ids[s] for s in query.sources],
            [ids[t] for t in entry["targets"]],
        )
        on_the_wire = entry["dialect"] not in WITHOUT_SCHEMA
        return self.backend.request(entry["custom_id"], Message("", schema if on_the_wire else None, entry["dialect"]))

    def _parts(self, encoded: "list[EncodedBatchRequest]") -> "list[list[EncodedBatchRequest]]":
        """As few batches as the provider's limits allow."""
        model = self.backend.model
        most, bytes_most = model.batch_max_requests or 1, model.batch_max_bytes
        parts: list[list[EncodedBatchRequest]] = []
        size = 0
        for item in encoded:
            bytes_one = model.batch_request_size(item)
            full = not parts or len(parts[-1]) >= most or parts[-1][0].group != item.group
            if full or (bytes_most is not None and size + bytes_one > bytes_most):
                parts.append([])
                size = 0
            parts[-1].append(item)
            size += bytes_one
        return parts

    def _needs_probe(self, dialect: str) -> bool:
        """Whether no probe in this dialect has come back yet; a ValueError if it is still out, or came back bad."""
        probes = [r for r in batch_records(self.run) if r.is_probe and r.dialect == dialect and r.status != "abandoned"]
        if not probes:
            return True
        if probes[-1].status != "collected":
            raise ValueError("the probe is not collected yet; the rest can be submitted once its replies are valid")
        asked = {(entry["query"], entry["attempt"]): len(entry["targets"]) for entry in probes[-1].requests}
        checker = State(self.run.plan)
        replies = (reply for reply in self.run.replies() if (reply.query, reply.attempt) in asked)
        valid = sum(len(checker.take(reply)[1].selections) for reply in replies)
        if valid < PROBE_SHARE * sum(asked.values()):
            raise ValueError(
                f"of {sum(asked.values())} judgments in the probe, {valid} are valid: this batch API may ignore the "
                "response schema; try another dialect, or ask live"
            )
        return False

    async def _status(self, batch: "Batch") -> "Batch":
        try:
            return await self.backend.model.batch_status(batch)
        except Exception as error:
            found = failure(error)
            if isinstance(found, Refused):
                only = "a batch is visible only to the key, or project, that made it; nothing is submitted again"
                raise Refused(f"{found} ({only})") from error
            raise found from error


def _is_clear_no(error: Exception, found: Failure) -> bool:
    """Whether it is certain that no batch was made."""
    never_sent = getattr(error, "phase", None) in ("pool", "connect")
    return isinstance(found, Rejected | Refused) or getattr(error, "status_code", None) == 429 or never_sent


def _standing(record: BatchRecord, handle: "Batch | None", status: str, detail: str = "") -> Standing:
    return Standing(handle.id if handle else None, len(record.requests), status, record.submitted, detail)


def _handle(record: BatchRecord) -> "Batch | None":
    from pydantic import TypeAdapter
    from pydantic_ai.models.batch import Batch

    return TypeAdapter(Batch).validate_python(record.handle) if record.handle else None


def _dump(batch: "Batch") -> dict[str, Any]:
    from pydantic import TypeAdapter
    from pydantic_ai.models.batch import Batch

    return TypeAdapter(Batch).dump_python(batch, mode="json")
