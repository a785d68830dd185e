import copy

import pytest

from forethought.judging.aggregate import build_graph
from forethought.judging.prompts import Prompts, default_template
from forethought.judging.recorded import import_recorded
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


def recorded(kind, lines, path):
    return import_recorded(lines, TASKS, Prompts(kind, default_template(kind), "e", "g", "l", "d"), path, model="m")


def changed(lines, change):
    lines = copy.deepcopy(lines)
    change(lines)
    return lines


def test_blocks_of_a_repetition_join_into_one_graph(tmp_path):
    run = recorded("learning_connectivity", CONNECTIVITY, tmp_path / "run")
    assert run.missing() == {}
    assert build_graph(run).weights.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]


def test_recorded_answers_on_what_bores_become_a_graph(tmp_path):
    def record(query):
        query["mastered_ids"] = query.pop("source_ids")
        for answer in query["reply"]["records"]:
            answer["mastered_goal_ids"] = answer.pop("transfer_source_ids")

    lines = changed(CONNECTIVITY, lambda queries: [record(query) for query in queries])
    graph = build_graph(recorded("interestingness", lines, tmp_path / "run"))
    assert graph.kind == "interestingness"
    assert graph.weights.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    # Answers to the other question about pairs are none to this one.
    swapped = changed(lines, lambda queries: queries[0].update(reply=CONNECTIVITY[0]["reply"]))
    assert recorded("interestingness", swapped, tmp_path / "other").missing() == {"in-r0-t0-s0": (2, 0, 1)}


def test_evidence_is_spread_over_what_was_selected(tmp_path):
    graph = build_graph(recorded("feasibility_evidence", EVIDENCE, tmp_path / "run"))
    assert graph.weights.toarray().tolist() == [[0, 1, 0.5], [0, 0, 0.5], [0, 0, 0]]
    assert graph.from_scratch.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: q.pop(), "'c' -> 'a' never"),
        (lambda q: q.append(q[0]), "more than once"),
        (lambda q: q[0].pop("reply"), "line 1: has no reply"),
        (lambda q: q[0]["source_ids"].append("x"), "unknown task id 'x'"),
    ],
)
def test_a_design_that_does_not_ask_each_pair_once_is_refused(change, message, tmp_path):
    with pytest.raises((ValueError, KeyError), match=message):
        recorded("learning_connectivity", changed(CONNECTIVITY, change), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "open_targets"),
    [
        (lambda r: r.pop(0), (0,)),
        (lambda r: r.append(r[0]), (0,)),
        (lambda r: r[0]["transfer_source_ids"].append("a"), (0,)),
        (lambda r: r[1]["transfer_source_ids"].append("c"), (1,)),
        (lambda r: r[2]["transfer_source_ids"].extend("bb"), (2,)),
        (lambda r: r.clear(), (2, 0, 1)),
    ],
)
def test_an_invalid_connectivity_judgment_stays_open(change, open_targets, tmp_path):
    lines = changed(CONNECTIVITY, lambda q: change(q[0]["reply"]["records"]))
    assert recorded("learning_connectivity", lines, tmp_path / "run").missing() == {"lc-r0-t0-s0": open_targets}


@pytest.mark.parametrize(
    ("change", "open_targets"),
    [
        (lambda j: j[1].update(feasible_from_scratch=True), (1,)),
        (lambda j: j[0].update(feasible_from_scratch=False), (0,)),
        (lambda j: j[1].update(readiness_evidence_goal_ids=["b"]), (1,)),
        (lambda j: j[1].pop("feasible_from_scratch"), (1,)),
    ],
)
def test_an_invalid_evidence_judgment_stays_open(change, open_targets, tmp_path):
    lines = changed(EVIDENCE, lambda q: change(q[0]["reply"]["judgments"]))
    assert recorded("feasibility_evidence", lines, tmp_path / "run").missing() == {"fe-r0-t0-s0": open_targets}
