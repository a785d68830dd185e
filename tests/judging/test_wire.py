"""What goes over the wire to each provider, what comes back, and what becomes of replies that are not sound."""

import json

import pytest

from forethought.judging.aggregate import build_graph
from forethought.judging.plan import Settings
from forethought.judging.replies import EVALUATED, EVIDENCE, SCRATCH, SOURCES, TARGET

pytest.importorskip("pydantic_ai")

PROVIDERS = {
    "openai:gpt-6.1-terra": "/v1",
    "openai-chat:gpt-6.1-terra": "/v1",
    "anthropic:claude-sonnet-5-5": "",
    "google:gemini-3.8-flash": "",
    "openrouter:google/gemini-3.8-flash": "/api/v1",
    "vllm:Qwen/Qwen4-32B": "/v1",
    "ollama:qwen4": "/v1",
}
"""Model, and the path that its base_url has."""


@pytest.fixture
def wired(make, run_of):
    """`wired(server, model, kind=..., **options)`: a run at the server to its end; outcome, session and run."""
    from contextlib import ExitStack

    from forethought.judging.backend import Backend
    from forethought.judging.cost import Price
    from forethought.judging.live import Live, Options, Seat

    def go(
        server, model="openai-chat:m", kind="learning_connectivity", tasks=4, asks=None, told=None, patience=4, **plan
    ):
        settings = Settings(model, base_url=server.url + PROVIDERS.get(model, "/v1"))
        run = run_of(make(kind, tasks, settings, **{"target_block": 2} | plan))
        with ExitStack() as held:
            seat = Seat(run, held.enter_context(run.writing("test")), asks)
            options = Options(price=Price(1.0, 5.0, 0.1), pilot=0, patience=patience)
            tell = (lambda _: None) if told is None else told.append
            live = Live([seat], Backend(settings), options, tell=tell)
            return live.run(), live, run

    return go


