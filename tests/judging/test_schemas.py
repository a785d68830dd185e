import json

import pytest

from forethought.judging.plan import KINDS, SHAPES
from forethought.judging.providers import DIALECTS, PROVIDERS, Limits, provider_of
from forethought.judging.schemas import choose_dialect, over_limits, response_schema


def ids(count, first=0):
    return [f"g{i:03d}" for i in range(first, first + count)]


def keywords(schema):
    if isinstance(schema, dict):
        return set(schema) | set().union(*(keywords(value) for value in schema.values()), set())
    return set().union(*(keywords(value) for value in schema), set()) if isinstance(schema, list) else set()


def test_the_strict_schema_lists_ids_and_counts_records():
    assert response_schema("learning_connectivity", "records", "strict", ids(3), ids(2, 7)) == {
        "type": "object",
        "properties": {
            "records": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "target_id": {"type": "string", "enum": ["g007", "g008"]},
                        "transfer_source_ids": {"type": "array", "items": {"$ref": "#/$defs/source"}, "maxItems": 3},
                    },
                    "required": ["target_id", "transfer_source_ids"],
                    "additionalProperties": False,
                },
                "minItems": 2,
                "maxItems": 2,
            }
        },
        "required": ["records"],
        "additionalProperties": False,
        "$defs": {"source": {"type": "string", "enum": ["g000", "g001", "g002"]}},
    }


def test_the_loose_evidence_schema_lists_and_counts_nothing():
    schema = response_schema("feasibility_evidence", "records", "loose", ids(256), ids(8))
    assert not {"enum", "minItems", "maxItems", "$defs"} & keywords(schema)
    assert schema["properties"]["judgments"]["items"]["required"] == [
        "evaluated_goal_id",
        "feasible_from_scratch",
        "readiness_evidence_goal_ids",
    ]


def test_a_keyed_schema_has_a_required_property_a_target():
    schema = response_schema("feasibility_evidence", "keyed", "loose", ids(5), ids(3))
    assert schema["required"] == ids(3)
    assert schema["properties"]["g001"]["required"] == ["feasible_from_scratch", "readiness_evidence_goal_ids"]
    schema = response_schema("learning_connectivity", "keyed", "strict", ids(5), ids(3))
    assert schema["properties"]["g002"] == {"type": "array", "items": {"$ref": "#/$defs/source"}, "maxItems": 5}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_schema_uses_what_grammar_engines_refuse(kind, shape, dialect):
    schema = response_schema(kind, shape, dialect, ids(64), ids(16))
    assert not {"uniqueItems", "contains", "multipleOf", "anyOf", "pattern"} & keywords(schema)
    for node in json.loads(json.dumps(schema), object_hook=lambda o: o if o.get("type") != "object" else [o]):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("provider", "dialect"),
    [
        ("openai", "strict"),
        ("google", "loose"),
        ("anthropic", "targets"),
        ("vllm", "strict"),
        ("ollama", "strict"),
        ("openrouter", "strict"),
    ],
)
def test_the_papers_blocks_get_the_best_dialect_of_each_provider(kind, provider, dialect):
    sources, targets = (ids(256), ids(8)) if kind == "feasibility_evidence" else (ids(64), ids(16))
    assert choose_dialect(PROVIDERS[provider], kind, "records", sources, targets) == dialect


def test_a_query_beyond_a_limit_gets_a_looser_dialect():
    openai = PROVIDERS["openai"]
    assert choose_dialect(openai, "feasibility_evidence", "records", ids(990), ids(8)) == "strict"
    assert choose_dialect(openai, "feasibility_evidence", "records", ids(993), ids(8)) == "targets"
    long = [f"a-goal-with-a-long-name-that-goes-on-and-on-{i:03d}" for i in range(400)]
    assert choose_dialect(openai, "feasibility_evidence", "records", long, long[:8]) == "targets"
    assert choose_dialect(PROVIDERS["anthropic"], "learning_connectivity", "records", long, long[:200]) == "loose"
    assert choose_dialect(PROVIDERS["vllm"], "learning_connectivity", "records", ids(300), ids(16)) == "targets"
    assert choose_dialect(PROVIDERS["google"], "learning_connectivity", "keyed", ids(64), ids(400)) == "json"


def test_the_ladder_is_entered_where_a_run_has_settled():
    arguments = ("learning_connectivity", "records", ids(64), ids(16))
    assert choose_dialect(PROVIDERS["openai"], *arguments, first="loose") == "loose"
    assert choose_dialect(PROVIDERS["openai"], *arguments, first="prompted") == "prompted"
    assert choose_dialect(PROVIDERS["anthropic"], *arguments, first="json") == "json"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(enum_values=4), "5 enum values; 4 are allowed"),
        (Limits(properties=2), "3 properties"),
        (Limits(depth=3), "5 levels"),
        (Limits(names_chars=10), "characters in names and enums"),
        (Limits(items=4), "5 items"),
        (Limits(repetitions=5), "6 repetitions"),
        (Limits(size=100), "bytes; 100"),
        (Limits(keywords=("minItems",)), "the keyword minItems is not allowed"),
    ],
)
def test_each_limit_is_checked(limits, message):
    schema = response_schema("learning_connectivity", "records", "strict", ids(3), ids(2))
    (problem,) = over_limits(schema, limits)
    assert message in problem
    assert over_limits(schema, Limits()) == []


def test_a_long_enum_is_measured_in_characters():
    schema = response_schema("feasibility_evidence", "records", "strict", ["x" * 60] * 251, ids(8))
    assert over_limits(schema, Limits(long_enum_chars=15_000)) == ["15060 characters in a long enum; 15000 are allowed"]
    schema = response_schema("feasibility_evidence", "records", "strict", ["x" * 61] * 250, ids(8))
    assert over_limits(schema, Limits(long_enum_chars=15_000)) == []


def test_providers_are_found_by_name():
    assert provider_of("anthropic:claude-x") is PROVIDERS["anthropic"]
    assert provider_of("deepseek:x").ladder == ("strict", "loose", "json", "prompted")
    local = provider_of("openai-chat:qwen", "http://localhost:8080/v1")
    assert (local.shows_schema, local.limits.repetitions, local.prices) == (False, 2000, None)
    for wrong in ("gpt-6", ":x", "openai:", ""):
        with pytest.raises(ValueError, match="name it as PROVIDER:NAME"):
            provider_of(wrong)
