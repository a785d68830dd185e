import json

import pytest

from forethought.judging.plan import Settings
from forethought.judging.replies import SOURCES, Reply
from forethought.judging.state import State


@pytest.fixture
def plan(make):
    return make(tasks=8, source_block=8, target_block=4)


@pytest.fixture
def reply_to(plan, records):
    def build(query, attempt=1, targets=None, change=None, **fields):
        targets = query.targets if targets is None else targets
        text = fields.pop("text", None)
        if text is None:
            text = json.dumps(records(plan, query, targets, change))
        return Reply(query.id, attempt, tuple(targets), text, **fields)

    return build


def test_a_fresh_run_needs_each_query_once(plan):
    state = State(plan)
    assert [request.id for q in plan.queries for request in state.pending(q)] == ["lc-r0-t0-s0-a1", "lc-r0-t1-s0-a1"]
    assert (state.judged, state.wanted, state.cost_usd) == (0, 8, 0)
    assert list(state.missing()) == list(plan.by_id)


def test_only_bad_targets_are_asked_again_and_told_why(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    judgment, _ = state.take(reply_to(query, change=lambda made: made[1][SOURCES].append("g999")))
    assert set(judgment.selections) == set(query.targets) - {query.targets[1]}
    assert judgment.targets_asked == query.targets
    assert judgment.sources_listed == query.sources
    (again,) = state.pending(query)
    assert again.targets == (query.targets[1],)
    assert again.attempt == 2
    assert again.problems == (f"{plan.wire_ids[query.targets[1]]} names g999, which was not offered",)
    assert state.bad == 1
    judgment, _ = state.take(reply_to(query, 2, again.targets))
    assert list(judgment.selections) == [query.targets[1]]
    assert state.pending(query) == []
    assert query.id not in state.missing()


def test_a_reply_that_was_cut_off_is_asked_again_in_halves(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    state.take(reply_to(query, text='{"records": [', finish="length"))
    halves = state.pending(query)
    assert [(request.attempt, request.targets) for request in halves] == [
        (2, query.targets[:2]),
        (3, query.targets[2:]),
    ]
    state.take(reply_to(query, 3, halves[1].targets))
    state.take(reply_to(query, 2, halves[0].targets, text="", finish="length"))
    assert [(request.attempt, request.targets) for request in state.pending(query)] == [
        (4, query.targets[:1]),
        (5, query.targets[1:2]),
    ]


def test_a_whole_answer_that_ends_at_the_limit_is_still_an_answer(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    state.take(reply_to(query, finish="length"))
    assert state.pending(query) == []


def test_the_first_valid_judgment_stays(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    first, _ = state.take(reply_to(query))
    second, _ = state.take(reply_to(query, 2, change=lambda made: made[0].update({SOURCES: []})))
    assert len(first.selections) == 4
    assert second.selections == {}


def test_targets_are_given_up_after_so_many_asks(make, reply_to):
    plan = make(tasks=8, source_block=8, target_block=4, settings=Settings("google:gemini-3.8-flash", asks=2))
    state, query = State(plan), plan.queries[0]
    for attempt in (1, 2):
        assert state.given_up() == {}
        state.take(reply_to(query, attempt, text="no"))
    assert state.pending(query) == []
    assert state.given_up() == {query.id: dict.fromkeys(query.targets, "the reply is not JSON, or is cut off")}
    more = State(plan, asks=3)
    for attempt in (1, 2):
        more.take(reply_to(query, attempt, text="no"))
    assert len(more.pending(query)) == 1


def test_a_request_without_a_usable_answer_counts_as_paid_and_as_asked(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    state.take(reply_to(query, text="", error="timed out"))
    assert (state.replies, state.errors, state.bad) == (0, 1, 0)
    (again,) = state.pending(query)
    assert again.problems == ()
    for attempt in (2, 3, 4):
        state.take(reply_to(query, attempt, text="", error="timed out"))
    assert state.given_up()[query.id][query.targets[0]] == "timed out"


def test_what_others_are_asking_about_is_left_to_them(plan):
    state, query = State(plan), plan.queries[0]
    held = {(query.id, target) for target in query.targets[:3]}
    (request,) = state.pending(query, held)
    assert request.targets == query.targets[3:]
    state.note_attempt(query.id, 6)
    assert state.pending(query, held)[0].attempt == 7


def test_money_and_tokens_are_those_of_all_replies_good_or_bad(plan, reply_to):
    state, query = State(plan), plan.queries[0]
    usage = {"input": 10, "output": 5, "thoughts": 3}
    state.take(reply_to(query, text="no", usage=usage, cost_usd=0.25, model_served="a"))
    state.take(reply_to(query, 2, usage=usage, cost_usd=0.5, model_served="b"))
    state.take(reply_to(plan.queries[1], error="lost", maybe_paid=True))
    state.take(reply_to(plan.queries[1], 2, usage={"input": 0, "output": 0}, error="cut"))
    assert state.cost_usd == 0.75
    assert state.usage == {"input": 20, "output": 10, "thoughts": 6}
    assert (state.priced, state.unpriced, state.errors, state.maybe_paid) == (2, 1, 2, 1)
    assert state.served == {"a": 1, "b": 1}


def test_replies_that_name_nothing_are_counted(plan, reply_to):
    def nothing(made):
        for record in made:
            record[SOURCES] = []

    state = State(plan)
    state.take(reply_to(plan.queries[0], change=nothing))
    state.take(reply_to(plan.queries[1]))
    assert state.empty == 1


def test_a_reply_of_another_plan_is_refused(plan):
    with pytest.raises(ValueError, match=r"'lc-r9-t0-s0' about .* does not belong"):
        State(plan).take(Reply("lc-r9-t0-s0", 1, (0,)))
    foreign = next(t for t in range(8) if t not in plan.queries[0].targets)
    with pytest.raises(ValueError, match="does not belong"):
        State(plan).take(Reply(plan.queries[0].id, 1, (foreign,)))