@pytest.mark.parametrize("kind", ["learning_connectivity", "feasibility_evidence"])
@pytest.mark.parametrize("model", PROVIDERS)
def test_a_run_at_each_provider_is_asked_paid_and_built(double, wired, model, kind):
    server = double()
    outcome, _, run = wired(server, model, kind)
    assert outcome.status == "complete", outcome.reason
    replies = list(run.replies())
    assert len(replies) == len(server.requests) == 2
    for reply in replies:
        whole = {"input": reply.usage["input"], "cached": 10, "output": 300}
        # Anthropic's count of thinking is not told apart.
        assert reply.usage == whole | ({} if model.startswith("anthropic") else {"thoughts": 200})
        assert reply.usage["input"] in {len(r["prompt"].encode()) // 4 for r in server.requests}
        expected = ((reply.usage["input"] - 10) * 1.0 + 10 * 0.1 + 300 * 5.0) / 1e6
        assert reply.cost_usd == pytest.approx(expected, abs=1e-8)
        assert reply.model_served == model.partition(":")[2]
        assert reply.finish == "stop"
        assert reply.response_id
        assert reply.text in server.answers.values()
    graph = build_graph(run)
    assert graph.provenance.model_served == model.partition(":")[2]
    assert graph.weights.nnz > 0


def sent(server, number=0):
    return server.requests[number]["body"]


@pytest.mark.parametrize("model", PROVIDERS)
def test_every_request_is_whole_and_asks_for_nothing_that_was_not_meant(double, wired, model):
    server = double()
    _, _, run = wired(server, model)
    prompts = [request["prompt"] for request in server.requests]
    assert len(set(prompts)) == 2
    for request in server.requests:
        text = json.dumps(request["body"])
        for word in ("temperature", "top_p", "topP", "top_k", "uniqueItems"):
            assert f'"{word}"' not in text
        assert not request["body"].get("stream")
        assert "test-key" in str(request["headers"])
        assert "test-key" not in text
        for text in run.plan.tasks.texts:
            assert text in request["prompt"]
    stored = (run.path / "replies.jsonl").read_text() + (run.path / "requests.jsonl").read_text()
    assert "test-key" not in stored


def enums(schema):
    """All enums in a schema."""
    if isinstance(schema, dict):
        found = [schema["enum"]] if "enum" in schema else []
        return found + [enum for value in schema.values() for enum in enums(value)]
    return [enum for value in schema for enum in enums(value)] if isinstance(schema, list) else []


def test_openai_responses_gets_a_strict_schema_and_effort(double, wired):
    server = double()
    wired(server, "openai:gpt-6.1-terra")
    body, request = sent(server), server.requests[0]
    assert request["path"] == "/v1/responses"
    assert body["model"] == "gpt-6.1-terra"
    form = body["text"]["format"]
    assert (form["type"], form["strict"]) == ("json_schema", True)
    assert body["reasoning"]["effort"] == "high"
    assert "max_output_tokens" not in body
    # A server of one's own may hide the schema from the model: then it stands in the prompt too.
    assert {len(enum) for enum in enums(form["schema"])} == {2, 4}


def test_openai_chat_gets_a_strict_schema_and_effort(double, wired):
    server = double()
    wired(server, "openai-chat:gpt-6.1-terra")
    body = sent(server)
    assert server.requests[0]["path"] == "/v1/chat/completions"
    form = body["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert body["reasoning_effort"] == "high"
    assert not {"max_tokens", "max_completion_tokens"} & set(body)


def test_anthropic_gets_target_ids_thinking_and_the_whole_budget(double, wired):
    server = double()
    wired(server, "anthropic:claude-sonnet-5-5")
    body = sent(server)
    assert server.requests[0]["path"].split("?")[0] == "/v1/messages"
    form = body["output_config"]["format"]
    assert form["type"] == "json_schema"
    assert {len(enum) for enum in enums(form["schema"])} == {2}
    assert not any(word in json.dumps(form) for word in ("minItems", "maxItems"))
    assert body["max_tokens"] >= 32_000
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"]["effort"] == "high"


def test_gemini_gets_a_loose_schema_and_high_thinking(double, wired):
    server = double()
    wired(server, "google:gemini-3.8-flash")
    body, request = sent(server), server.requests[0]
    assert request["path"].endswith("/models/gemini-3.8-flash:generateContent")
    assert request["headers"]["x-goog-api-key"] == "test-key"
    form = body["generationConfig"]
    assert form["responseMimeType"] == "application/json"
    assert enums(form["responseJsonSchema"]) == []
    assert not any(word in json.dumps(form) for word in ("minItems", "maxItems", "$defs"))
    assert form["thinkingConfig"]["thinking_level"].upper() == "HIGH"
    assert "maxOutputTokens" not in form


def test_openrouter_is_told_to_keep_to_the_parameters(double, wired):
    server = double()
    wired(server, "openrouter:google/gemini-3.8-flash")
    body = sent(server)
    assert body["provider"] == {"require_parameters": True}
    assert body["model"] == "google/gemini-3.8-flash"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["reasoning"]["effort"] == "high"


@pytest.mark.parametrize("model", ["vllm:Qwen/Qwen4-32B", "ollama:qwen4"])
def test_local_servers_get_the_schema_in_the_prompt_too(double, wired, model):
    server = double()
    wired(server, model)
    assert sent(server)["response_format"]["type"] == "json_schema"
    assert '"transfer_source_ids"' in server.requests[0]["prompt"]
    assert '"additionalProperties": false' in server.requests[0]["prompt"]


RETRY_INFO = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "slow down",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}],
    }
}


def refusal(status, kind="server_error", headers=None):
    return (
        status,
        {"retry-after": "1", **(headers or {})},
        {"error": {"type": kind, "message": "not now", "code": kind}},
    )


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai:gpt-6.1-terra", refusal(429, "rate_limit_exceeded")),
        ("openai-chat:gpt-6.1-terra", refusal(500)),
        ("openai-chat:gpt-6.1-terra", refusal(503)),
        ("anthropic:claude-sonnet-5-5", refusal(529, "overloaded_error")),
        ("anthropic:claude-sonnet-5-5", refusal(429, "rate_limit_error")),
        ("google:gemini-3.8-flash", (429, {}, RETRY_INFO)),
        ("google:gemini-3.8-flash", refusal(503, "UNAVAILABLE")),
        ("openrouter:google/gemini-3.8-flash", refusal(502)),
    ],
)
def test_a_busy_provider_is_asked_again_after_the_pause_it_names(double, wired, model, said):
    import time

    server, told, started = double(lambda number, _: said if number == 1 else None), [], time.monotonic()
    outcome, _, run = wired(server, model, told=told)
    assert outcome.status == "complete", outcome.reason
    assert time.monotonic() - started >= 0.9
    # The same question, word for word; a refused request is no reply, costs nothing and uses up no try.
    prompts = [request["prompt"] for request in server.requests]
    assert len(prompts) == 3
    assert len(set(prompts)) == 2
    assert [reply.attempt for reply in run.replies()] == [1, 1]
    assert any(line.startswith("pausing") for line in told)


def test_one_pause_is_shared_by_all(double, wired):
    server = double(lambda number, _: refusal(429) if number <= 3 else None)
    outcome, _, _ = wired(server, tasks=8)
    assert outcome.status == "complete", outcome.reason
    # Four requests set out together; three were refused, and nobody asked during the pause.
    assert len(server.requests) == 4 + 3


