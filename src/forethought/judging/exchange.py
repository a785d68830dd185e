"""Requests out and replies in as JSON lines, so that any system, or a person, can answer."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forethought.files import replacing
from forethought.judging.batch_log import held_targets
from forethought.judging.cost import Price
from forethought.judging.journal import now
from forethought.judging.plan import Plan
from forethought.judging.providers import Provider
from forethought.judging.replies import Reply
from forethought.judging.requests import custom_id, key_of, made_requests, renumbered, request_record, stored_keys
from forethought.judging.store import Run
from forethought.judging.wording import Message, Wording

FORMATS = ("plain", "openai")
"""Shapes of an exported request: `custom_id`, `prompt` and `schema`; or a line of an OpenAI batch file, which vLLM and
other servers take too."""


@dataclass(frozen=True)
class Imported:
    """What an import brought.

    Attributes:
        stored: replies that are new.
        known: replies that were stored before.
        judgments: judgments that the new replies settled.
        problems: what was wrong with judgments in the new replies, by target's id and query.
    """

    stored: int
    known: int
    judgments: int
    problems: tuple[str, ...]


def export_requests(run: Run, path: str | Path, provider: Provider, shape: str = "plain") -> int:
    """Write every request that the run still needs and no batch holds, one JSON line each.

    Args:
        run: the run; it is held while its requests are noted.
        path: the file; an old one is replaced.
        provider: decides the dialect of the schemas.
        shape: `plain` or `openai`.

    Returns:
        The number of requests.
    """
    if shape not in FORMATS:
        raise ValueError(f"the format is {shape!r}; allowed are {' and '.join(FORMATS)}")
    with (
        run.writing("exporting") as writer,
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        state, made = run.state(), made_requests(run)
        held = held_targets(run)
        pending = [request for query in run.plan.queries for request in state.pending(query, held)]
        pending = renumbered(pending, made, stored_keys(run), "export")
        for request in pending:
            message = Wording(run.plan, request, provider).message()
            if (request.query.id, request.attempt) not in made:
                writer.request(request_record(request, message, "export"))
            line = _line(run.plan, custom_id(run.plan, request), message, shape)
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(pending)


def import_replies(
    run: Run, lines: Iterable[dict[str, Any]], price: Price | None = None, model: str | None = None
) -> Imported:
    """Store replies to exported requests. Nothing is stored if a line is not a reply to a request of this run.

    A line holds `custom_id` and `text`, or in place of the text `reply` (JSON), and may hold `model`, `finish` and
    `usage` (`input`, `output`); lines of an OpenAI batch result are taken too. Replies stored before are passed over.

    Args:
        run: the run.
        lines: the replies.
        price: of the tokens in `usage`.
        model: who answered, for lines that do not say.

    Raises:
        ValueError: a line is no reply, is for another run, or was never asked; it is named by number.
    """
    with run.writing("importing") as writer:
        made, state = made_requests(run), run.state()
        stored = {(reply.query, reply.attempt): reply.text for reply in run.replies()}
        new: dict[tuple[str, int], Reply] = {}
        known = 0
        for number, line in enumerate(lines, 1):
            try:
                reply = _reply(run.plan, line, made, price, model)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"line {number}: {error}") from error
            key = (reply.query, reply.attempt)
            if key in new and new[key].text != reply.text:
                raise ValueError(f"line {number}: a second, different reply to {line['custom_id']!r}")
            if stored.get(key, reply.text) != reply.text:
                raise ValueError(
                    f"line {number}: a different reply to {line['custom_id']!r} is stored already; "
                    "export again, and answer what is open under its new id"
                )
            known += key in stored or key in new
            if key not in stored:
                new[key] = reply
        judgments, problems = 0, []
        for reply in new.values():
            writer.reply(reply)
            judgment, verdict = state.take(reply)
            judgments += len(judgment.selections)
            problems += [f"{reply.query}: {problem}" for problem in dict.fromkeys(verdict.problems.values())]
        return Imported(len(new), known, judgments, tuple(problems))


def _line(plan: Plan, id: str, message: Message, shape: str) -> dict[str, Any]:
    if shape == "plain":
        return {"custom_id": id, "prompt": message.prompt, "schema": message.schema}
    body: dict[str, Any] = {
        "model": plan.settings.model.partition(":")[2] or plan.settings.model,
        "messages": [{"role": "user", "content": message.prompt}],
    }
    if message.schema is not None:
        schema = {"name": "judgments", "schema": message.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif message.dialect == "json":
        body["response_format"] = {"type": "json_object"}
    return {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def _reply(
    plan: Plan,
    line: dict[str, Any],
    made: dict[tuple[str, int], dict[str, Any]],
    price: Price | None,
    model: str | None,
) -> Reply:
    if "custom_id" not in line:
        raise ValueError("has no custom_id")
    key = key_of(plan, line["custom_id"])
    if key not in made:
        raise ValueError(f"{line['custom_id']!r} was never exported from this run")
    content = _content(line)
    usage = {name: int(count) for name, count in (content.get("usage") or {}).items() if name in _USAGE and count}
    return Reply(
        query=key[0],
        attempt=key[1],
        targets=tuple(made[key]["targets"]),
        text=content["text"],
        received=now(),
        finish=content.get("finish"),
        model_served=content.get("model") or model,
        usage=usage,
        cost_usd=round(price.of(usage), 8) if price and usage else None,
        prompt_hash=made[key]["prompt_hash"],
        schema_hash=made[key]["schema_hash"],
        via="import",
    )


_USAGE = ("input", "output", "cached", "thoughts")


def _content(line: dict[str, Any]) -> dict[str, Any]:
    """Text, model, finish and usage of a line, whatever its shape."""
    if isinstance(line.get("text"), str):
        return line
    if "reply" in line:
        return {**line, "text": json.dumps(line["reply"], ensure_ascii=False)}
    body = (line.get("response") or {}).get("body")
    if not body:
        raise ValueError(f"{line['custom_id']!r} has no text: {json.dumps(line.get('error'))}")
    choice, usage = body["choices"][0], body.get("usage") or {}
    return {
        "text": choice["message"].get("content") or "",
        "finish": choice.get("finish_reason"),
        "model": body.get("model"),
        "usage": {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")},
    }
