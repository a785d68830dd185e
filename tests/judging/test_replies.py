import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forethought.judging.replies import EVIDENCE, SCRATCH, SOURCES, TARGET, Reply, judge, parse


@pytest.fixture
def lc(make):
    plan = make(tasks=6, source_block=4, target_block=3, seed=3)
    query = next(q for q in plan.queries if set(q.sources) & set(q.targets))
    return plan, query


@pytest.fixture
def fe(make):
    plan = make("feasibility_evidence", 6, target_block=3)
    return plan, plan.queries[0]


def verdict(case, records, change=None):
    plan, query = case
    return judge(plan, query, query.targets, json.dumps(records(plan, query, change=change)))


def test_a_good_reply_settles_every_target(lc, fe, records):
    for plan, query in (lc, fe):
        found = verdict((plan, query), records)
        assert set(found.selections) == set(query.targets)
        assert found.problems == {}
        for target, chosen in found.selections.items():
            assert list(chosen) == [s for s in query.sources if s != target][:2]


def set_first(name, value):
    def change(made):
        made[0][name] = value

    return change


def overlap(case):
    """The place in the reply of a target that is a source too."""
    _, query = case
    return next(i for i, target in enumerate(query.targets) if target in query.sources)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.pop(0), "has no record"),
        (lambda made: made.append(made[0]), "has 2 records"),
        (lambda made: made[0][SOURCES].append(made[0][SOURCES][0]), "twice"),
        (lambda made: made[0][SOURCES].append("g999"), "names g999, which was not offered"),
        (lambda made: made[0][SOURCES].append(" g000"), "not offered"),
        (set_first(SOURCES, None), "no list of ids"),
        (set_first(SOURCES, "g000"), "no list of ids"),
        (set_first(SOURCES, [0, 1]), "no list of ids"),
        (set_first(TARGET, 7), "has no record"),
        (set_first(TARGET, "G000"), "has no record"),
    ],
)
def test_one_bad_connectivity_record_leaves_the_others_good(change, message, lc, records):
    _, query = lc
    found = verdict(lc, records, change)
    assert set(found.problems) == {query.targets[0]}
    assert message in found.problems[query.targets[0]]
    assert set(found.selections) == set(query.targets[1:])


def test_a_goal_that_names_itself_is_bad(lc, records):
    plan, query = lc
    place = overlap(lc)
    own = plan.wire_ids[query.targets[place]]
    found = verdict(lc, records, lambda made: made[place][SOURCES].append(own))
    assert found.problems == {query.targets[place]: f"{own} names itself"}


def test_a_source_of_another_block_is_bad(lc, records):
    plan, query = lc
    foreign = next(i for i in range(6) if i not in query.sources and i != query.targets[0])
    found = verdict(lc, records, lambda made: made[0][SOURCES].append(plan.wire_ids[foreign]))
    assert list(found.problems) == [query.targets[0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_first(SCRATCH, True), "is called feasible from scratch and has 2"),
        (set_first(EVIDENCE, []), "has 0 evidence goals; 1 to 3"),
        (set_first(SCRATCH, "false"), "true or false"),
        (lambda made: made[0].pop(SCRATCH), "true or false"),
        (lambda made: made[0].pop(EVIDENCE), "no list of ids"),
    ],
)
def test_one_bad_evidence_record_leaves_the_others_good(change, message, fe, records):
    _, query = fe
    found = verdict(fe, records, change)
    assert set(found.problems) == {query.targets[0]}
    assert message in found.problems[query.targets[0]]


def test_four_evidence_goals_are_too_many(fe, records):
    plan, query = fe
    four = [plan.wire_ids[s] for s in query.sources if s != query.targets[0]][:4]
    assert "has 4 evidence goals" in verdict(fe, records, set_first(EVIDENCE, four)).problems[query.targets[0]]


def test_from_scratch_and_no_source_are_answers(fe, lc, records):
    def scratch(made):
        made[0] |= {SCRATCH: True, EVIDENCE: []}

    assert verdict(fe, records, scratch).selections[fe[1].targets[0]] == ()
    assert verdict(lc, records, set_first(SOURCES, [])).selections[lc[1].targets[0]] == ()


def test_only_the_targets_asked_count(lc, records):
    plan, query = lc
    text = json.dumps(records(plan, query))
    found = judge(plan, query, query.targets[:1], text)
    assert set(found.selections) == {query.targets[0]}
    assert found.problems == {}


def test_records_of_strangers_are_passed_over(lc, records):
    def add(made):
        made.extend([{TARGET: "g999", SOURCES: ["x"]}, "noise", {TARGET: ["g000"], SOURCES: []}, None])

    assert verdict(lc, records, add).problems == {}


