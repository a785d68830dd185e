import dataclasses
import hashlib

import pytest

from forethought.judging import wording
from forethought.judging.plan import Settings
from forethought.judging.prompts import Prompts
from forethought.judging.providers import PROVIDERS
from forethought.judging.state import Request
from forethought.judging.wording import Wording


def words(plan, provider="google", targets=None, problems=()):
    query = plan.queries[0]
    return Wording(plan, Request(query, 1, targets or query.targets, problems), PROVIDERS[provider])


def test_goals_are_shown_by_short_ids_in_the_order_of_the_blocks(make):
    plan = make(tasks=6, source_block=3, target_block=2)
    prompt = words(plan).message().prompt
    query = plan.queries[0]
    shown = [line for line in prompt.splitlines() if line.startswith("- id:")]
    assert shown == [f"- id: g00{i} | goal: Do thing number {i}." for i in (*query.sources, *query.targets)]
    assert "task-" not in prompt


def test_a_second_try_shows_fewer_targets_and_what_was_wrong(make):
    plan = make(tasks=6, target_block=3)
    target = plan.queries[0].targets[1]
    prompt = words(plan, targets=(target,), problems=("g001 names itself",)).message().prompt
    after = prompt.split("## Target goals")[1]
    assert after.count("| goal:") == 1
    assert f"g00{target} | goal:" in after
    assert "- g001 names itself" in after


def test_the_prompt_is_rendered_once_in_whatever_dialect_it_is_sent(make, monkeypatch):
    rendered = []
    real = Prompts.render
    monkeypatch.setattr(Prompts, "render", lambda *arguments: rendered.append(1) or real(*arguments))
    made = words(make(), "openai")
    prompts = {made.message(dialect).prompt for dialect in (None, "strict", "loose", "json", "prompted")}
    assert len(rendered) == 1
    assert len(prompts) == 2


def test_a_schema_that_is_not_on_the_wire_or_not_shown_stands_in_the_prompt(make):
    plan = make()
    assert "JSON schema" not in words(plan, "openai").message().prompt
    for message in (words(plan, "openai").message("json"), words(plan, "openai").message("prompted")):
        assert message.schema is None
        assert message.schema_hash is None
        assert '"transfer_source_ids"' in message.prompt
    local = words(plan, "vllm").message()
    assert local.schema is not None
    assert "JSON schema" in local.prompt


def test_the_keyed_shape_is_explained(make):
    plan = make(settings=Settings("openai:m", shape="keyed"))
    message = words(plan, "openai").message()
    assert wording._KEYED in message.prompt
    assert set(message.schema["properties"]) == {plan.wire_ids[t] for t in plan.queries[0].targets}


def test_hashes_are_of_what_is_sent(make):
    message = words(make()).message()
    assert message.prompt_hash == hashlib.sha256(message.prompt.encode()).hexdigest()
    other = dataclasses.replace(message, schema=dict(reversed(message.schema.items())))
    assert other.schema_hash == message.schema_hash
    assert words(make(), "openai").message().schema_hash != message.schema_hash


@pytest.mark.parametrize("kind", ["learning_connectivity", "feasibility_evidence"])
def test_repetitions_of_a_small_set_are_different_queries(kind, make):
    plan = make(kind, 3, repetitions=5)
    assert len({query.id for query in plan.queries}) == 5