def test_a_provider_that_stays_down_ends_the_run_with_all_saved(double, wired):
    server = double(lambda number, _: None if number == 1 else refusal(503))
    outcome, _, run = wired(server, tasks=8, patience=2)
    assert outcome.status == "failed"
    assert "in a row" in outcome.reason
    assert len(list(run.replies())) == 1
    assert len(run.missing()) == 3
    server.script = lambda number, _: None
    assert wired(server, tasks=8)[0].status == "complete"
    assert len(list(run.replies())) == 4


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "invalid_api_key"), (402, "billing"), (403, "forbidden"), (404, "model_not_found"),
                         (429, "insufficient_quota")]
)  # fmt: skip
def test_no_credit_or_a_wrong_key_ends_the_run_at_once(double, wired, status, kind):
    server = double(lambda number, _: (status, {}, {"error": {"type": kind, "code": kind, "message": "no"}}))
    outcome, _, run = wired(server)
    assert outcome.status == "failed"
    assert "refuses" in outcome.reason
    assert len(server.requests) <= 2
    assert list(run.replies()) == []


def test_a_refused_schema_goes_down_the_ladder_once_and_for_all(double, wired):
    def picky(number, request):
        if request["body"].get("response_format", {}).get("type") == "json_schema":
            return 400, {}, {"error": {"type": "invalid_request_error", "message": "grammar too large", "code": None}}
        return None

    server, told = double(picky), []
    outcome, _, run = wired(server, tasks=10, told=told)
    assert outcome.status == "complete", outcome.reason
    assert run.dialect() == "json"
    assert 1 <= sum("refused the" in line for line in told) <= 3
    assert [reply.attempt for reply in run.replies()] == [1] * 5
    # A run that is continued begins with the form that was taken.
    (run.path / "replies.jsonl").write_text("")
    server.requests.clear()
    assert wired(server, tasks=10)[0].status == "complete"
    assert [request["body"]["response_format"]["type"] for request in server.requests] == ["json_object"] * 5


def test_a_request_that_no_form_makes_acceptable_ends_the_run(double, wired):
    server = double(lambda *_: (400, {}, {"error": {"type": "invalid_request_error", "message": "bad", "code": None}}))
    outcome, _, run = wired(server)
    assert outcome.status == "failed"
    assert "in no form" in outcome.reason
    assert list(run.replies()) == []


def spoiled(change):
    """A script that spoils the first reply: `change(records)` on its list of records."""

    def script(number, request):
        if number > 1:
            return None
        reply = json.loads(script.answer(request["prompt"]))
        (records,) = reply.values()
        change(records)
        return json.dumps(reply)

    return script


