import json

import pytest

from forethought.judging.batch_log import BatchLog
from forethought.judging.cost import Price
from forethought.judging.exchange import export_requests, import_replies
from forethought.judging.providers import Provider
from forethought.judging.replies import SOURCES

PLAIN = Provider("export", ("loose",), shows_schema=False)


@pytest.fixture
def run(make, run_of):
    return run_of(make(tasks=12, source_block=6, target_block=4))


def exported(run, path, shape="plain", provider=PLAIN):
    count = export_requests(run, path, provider, shape)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == count
    return lines


def answers(run, lines, records, change=None):
    found = []
    for line in lines:
        query = run.plan.by_id[line["custom_id"].rsplit("-a", 1)[0]]
        found.append({"custom_id": line["custom_id"], "text": json.dumps(records(run.plan, query, change=change))})
    return found


def test_a_run_can_be_answered_by_anyone(run, tmp_path, records, student):
    lines = exported(run, tmp_path / "out.jsonl")
    assert len(lines) == 6
    assert set(lines[0]) == {"custom_id", "prompt", "schema"}
    assert '"transfer_source_ids"' in lines[0]["prompt"]
    replies = [{"custom_id": line["custom_id"], "text": student.answer(line["prompt"])} for line in lines]
    done = import_replies(run, reversed(replies), model="a friend")
    assert (done.stored, done.known, done.judgments, done.problems) == (6, 0, 24, ())
    assert run.missing() == {}
    assert run.state().served == {"a friend": 6}
    assert import_replies(run, replies).known == 6
    assert len(list(run.replies())) == 6


def test_exporting_again_gives_the_same_names_until_there_is_a_reply(run, tmp_path, records):
    first = exported(run, tmp_path / "1.jsonl")
    assert exported(run, tmp_path / "2.jsonl") == first

    def spoil(made):
        made[0][SOURCES] = ["g999"]

    done = import_replies(run, answers(run, first[:1], records, spoil))
    assert done.judgments == 3
    (problem,) = done.problems
    assert "names g999, which was not offered" in problem
    third = exported(run, tmp_path / "3.jsonl")
    assert third[1:] == first[1:]
    assert third[0]["custom_id"].startswith("lc-r0-t0-s0-a2-")
    assert third[0]["prompt"].split("## Target goals")[1].count("| goal:") == 1
    assert len(list(run.requests())) == 7


def test_lines_of_a_batch_result_are_taken(run, tmp_path, records):
    lines = exported(run, tmp_path / "out.jsonl", "openai", Provider("export", ("strict",), shows_schema=False))
    assert lines[0]["url"] == "/v1/chat/completions"
    assert lines[0]["body"]["model"] == "gemini-3.8-flash"
    assert lines[0]["body"]["response_format"]["json_schema"]["strict"] is True
    body = {
        "model": "qwen",
        "choices": [{"message": {"content": answers(run, lines[:1], records)[0]["text"]}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
    }
    line = {"custom_id": lines[0]["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
    assert import_replies(run, [line], Price(1.0, 10.0)).judgments == 4
    (reply,) = run.replies()
    assert (reply.model_served, reply.finish, reply.usage) == ("qwen", "stop", {"input": 1000, "output": 100})
    assert reply.cost_usd == pytest.approx(0.002)


def test_a_reply_may_be_given_as_data(run, tmp_path, records):
    line = answers(run, exported(run, tmp_path / "out.jsonl")[:1], records)[0]
    line["reply"] = json.loads(line.pop("text"))
    assert import_replies(run, [line]).judgments == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({}, "line 2: has no custom_id"),
        ({"custom_id": "lc-r0-t0-s0-a1-00000000", "text": ""}, "not the id of a request of this run"),
        ({"custom_id": "lc-r0-t0-s0", "text": ""}, "not the id of a request of this run"),
        ({"custom_id": 7, "text": ""}, "not the id"),
        ({"custom_id": "@9", "text": "x"}, "was never exported"),
        ({"custom_id": "@1"}, "has no text: null"),
        ({"custom_id": "@1", "error": {"code": 500}}, 'has no text: {"code": 500}'),
        ({"custom_id": "@1", "text": "x", "usage": {"input": "many"}}, "line 2: "),
    ],
)
def test_a_line_that_is_no_reply_stores_nothing(line, message, run, tmp_path, records):
    good = answers(run, exported(run, tmp_path / "out.jsonl")[-1:], records)
    if str(line.get("custom_id")).startswith("@"):
        line = line | {"custom_id": f"lc-r0-t0-s0-a{line['custom_id'][1:]}-{run.plan.digest[:8]}"}
    with pytest.raises(ValueError, match=message):
        import_replies(run, [*good, line])
    assert list(run.replies()) == []


def test_two_different_replies_to_one_request_are_refused(run, tmp_path, records):
    (line,) = answers(run, exported(run, tmp_path / "out.jsonl")[:1], records)
    with pytest.raises(ValueError, match="line 2: a second, different reply"):
        import_replies(run, [line, line | {"text": "{}"}])
    assert import_replies(run, [line, dict(line)]).stored == 1
    assert import_replies(run, [line]).known == 1
    with pytest.raises(ValueError, match=r"line 1: a different reply to .* is stored already; export again"):
        import_replies(run, [line | {"text": "{}"}])


def test_what_a_batch_holds_is_not_exported(run, tmp_path):
    first = {"custom_id": "x", "query": "lc-r0-t0-s0", "attempt": 1, "targets": run.plan.queries[0].targets}
    with run.writing("test") as writer:
        BatchLog(run, writer).intend([first], is_probe=True, group="g")
    assert len(exported(run, tmp_path / "out.jsonl")) == 5


def test_a_wrong_format_is_named(run, tmp_path):
    with pytest.raises(ValueError, match="'csv'; allowed are plain and openai"):
        export_requests(run, tmp_path / "x", PLAIN, "csv")


def test_a_run_goes_on_live_after_a_part_was_imported(run, tmp_path, records, student, ask):
    lines = exported(run, tmp_path / "out.jsonl")
    import_replies(run, answers(run, lines[:4], records))
    model = student()
    assert ask(run, model)[0].status == "complete"
    assert len(model.prompts) == 2
    # A late reply is kept, and changes nothing.
    assert import_replies(run, answers(run, lines[4:], records)).judgments == 0
    assert len(list(run.replies())) == 8
