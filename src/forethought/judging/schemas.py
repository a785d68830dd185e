"""JSON schemas of replies, in the dialects that providers take, and whether a provider will take one."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from forethought.judging.providers import Limits, Provider
from forethought.judging.replies import CHOICES, EVALUATED, EVIDENCE, LIST_NAMES, MOST_EVIDENCE, SCRATCH, TARGET

Schema = dict[str, Any]

WITHOUT_SCHEMA = ("json", "prompted")
"""Dialects in which no schema is sent; the prompt holds it."""


def response_schema(kind: str, shape: str, dialect: str, sources: Sequence[str], targets: Sequence[str]) -> Schema:
    """The schema of a reply.

    Args:
        kind: kind of judgment.
        shape: `records`, a list with one record a target; or `keyed`, an object with one property a target.
        dialect: `strict` lists all ids and counts records, `targets` lists the ids of targets, any other lists none.
        sources: ids that were offered.
        targets: ids that were asked.
    """
    lists_sources, lists_targets = dialect == "strict", dialect in ("strict", "targets")
    pairs = kind in CHOICES
    source: Schema = {"$ref": "#/$defs/source"} if lists_sources else {"type": "string"}
    chosen: Schema = {"type": "array", "items": source}
    if lists_sources:
        chosen["maxItems"] = len(sources) if pairs else MOST_EVIDENCE
    answer = {CHOICES[kind]: chosen} if pairs else {SCRATCH: {"type": "boolean"}, EVIDENCE: chosen}
    if shape == "keyed":
        schema = _object({id: chosen if pairs else _object(answer) for id in targets})
    else:
        target: Schema = {"type": "string", "enum": list(targets)} if lists_targets else {"type": "string"}
        records: Schema = {
            "type": "array",
            "items": _object({TARGET if pairs else EVALUATED: target} | answer),
        }
        if lists_sources:
            records |= {"minItems": len(targets), "maxItems": len(targets)}
        schema = _object({LIST_NAMES[kind]: records})
    return schema | {"$defs": {"source": {"type": "string", "enum": list(sources)}}} if lists_sources else schema


def choose_dialect(
    provider: Provider, kind: str, shape: str, sources: Sequence[str], targets: Sequence[str], first: str | None = None
) -> str:
    """The tightest dialect that a provider takes for a query.

    Args:
        provider: who is asked.
        kind: kind of judgment.
        shape: shape of the reply.
        sources: ids that are offered.
        targets: ids that are asked.
        first: where on the provider's ladder to begin.

    Raises:
        ValueError: the provider's ladder ends with a schema, and that is over its limits too.
    """
    ladder = provider.ladder
    if first is not None:
        ladder = ladder[ladder.index(first) :] if first in ladder else (first,)
    for dialect in ladder:
        if dialect in WITHOUT_SCHEMA or not over_limits(
            response_schema(kind, shape, dialect, sources, targets), provider.limits
        ):
            return dialect
    raise ValueError(
        f"no schema for {len(targets)} targets is within the limits of {provider.name}; use smaller blocks"
    )


def over_limits(schema: Schema, limits: Limits) -> list[str]:
    """What in a schema is over a provider's limits, one line each; empty if it can be sent."""
    nodes = list(_nodes(schema))
    enums = [node["enum"] for node, _, _ in nodes if "enum" in node]
    names = [name for node, _, _ in nodes for name in node.get("properties", ())]
    found = [
        ("enum values", sum(map(len, enums)), limits.enum_values),
        (
            "characters in a long enum",
            max((_chars(e) for e in enums if len(e) > 250), default=0),
            limits.long_enum_chars,
        ),
        ("properties", len(names), limits.properties),
        ("levels", max(depth for _, depth, _ in nodes), limits.depth),
        ("characters in names and enums", _chars(names) + sum(map(_chars, enums)), limits.names_chars),
        ("items", sum(node.get("maxItems", 0) for node, _, _ in nodes), limits.items),
        ("repetitions", max(repetitions for _, _, repetitions in nodes), limits.repetitions),
        ("bytes", len(json.dumps(schema)), limits.size),
    ]
    problems = [
        f"{count} {what}; {most} are allowed" for what, count, most in found if most is not None and count > most
    ]
    used = {keyword for node, _, _ in nodes for keyword in node}
    return problems + [f"the keyword {keyword} is not allowed" for keyword in limits.keywords if keyword in used]


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nodes(schema: Schema) -> Iterator[tuple[Schema, int, int]]:
    """Each schema inside a schema, with its depth and the product of `maxItems` on the way to it."""
    waiting = [(schema, 1, 1)]
    while waiting:
        node, depth, repetitions = waiting.pop()
        repetitions *= node.get("maxItems", 1)
        yield node, depth, repetitions
        inner = [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]
        inner += [node["items"]] if "items" in node else []
        waiting += [(child, depth + 1, repetitions) for child in inner]


def _chars(texts: Sequence[str]) -> int:
    return sum(map(len, texts))
