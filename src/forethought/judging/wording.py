"""A request in words: the rendered prompt, and what a second try or a missing schema adds to it."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from forethought.judging.plan import Plan
from forethought.judging.providers import Provider
from forethought.judging.schemas import WITHOUT_SCHEMA, Schema, choose_dialect, response_schema
from forethought.judging.state import Request


@dataclass(frozen=True)
class Message:
    """What is sent: the prompt and the schema of the reply.

    Attributes:
        prompt: the whole text.
        schema: the response schema; None where the dialect has none on the wire.
        dialect: how structure is asked for.
    """

    prompt: str
    schema: Schema | None
    dialect: str

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompt."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def schema_hash(self) -> str | None:
        """SHA-256 of the schema in canonical form."""
        if self.schema is None:
            return None
        return hashlib.sha256(json.dumps(self.schema, sort_keys=True).encode()).hexdigest()


class Wording:
    """A request whose prompt is rendered once, however often and in whatever dialect it is sent."""

    def __init__(self, plan: Plan, request: Request, provider: Provider):
        self.plan = plan
        self.request = request
        self.provider = provider

    def message(self, dialect: str | None = None) -> Message:
        """What to send, in the tightest dialect from the given one on that the provider takes."""
        plan, ids = self.plan, self.plan.wire_ids
        sources, targets = [ids[s] for s in self.request.query.sources], [ids[t] for t in self.request.targets]
        shape = plan.settings.shape
        dialect = choose_dialect(self.provider, plan.kind, shape, sources, targets, dialect)
        schema = response_schema(plan.kind, shape, dialect, sources, targets)
        on_the_wire = dialect not in WITHOUT_SCHEMA
        parts = [self._rendered]
        if shape == "keyed":
            parts.append(_KEYED)
        if not on_the_wire or not self.provider.shows_schema:
            shown = response_schema(plan.kind, shape, "loose", sources, targets)
            parts.append(_SCHEMA.format(schema=json.dumps(shown, ensure_ascii=False)))
        if self.request.problems:
            parts.append(_AGAIN.format(problems="\n".join(f"- {problem}" for problem in self.request.problems)))
        return Message("\n".join(parts), schema if on_the_wire else None, dialect)

    @cached_property
    def _rendered(self) -> str:
        ids, texts = self.plan.wire_ids, self.plan.tasks.texts
        choices = [(ids[s], texts[s]) for s in self.request.query.sources]
        return self.plan.prompts.render(choices, [(ids[t], texts[t]) for t in self.request.targets]).rstrip() + "\n"


_KEYED = """## Shape of the answer

In place of a list, the structured response is one object. It has one property for each target, named by the target's
id, which holds what the record of that target would hold.
"""

_SCHEMA = """## Form of the answer

The answer is one JSON value that fits this JSON schema, with nothing before or after it:

```json
{schema}
```
"""

_AGAIN = """## What went wrong before

An earlier answer about the goals to judge could not be used. Judge them afresh, without these faults:

{problems}
"""