FAULTS = {
    "missing": lambda records: records.pop(),
    "duplicate": lambda records: records.append(records[0]),
    "self-edge": lambda records: records[0][SOURCES].append(records[0][TARGET]),
    "unknown source": lambda records: records[0][SOURCES].append("g999"),
    "source twice": lambda records: records[0][SOURCES].append(records[0][SOURCES][0]),
    "no list": lambda records: records[0].update({SOURCES: "g001"}),
    "renamed target": lambda records: records[0].update({TARGET: records[0][TARGET].upper()}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_only_the_bad_target_is_asked_again(double, wired, student, fault):
    script = spoiled(FAULTS[fault])
    script.answer = student.answer
    server = double(script)
    outcome, _, run = wired(server, target_block=4)
    assert outcome.status == "complete", outcome.reason
    first, second = run.replies()
    assert len(server.requests) == 2
    assert len(first.targets) == 4
    assert len(second.targets) == 1
    assert "went wrong before" in server.requests[1]["prompt"]
    assert len([t for j in run.judgments() for t in j.selections]) == 4
    assert build_graph(run).provenance.token_usage["output"] == 600


EVIDENCE_FAULTS = {
    "scratch with evidence": lambda records: records[0].update({SCRATCH: True}),
    "neither": lambda records: records[0].update({EVIDENCE: []}),
    "four": lambda records: records[0].update({EVIDENCE: ["g000", "g001", "g002", "g003"]}),
    "not a boolean": lambda records: records[0].update({SCRATCH: "false"}),
    "itself": lambda records: records[0].update({EVIDENCE: [records[0][EVALUATED]]}),
}


@pytest.mark.parametrize("fault", EVIDENCE_FAULTS)
def test_bad_evidence_is_asked_again(double, wired, student, fault):
    script = spoiled(EVIDENCE_FAULTS[fault])
    script.answer = student.answer
    outcome, _, run = wired(double(script), kind="feasibility_evidence", target_block=4, tasks=6)
    assert outcome.status == "complete", outcome.reason
    assert sorted(len(reply.targets) for reply in run.replies()) == [1, 2, 4]


@pytest.mark.parametrize("text", ["", "   ", "I cannot help with that.", '{"records": [', "[]", "null", "\x00"])
def test_empty_and_broken_texts_are_kept_paid_and_asked_again(double, wired, text):
    server = double(lambda number, _: {"text": text} if number == 1 else None)
    outcome, _, run = wired(server, target_block=4)
    assert outcome.status == "complete", outcome.reason
    first, second = run.replies()
    assert first.text == text
    assert first.cost_usd
    assert second.cost_usd
    assert first.targets == second.targets


def test_a_reply_that_is_always_bad_is_given_up_after_the_planned_asks(double, wired):
    server = double(lambda *_: "no")
    outcome, live, run = wired(server, target_block=4, asks=3)
    assert outcome.status == "given up"
    assert len(server.requests) == 3
    assert len(live.seats[0].state.given_up()) == 1
    with pytest.raises(ValueError, match="no valid judgment"):
        build_graph(run)


def test_a_truncated_reply_is_not_repeated_but_halved(double, wired):
    server = double(lambda number, _: {"text": '{"records": [{"target', "finish": "length"} if number == 1 else None)
    outcome, _, run = wired(server, target_block=4)
    assert outcome.status == "complete", outcome.reason
    assert [len(reply.targets) for reply in run.replies()] == [4, 2, 2]
    assert next(run.replies()).finish == "length"


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "google:gemini-3.8-flash", "openai:gpt-6.1-terra"])
def test_truncation_is_recognised_at_every_provider(double, wired, model):
    server = double(lambda number, _: {"text": "{", "finish": "length"} if number == 1 else None)
    outcome, _, run = wired(server, model, target_block=4)
    assert outcome.status == "complete", outcome.reason
    assert [len(reply.targets) for reply in run.replies()] == [4, 2, 2]


def test_a_broken_connection_is_remembered_as_perhaps_paid(double, wired):
    server = double(lambda number, _: (None, {}, b"") if number == 1 else None)
    outcome, _, run = wired(server, target_block=4)
    assert outcome.status == "complete", outcome.reason
    first, second = run.replies()
    assert first.error
    assert first.cost_usd is None
    assert second.error is None
    assert run.state().errors == 1


def test_an_answer_that_is_no_json_at_all_is_no_reply(double, wired):
    html = (200, {"content-type": "text/html"}, b"<html>Bad gateway</html>")
    server = double(lambda number, _: html if number == 1 else None)
    outcome, _, run = wired(server, target_block=4)
    assert outcome.status == "complete", outcome.reason
    assert [bool(reply.error) for reply in run.replies()] == [True, False]


def test_a_server_that_cuts_prompts_is_found_out(double, wired):
    usage = {"input": 40, "cached": 0, "output": 300, "thoughts": 0}
    server = double(lambda *_: {"usage": usage})
    outcome, _, run = wired(server, "ollama:qwen4")
    assert outcome.status == "failed"
    assert "cuts long prompts" in outcome.reason
    assert all(reply.error for reply in run.replies())


def test_a_change_of_the_model_is_told_and_named_in_the_graph(double, wired):
    server, told = double(lambda number, _: {"model": "m-2" if number > 2 else "m-1"}), []
    outcome, _, run = wired(server, tasks=8, told=told)
    assert outcome.status == "complete", outcome.reason
    # The requests are at the server side by side, so either model may answer first.
    assert any("now come from m-" in line and "m-1" in line and "m-2" in line for line in told)
    served = build_graph(run).provenance.model_served
    assert served is not None
    assert "m-1 (2 replies)" in served
    assert "m-2 (2 replies)" in served


def test_three_tasks_in_five_repetitions_make_five_replies_a_block(double, wired):
    server = double()
    outcome, _, run = wired(server, tasks=3, repetitions=5, target_block=3)
    assert outcome.status == "complete", outcome.reason
    assert len({(reply.query, reply.attempt) for reply in run.replies()}) == len(server.requests) == 5


def test_thinking_aloud_and_fences_around_the_reply_are_passed_over(double, wired, student):
    server = double()
    server.script = lambda number, request: (
        f"<think>Maybe {{'x': 1}}?</think>\nHere it is:\n```json\n{student.answer(request['prompt'])}\n```\n"
    )
    outcome, _, _ = wired(server, "vllm:Qwen/Qwen4-32B")
    assert outcome.status == "complete", outcome.reason
    assert len(server.requests) == 2
