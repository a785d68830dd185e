import json

import pytest

from forethought.judging.replies import Reply
from forethought.judging.store import Locked, create_run, open_run


@pytest.fixture
def plan(make):
    return make(tasks=5, source_block=3, target_block=2, repetitions=2)


def answer(plan, query, records, targets=None, attempt=1):
    targets = query.targets if targets is None else targets
    return Reply(query.id, attempt, targets, json.dumps(records(plan, query, targets)))


def test_a_run_comes_back_from_its_directory(plan, run_of, records):
    run = run_of(plan)
    with run.writing("test") as writer:
        for query in plan.queries[:-1]:
            writer.reply(answer(plan, query, records))
    again = open_run(run.path)
    assert again.plan == plan
    assert [judgment.query for judgment in again.judgments()] == [query.id for query in plan.queries[:-1]]
    assert again.missing() == {plan.queries[-1].id: plan.queries[-1].targets}
    assert next(again.replies()) == answer(plan, plan.queries[0], records)


def test_judgments_hold_what_each_reply_was_first_to_settle(plan, run_of, records):
    run, query = run_of(plan), plan.queries[0]
    with run.writing("test") as writer:
        writer.reply(Reply(query.id, 1, query.targets, "no answer"))
        writer.reply(answer(plan, query, records, query.targets[:1], 2))
        writer.reply(answer(plan, query, records, query.targets, 3))
    settled = [tuple(judgment.selections) for judgment in run.judgments()]
    assert settled == [query.targets[:1], query.targets[1:]]


def test_a_torn_reply_is_not_there_and_is_asked_again(plan, run_of, records):
    run = run_of(plan)
    with run.writing("test") as writer:
        for query in plan.queries[:2]:
            writer.reply(answer(plan, query, records))
    path = run.path / "replies.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert len(list(run.judgments())) == 1
    with run.writing("test") as writer:
        writer.reply(answer(plan, plan.queries[1], records))
    assert len(list(run.judgments())) == 2


def test_numbers_of_requests_are_not_used_twice(plan, run_of):
    run = run_of(plan)
    with run.writing("test") as writer:
        writer.request({"query": plan.queries[0].id, "attempt": 4, "targets": [0], "via": "live"})
    assert run.state().pending(plan.queries[0])[0].attempt == 5


def test_the_dialect_settled_last_counts(plan, run_of):
    run = run_of(plan)
    assert run.dialect() is None
    with run.writing("test") as writer:
        writer.settle_dialect("strict")
        writer.settle_dialect("loose")
    assert run.dialect() == "loose"
    assert list(run.requests()) == []


def test_only_one_may_write(plan, run_of):
    run = run_of(plan)
    with run.writing("the first"), pytest.raises(Locked, match="the first"), run.writing("the second"):
        pass
    with run.writing("the second"):
        pass


def test_a_directory_keeps_its_plan(plan, make, tmp_path):
    create_run(tmp_path / "run", plan)
    assert create_run(tmp_path / "run", plan).plan == plan
    with pytest.raises(ValueError, match="holds a run with another plan"):
        create_run(tmp_path / "run", make(tasks=5))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="exists and is no judging run"):
        create_run(tmp_path / "other", plan)
    with pytest.raises(ValueError, match="no such judging run"):
        open_run(tmp_path / "none")
    with pytest.raises(ValueError, match="no such plan"):
        open_run(tmp_path / "other")


def test_a_line_that_is_no_reply_is_named(plan, run_of):
    run = run_of(plan)
    (run.path / "replies.jsonl").write_text('{"query": "x"}\n')
    with pytest.raises(ValueError, match=r"replies\.jsonl, line 1: not a stored reply"):
        list(run.judgments())
