"""What a model answered, and the only judge of whether that is an answer."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

from forethought.judging.blocks import Query
from forethought.judging.plan import Plan

LIST_NAMES = {"learning_connectivity": "records", "feasibility_evidence": "judgments", "interestingness": "records"}
"""The list in a reply that holds one record a target, by kind of judgment."""

TARGET, SOURCES = "target_id", "transfer_source_ids"
"""Fields of a connectivity record."""

CHOICES = {"learning_connectivity": SOURCES, "interestingness": "mastered_goal_ids"}
"""The field with what was chosen, for the kinds that judge pairs: any number for each target."""

EVALUATED, SCRATCH, EVIDENCE = "evaluated_goal_id", "feasible_from_scratch", "readiness_evidence_goal_ids"
"""Fields of an evidence record."""

MOST_EVIDENCE = 3
"""Evidence goals that one judgment may name (paper, Appendix B.1)."""


@dataclass(frozen=True)
class Reply:
    """One stored reply, or a request that ended without one.

    Attributes:
        query: id of the query.
        attempt: number of the request about this query, from 1; unique for a query.
        targets: positions of the tasks that this request asked to judge.
        text: what the model wrote, unchanged.
        received: when, ISO 8601 in UTC.
        finish: why the model stopped: `stop`, `length`, `content_filter`, ...
        model_served: the model that answered, as the provider names it.
        usage: tokens: `input`, `cached` (part of input), `output`, `thoughts` (part of output).
        cost_usd: price of the request in US dollars; None if unknown.
        response_id: the provider's name for the reply.
        prompt_hash: SHA-256 of the prompt sent.
        schema_hash: SHA-256 of the response schema sent; None without one.
        via: `live`, `batch` or `import`.
        error: what went wrong if there is no usable reply.
        maybe_paid: whether a request without a reply may have been paid for.
    """

    query: str
    attempt: int
    targets: tuple[int, ...]
    text: str = ""
    received: str | None = None
    finish: str | None = None
    model_served: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    response_id: str | None = None
    prompt_hash: str | None = None
    schema_hash: str | None = None
    via: str = "live"
    error: str | None = None
    maybe_paid: bool = False

    def to_line(self) -> dict[str, Any]:
        """The reply as a record of `replies.jsonl`; what is unknown is left out."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and value != {} and value is not False
        }

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> "Reply":
        """A record of `replies.jsonl`; a ValueError names what is wrong with it."""
        try:
            reply = cls(**{**line, "targets": tuple(line["targets"])})
            if not (isinstance(reply.query, str) and isinstance(reply.text, str) and isinstance(reply.attempt, int)):
                raise TypeError("query and text must be texts, attempt a whole number")
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a stored reply: {error}") from error
        return reply


class Verdict(NamedTuple):
    """What is good in a reply, and what is wrong with the rest."""

    selections: dict[int, tuple[int, ...]]
    """Sources chosen, by target; empty evidence means feasible from scratch."""
    problems: dict[int, str]
    """What is wrong, by target that was asked and has no valid judgment."""


def judge(plan: Plan, query: Query, targets: Sequence[int], text: str) -> Verdict:
    """Read a reply to a request about some targets of a query. Nothing is guessed, repaired or filled in.

    Prose, code fences and thinking around the JSON are passed over, and so are records about goals that were not
    asked; a record counts if its target was asked, occurs once, and names only goals that were offered, none twice
    and never itself.
    """
    asked = {plan.wire_ids[position]: position for position in targets}
    offered = {plan.wire_ids[position]: position for position in query.sources}
    try:
        records = _records(plan.kind, parse(text), asked)
    except ValueError as error:
        return Verdict({}, dict.fromkeys(targets, str(error)))
    read = partial(_read_pairs, CHOICES[plan.kind]) if plan.kind in CHOICES else _read_evidence
    name = TARGET if plan.kind in CHOICES else EVALUATED
    selections, problems = {}, {position: f"{id} has no record" for id, position in asked.items()}
    seen: dict[Any, int] = {}
    for record in records:
        id = record.get(name) if isinstance(record, dict) else None
        if not isinstance(id, str) or id not in asked:
            continue
        target = asked[id]
        seen[id] = seen.get(id, 0) + 1
        try:
            chosen = read(id, record)
            _check_choice(id, chosen, offered)
        except ValueError as error:
            problems[target] = str(error)
            continue
        problems.pop(target, None)
        selections[target] = tuple(offered[source] for source in chosen)
    for id, times in seen.items():
        if times > 1:
            selections.pop(asked[id], None)
            problems[asked[id]] = f"{id} has {times} records"
    return Verdict(selections, problems)


