import dataclasses
import json
from collections import Counter

import numpy as np
import pytest

from forethought.judging.blocks import Group, Query, generator, queries
from forethought.judging.plan import KINDS, Plan, Settings
from forethought.judging.pruning import Pruning
from forethought.tasks import Task, TaskSet


def pairs(plan, repetition):
    return Counter(
        (s, t)
        for query in plan.queries
        if query.repetition == repetition
        for s in query.sources
        for t in query.targets
        if s != t
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 16, 17, 65, 130])
def test_every_ordered_pair_is_asked_once_in_every_repetition(kind, size, make):
    plan = make(kind, size, repetitions=3)
    every = {(s, t) for s in range(size) for t in range(size) if s != t}
    for repetition in range(3):
        asked = pairs(plan, repetition)
        assert set(asked) == every
        assert set(asked.values()) == {1}
    plan.check_pairs()
    assert plan.pairs == 3 * size * (size - 1)
    assert plan.share_asked == plan.share_ever_asked == 1


def test_the_papers_design_for_256_goals(make):
    plan = make("learning_connectivity", 256, repetitions=5)
    assert len(plan.queries) == 5 * 4 * 16
    assert {(len(q.sources), len(q.targets)) for q in plan.queries} == {(64, 16)}
    plan = make("feasibility_evidence", 256, repetitions=5)
    assert len(plan.queries) == 5 * 32
    assert {(len(q.sources), len(q.targets)) for q in plan.queries} == {(256, 8)}


def test_shuffles_are_independent_of_each_other_and_follow_the_seed(make):
    plan = make(tasks=64, repetitions=2, target_block=64)
    orders = [query.sources for query in plan.queries] + [query.targets for query in plan.queries]
    assert len(set(orders)) == 4
    assert make(tasks=64, repetitions=2).digest == make(tasks=64, repetitions=2).digest
    assert make(tasks=64, repetitions=2, seed=1).repetitions != make(tasks=64, repetitions=2).repetitions
    # A repetition does not depend on how many there are.
    assert make(tasks=64, repetitions=5).repetitions[:2] == make(tasks=64, repetitions=2).repetitions
    draws = {generator(k, 0, r, role).integers(2**60) for k in KINDS for r in (0, 1) for role in ("sources", "targets")}
    assert len(draws) == 4 * len(KINDS)


def test_query_ids_are_unique_and_shared_sources_stand_together(make):
    plan = make(tasks=130, repetitions=2)
    assert len(plan.by_id) == len(plan.queries)
    assert [query.id for query in plan.queries[:3]] == ["lc-r0-t0-s0", "lc-r0-t1-s0", "lc-r0-t2-s0"]
    assert plan.queries[0].sources == plan.queries[8].sources != plan.queries[9].sources


def test_ids_on_the_wire_are_short(make):
    assert make(tasks=3).wire_ids == ("g000", "g001", "g002")
    assert make(tasks=1001, kind="feasibility_evidence", target_block=1001).wire_ids[-1] == "g1000"


def test_a_query_counts_its_pairs():
    assert Query("q", 0, (0, 1, 2), (1, 5)).pairs == 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_comes_back_from_its_file(kind, make, tmp_path):
    tasks = TaskSet(
        [
            Task("ä/1", "Öffne die Tür “leise”."),
            Task("二", "走\u2028到門口"),
            Task("c d", "\ud83d\ude00 {{ x }}".encode("utf-16", "surrogatepass").decode("utf-16")),
        ]
    )
    plan = make(kind, tasks, repetitions=2, learner="lerner", notes=("n",))
    plan.save(tmp_path / "plan.json")
    again = Plan.load(tmp_path / "plan.json")
    assert again == plan
    assert again.queries == plan.queries


def test_a_pruned_plan_comes_back_from_its_file(make, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    plan = make(tasks=40, pruning=Pruning(10, 0.3, vectors, "somewhere"))
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    assert plan.pruning == {"candidates": 10, "random_share": 0.3, "vectors_from": "somewhere"}


def altered(document):
    document["prompts"]["learner"] = "another"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (altered, "was changed after it was made"),
        (lambda d: d.pop("tasks"), "not a whole plan"),
        (lambda d: d.update(version=7), "version 7"),
        (lambda d: d.update(format="x"), "not a judging plan"),
    ],
)
def test_a_bad_plan_file_is_refused(change, message, make, tmp_path):
    make().save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    change(document)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message):
        Plan.load(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(ValueError, match="not a readable plan"):
        Plan.load(tmp_path / "plan.json")
    with pytest.raises(ValueError, match="no such plan"):
        Plan.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 1}, "at least 2 tasks"),
        ({"repetitions": 0}, "repetitions is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"source_block": 0}, "source_block is 0"),
        ({"target_block": 0}, "target_block is 0"),
        ({"kind": "feasibility_evidence", "source_block": 3}, "every evidence query shows all"),
        ({"pruning": Pruning(3, 0.5, np.ones((4, 2)), "v")}, "4 vectors; 6 tasks"),
    ],
)
def test_numbers_out_of_range_are_named(options, message, make):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "no name"),
        ({"thinking": "much"}, "'much'; allowed are minimal, low"),
        ({"shape": "table"}, "'table'; allowed are records and keyed"),
        ({"asks": 0}, "asks is 0"),
        ({"base_url": "http://me:secret@host/v1"}, "holds a name or password"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**{"model": "openai:m"} | options)


def test_a_design_that_asks_a_pair_twice_or_never_is_found(make):
    plan = make(tasks=3)
    twice = dataclasses.replace(plan, repetitions=(plan.repetitions[0] + (Group(((0,),), ((1,),)),),))
    with pytest.raises(ValueError, match="'task-0' -> 'task-1' more than once"):
        twice.check_pairs()
    never = dataclasses.replace(plan, repetitions=((Group(((0, 1, 2),), ((0, 1),)),),))
    with pytest.raises(ValueError, match="never"):
        never.check_pairs()


def test_groups_number_their_blocks_through():
    groups = (Group(((0,), (1,)), ((2,),)), Group(((3,),), ((4,), (5,))))
    assert [query.id for query in queries("learning_connectivity", [groups])] == [
        "lc-r0-t0-s0",
        "lc-r0-t0-s1",
        "lc-r0-t1-s0",
        "lc-r0-t2-s0",
    ]
