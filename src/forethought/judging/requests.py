"""Requests that leave the process: their names, and how a reply finds its way back."""

import re
from collections.abc import Iterable
from typing import Any

from forethought.judging.journal import now
from forethought.judging.plan import Plan
from forethought.judging.state import Request
from forethought.judging.store import Run
from forethought.judging.wording import Message

Key = tuple[str, int]
"""Query id and number of the request."""


def custom_id(plan: Plan, request: Request) -> str:
    """A name for a request that no other run uses: letters, digits and dashes, at most 64."""
    return f"{request.id}-{plan.digest[:8]}"


def key_of(plan: Plan, id: object) -> Key:
    """The query and number that a `custom_id` stands for.

    Raises:
        ValueError: it is not from this plan.
    """
    match = re.fullmatch(r"(.+)-a(\d+)-([0-9a-f]{8})", id) if isinstance(id, str) else None
    if match is None or match[3] != plan.digest[:8] or match[1] not in plan.by_id:
        raise ValueError(f"{id!r} is not the id of a request of this run")
    return match[1], int(match[2])


def request_record(request: Request, message: Message, via: str) -> dict[str, Any]:
    """A line of `requests.jsonl`: what is sent, but for the text itself, which follows from the plan."""
    return {
        "query": request.query.id,
        "attempt": request.attempt,
        "targets": request.targets,
        "dialect": message.dialect,
        "prompt_hash": message.prompt_hash,
        "schema_hash": message.schema_hash,
        "via": via,
        "time": now(),
    }


def made_requests(run: Run) -> dict[Key, dict[str, Any]]:
    """The requests made so far, by query and number."""
    return {(line["query"], line["attempt"]): line for line in run.requests()}


def stored_keys(run: Run) -> set[Key]:
    """Query and number of every reply that is stored."""
    return {(reply.query, reply.attempt) for reply in run.replies()}


def renumbered(
    requests: Iterable[Request], made: dict[Key, dict[str, Any]], stored: set[Key], via: str
) -> list[Request]:
    """The same requests, under the numbers that they had if they were made before and have no reply yet."""
    open_before = {
        (line["query"], tuple(line["targets"])): line["attempt"]
        for key, line in made.items()
        if line["via"] == via and key not in stored
    }
    return [
        Request(
            request.query,
            open_before.get((request.query.id, request.targets), request.attempt),
            request.targets,
            request.problems,
        )
        for request in requests
    ]
