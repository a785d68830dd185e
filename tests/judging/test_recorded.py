import copy

import pytest

from forethought.judging.recorded import connectivity_from_judgments, evidence_from_judgments, read_judgments
from forethought.tasks import Task, TaskSet

TASKS = TaskSet([Task(id, "t") for id in "abc"])
CONNECTIVITY = [
    {
        "repetition": 0,
        "source_ids": sources,
        "target_ids": ["c", "a", "b"],
        "reply": {"records": [{"target_id": t, "transfer_source_ids": chosen.get(t, [])} for t in "abc"]},
    }
    for sources, chosen in ((["b", "a"], {"c": ["a", "b"]}), (["c"], {"a": ["c"]}))
]
EVIDENCE = [
    {
        "repetition": 0,
        "evidence_ids": ["c", "b", "a"],
        "target_ids": ["b", "a", "c"],
        "reply": {
            "judgments": [
                {"evaluated_goal_id": "a", "feasible_from_scratch": True, "readiness_evidence_goal_ids": []},
                {"evaluated_goal_id": "b", "feasible_from_scratch": False, "readiness_evidence_goal_ids": ["a"]},
                {"evaluated_goal_id": "c", "feasible_from_scratch": False, "readiness_evidence_goal_ids": ["b", "a"]},
            ]
        },
    }
]


def test_blocks_of_a_repetition_join_into_one_graph():
    graph = connectivity_from_judgments(CONNECTIVITY, TASKS)
    assert graph.weights.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]


def test_evidence_is_spread_over_what_was_selected():
    graph = evidence_from_judgments(EVIDENCE, TASKS)
    assert graph.weights.toarray().tolist() == [[0, 1, 0.5], [0, 0, 0.5], [0, 0, 0]]
    assert graph.from_scratch.tolist() == [1, 0, 0]


def changed(lines, change):
    lines = copy.deepcopy(lines)
    change(lines)
    return lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: q.pop(), "unjudged"),
        (lambda q: q.append(q[0]), "more than once"),
        (lambda q: q[0]["reply"]["records"].pop(), "differ from those asked"),
        (lambda q: q[0]["reply"]["records"].append(q[0]["reply"]["records"][0]), "twice"),
        (lambda q: q[0]["reply"]["records"][0]["transfer_source_ids"].append("a"), "'a' for 'a'"),
        (lambda q: q[0]["reply"]["records"][0]["transfer_source_ids"].append("c"), "not offered"),
        (lambda q: q[0]["reply"]["records"][0]["transfer_source_ids"].extend("bb"), "twice"),
        (lambda q: q[0]["source_ids"].append("x"), "unknown task id 'x'"),
    ],
)
def test_an_invalid_connectivity_reply_is_refused(change, message):
    with pytest.raises((ValueError, KeyError), match=message):
        connectivity_from_judgments(changed(CONNECTIVITY, change), TASKS)


def judgment(q, i):
    return q[0]["reply"]["judgments"][i]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: judgment(q, 1).update(feasible_from_scratch=True), "feasible from scratch"),
        (lambda q: judgment(q, 0).update(feasible_from_scratch=False), "feasible from scratch"),
        (lambda q: judgment(q, 1).update(readiness_evidence_goal_ids=["b"]), "not offered"),
        (lambda q: q.append(q[0]), "more than once"),
        (lambda q: (q[0]["target_ids"].remove("c"), q[0]["reply"]["judgments"].pop()), "does not judge 'c'"),
    ],
)
def test_an_invalid_evidence_reply_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        evidence_from_judgments(changed(EVIDENCE, change), TASKS)


def test_a_line_that_is_not_json_is_named(tmp_path):
    (tmp_path / "j.jsonl").write_text('{"a": 1}\n{"b"\n')
    with pytest.raises(ValueError, match="line 2"):
        list(read_judgments(tmp_path / "j.jsonl"))