def parse(text: str) -> Any:
    """The JSON value in a reply.

    Raises:
        ValueError: there is none, or an object in it repeats a property.
    """
    if not text.strip():
        raise ValueError("the reply is empty")
    after_thinking = text.rpartition("</think>")[2]
    candidates = [text, after_thinking]
    candidates += re.findall(r"```[a-zA-Z]*\s*\n(.*?)```", after_thinking, re.DOTALL)[-1:]
    if (first := re.search(r"[\[{]", after_thinking)) and (
        last := max(map(after_thinking.rfind, "]}"))
    ) > first.start():
        candidates.append(after_thinking[first.start() : last + 1])
    starts = [match.start() for match in re.finditer(r"^[\[{]", after_thinking, re.MULTILINE)][-20:]
    candidates += [after_thinking[start:] for start in reversed(starts)]
    for candidate in candidates:
        try:
            value = json.loads(candidate, object_pairs_hook=_unique)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    raise ValueError("the reply is not JSON, or is cut off")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the reply gives {next(n for n in names if names.count(n) > 1)} twice in one object")
    return found


def _records(kind: str, value: Any, asked: Mapping[str, int]) -> list[Any]:
    """The records of a reply, in whichever of the known shapes it comes."""
    if isinstance(value, list):
        return value
    named = value.get(LIST_NAMES[kind])
    if isinstance(named, list):
        return named
    if asked.keys() & value.keys():
        if kind in CHOICES:
            return [{TARGET: id, CHOICES[kind]: chosen} for id, chosen in value.items()]
        return [{EVALUATED: id, **record} for id, record in value.items() if isinstance(record, dict)]
    lists = [entry for entry in value.values() if isinstance(entry, list)]
    if len(lists) == 1 and all(isinstance(record, dict) for record in lists[0]):
        return lists[0]
    raise ValueError(f"the reply has no list {LIST_NAMES[kind]}")


def _read_pairs(name: str, id: str, record: dict[str, Any]) -> list[str]:
    return _texts(id, name, record.get(name))


def _read_evidence(id: str, record: dict[str, Any]) -> list[str]:
    chosen, scratch = _texts(id, EVIDENCE, record.get(EVIDENCE)), record.get(SCRATCH)
    if not isinstance(scratch, bool):
        raise ValueError(f"{id} has no {SCRATCH} that is true or false")
    if scratch and chosen:
        raise ValueError(f"{id} is called feasible from scratch and has {len(chosen)} evidence goals; none are allowed")
    if not scratch and not 1 <= len(chosen) <= MOST_EVIDENCE:
        raise ValueError(
            f"{id} has {len(chosen)} evidence goals; 1 to {MOST_EVIDENCE} are allowed, or feasible from scratch"
        )
    return chosen


def _texts(id: str, name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{id} has no list of ids {name}")
    return value


def _check_choice(id: str, chosen: list[str], offered: Mapping[str, int]) -> None:
    if id in chosen:
        raise ValueError(f"{id} names itself")
    for source in chosen:
        if source not in offered:
            raise ValueError(f"{id} names {source}, which was not offered")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{id} names {next(s for s in chosen if chosen.count(s) > 1)} twice")