@pytest.mark.parametrize(
    "wrap",
    [
        "```json\n{}\n```",
        "Here it is:\n\n```\n{}\n```\nDone.",
        '<think>Is {{"records": []}} right? [no]</think>\n{}',
        "Sure! {} Hope it helps.",
        "I consider [g001] and {{g002}} first.\n{}\n",
        "\ufeff {}"[1:],
    ],
)
def test_what_stands_around_the_json_does_not_matter(wrap, lc, records):
    plan, query = lc
    text = wrap.format(json.dumps(records(plan, query)))
    assert judge(plan, query, query.targets, text).problems == {}
    pretty = wrap.format(json.dumps(records(plan, query), indent=2))
    assert judge(plan, query, query.targets, pretty).problems == {}


def test_shapes_that_mean_the_same_are_taken(lc, fe, records):
    for plan, query in (lc, fe):
        (made,) = records(plan, query).values()
        name = TARGET if plan is lc[0] else "evaluated_goal_id"
        keyed = {r[name]: r[SOURCES] if plan is lc[0] else {k: v for k, v in r.items() if k != name} for r in made}
        for value in (made, {"answer": made}, keyed):
            assert judge(plan, query, query.targets, json.dumps(value)).problems == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("I cannot help with that.", "not JSON"),
        ("{}", "has no list"),
        ('{"records": {}}', "has no list"),
        ("3", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("null", "not JSON"),
    ],
)
def test_a_reply_without_an_answer_leaves_every_target_open(text, message, lc):
    plan, query = lc
    found = judge(plan, query, query.targets, text)
    assert found.selections == {}
    assert set(found.problems) == set(query.targets)
    assert all(message in problem for problem in found.problems.values())


def test_a_reply_that_is_cut_off_gives_nothing_wherever_it_is_cut(lc, records):
    plan, query = lc
    for indent in (None, 0, 2):
        text = json.dumps(records(plan, query), indent=indent)
        for length in range(len(text)):
            found = judge(plan, query, query.targets, text[:length])
            assert found.selections == {}, text[:length]


SCALARS = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["g000", "g001", "g005", "g999", "", TARGET])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [TARGET, SOURCES, "evaluated_goal_id", SCRATCH, EVIDENCE, "records", "judgments", "g000", "g003"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, before=st.sampled_from(["", "```json\n", "<think>{", "x"]), cut=st.integers(0, 400))
def test_whatever_comes_every_target_is_settled_or_faulted_and_only_by_what_was_offered(lc, fe, value, before, cut):
    for plan, query in (lc, fe):
        found = judge(plan, query, query.targets, before + json.dumps(value)[:cut])
        assert set(found.selections) | set(found.problems) == set(query.targets)
        assert not set(found.selections) & set(found.problems)
        for target, chosen in found.selections.items():
            assert set(chosen) <= set(query.sources) - {target}
            assert len(set(chosen)) == len(chosen)


def test_a_property_given_twice_is_no_answer(lc):
    plan, query = lc
    id = plan.wire_ids[query.targets[0]]
    found = judge(plan, query, query.targets, f'{{"{id}": [], "{id}": []}}')
    assert f"gives {id} twice" in found.problems[query.targets[0]]


def test_the_last_of_several_values_counts():
    assert parse('{"draft": 1}\n{"final": 2}') == {"final": 2}


def test_ids_may_be_any_text(make, records):
    import dataclasses

    from forethought.tasks import Task, TaskSet

    tasks = TaskSet([Task(id, id) for id in ("a b", "目标", 'q"uote', "ä")])
    plan = dataclasses.replace(make("feasibility_evidence", tasks), own_ids=True)
    query = plan.queries[0]
    assert judge(plan, query, query.targets, json.dumps(records(plan, query), ensure_ascii=False)).problems == {}


def test_a_reply_comes_back_from_its_line():
    reply = Reply("lc-r0-t0-s0", 2, (4, 1), "text", "2026-11-30T09:00:00Z", "stop", "m", {"input": 3}, 0.5, "id", "p")
    assert Reply.from_line(json.loads(json.dumps(reply.to_line()))) == reply
    assert Reply("q", 1, (0,)).to_line() == {"query": "q", "attempt": 1, "targets": (0,), "text": "", "via": "live"}


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"query": "q"},
        {"query": "q", "attempt": 1, "targets": [0], "text": None},
        {"query": 1, "attempt": 1, "targets": []},
        {"query": "q", "attempt": 1, "targets": [], "colour": 1},
    ],
)
def test_a_line_that_is_no_reply_is_refused(line):
    with pytest.raises(ValueError, match="not a stored reply"):
        Reply.from_line(line)
