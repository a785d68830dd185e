import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.graphs import (
    FeasibilityEvidence,
    LearningConnectivity,
    Provenance,
    check_graph,
    describe_task,
    load_graph,
)
from forethought.tasks import Task, TaskSet

IDS = ("a", "b", "ç", "d")


def subsets(of, exclude, most):
    return st.sets(st.sampled_from([i for i in range(of) if i != exclude]), max_size=most)


def judgments(size, most, repetitions=3):
    one = st.tuples(*(subsets(size, m, most) for m in range(size)))
    return st.lists(one, min_size=1, max_size=repetitions)


@given(judgments(5, 4))
def test_connectivity_weight_is_the_share_of_repetitions(selections):
    graph = LearningConnectivity.from_selections("vwxyz", [[list(c) for c in r] for r in selections])
    for s in range(5):
        for t in range(5):
            expected = sum(s in repetition[t] for repetition in selections) / len(selections)
            assert graph.weights[s, t] == expected


@given(judgments(5, 3))
def test_evidence_weight_follows_equation_5_and_sums_to_one(selections):
    graph = FeasibilityEvidence.from_selections("vwxyz", [[list(c) for c in r] for r in selections])
    for m in range(5):
        for s in range(5):
            expected = math.fsum(1 / len(r[m]) for r in selections if s in r[m]) / len(selections)
            assert graph.weights[s, m] == pytest.approx(expected, abs=1e-12)
        scratch = sum(not r[m] for r in selections) / len(selections)
        assert graph.from_scratch[m] == pytest.approx(scratch, abs=1e-12)
        assert graph.weights.toarray()[:, m].sum() + graph.from_scratch[m] == pytest.approx(1, abs=1e-12)


EVIDENCE = FeasibilityEvidence.from_selections(
    IDS,
    [
        [[], [0], [0, 1], [1, 2]],
        [[], [], [3], [2]],
    ],
    Provenance(model_asked="m", repetitions=2, notes=("n",)),
)
CONNECTIVITY = LearningConnectivity.from_selections(IDS, [[[], [0], [0], [2]], [[3], [0], [1], []]])


def test_restricted_evidence_leaves_out_repetitions_with_nothing_left():
    graph = EVIDENCE.restrict(["a", "b", "ç"])
    assert graph.weights.toarray().tolist() == [[0, 0.5, 0.5], [0, 0, 0.5], [0, 0, 0]]
    assert graph.from_scratch.tolist() == [1.0, 0.5, 0.0]


def test_a_restricted_task_without_evidence_is_named_and_has_none():
    with pytest.warns(UserWarning, match="no evidence is left.*'d'"):
        graph = EVIDENCE.restrict(["d", "a"])
    assert graph.without_evidence == ("d",)
    assert graph.weights.nnz == 0
    assert graph.from_scratch.tolist() == [0.0, 1.0]


@settings(max_examples=30)
@given(judgments(5, 3), st.permutations(range(5)))
def test_restricting_in_two_steps_equals_one(selections, order):
    graph = FeasibilityEvidence.from_selections("vwxyz", [[list(c) for c in r] for r in selections])
    ids = [graph.ids[i] for i in order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once = graph.restrict(ids[:2])
        twice = graph.restrict(ids[:4]).restrict(ids[:2])
    np.testing.assert_allclose(once.weights.toarray(), twice.weights.toarray(), atol=1e-12)
    np.testing.assert_allclose(once.from_scratch, twice.from_scratch, atol=1e-12)


def test_restricted_connectivity_is_the_induced_part():
    graph = CONNECTIVITY.restrict(["ç", "a"])
    assert graph.weights.toarray().tolist() == [[0, 0], [0.5, 0]]
    assert LearningConnectivity.from_selections(graph.ids, graph.selections).weights.toarray().tolist() == [
        [0, 0],
        [0.5, 0],
    ]


def test_align_goes_by_id_never_by_position():
    tasks = TaskSet([Task(id, "t") for id in reversed(IDS)])
    for graph in (CONNECTIVITY, EVIDENCE):
        aligned = graph.align(tasks)
        assert aligned.ids == tasks.ids
        assert (aligned.weights.toarray() == graph.weights.toarray()[::-1, ::-1]).all()


def test_align_names_tasks_that_differ():
    with pytest.raises(ValueError, match="has no task 'x'"):
        CONNECTIVITY.align(TaskSet([Task("x", "t"), *(Task(id, "t") for id in IDS)]))
    with pytest.raises(ValueError, match=r"the task set lacks: 'ç', 'd'; use graph.restrict"):
        CONNECTIVITY.align(TaskSet([Task("a", "t"), Task("b", "t")]))
    with pytest.raises(ValueError, match="unknown task id 'x'"):
        CONNECTIVITY.restrict(["x"])


@pytest.mark.parametrize("graph", [CONNECTIVITY, EVIDENCE], ids=lambda g: g.kind)
def test_a_file_holds_everything_and_is_canonical(tmp_path, graph):
    graph.save(tmp_path / "g.json")
    loaded = type(graph).load(tmp_path / "g.json")
    assert loaded.ids == graph.ids
    assert loaded.selections == graph.selections
    assert loaded.provenance == graph.provenance
    assert (loaded.weights.toarray() == graph.weights.toarray()).all()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "g.json").read_bytes()
    assert type(load_graph(tmp_path / "g.json")) is type(graph)
    assert check_graph(tmp_path / "g.json") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "g.json"]


def edit(tmp_path, graph, **changes):
    graph.save(tmp_path / "g.json")
    document = json.loads((tmp_path / "g.json").read_text())
    for key, change in changes.items():
        document[key] = change(document[key])
    (tmp_path / "g.json").write_text(json.dumps(document))
    return tmp_path / "g.json"


def weights(change):
    return lambda old: {**old, **change(old)}


@pytest.mark.parametrize(
    ("graph", "changes", "message"),
    [
        (CONNECTIVITY, {"ids": lambda ids: ["a", "a", *ids[2:]]}, "'a' more than once"),
        (CONNECTIVITY, {"ids": lambda ids: ids[:-1]}, "position 3"),
        (CONNECTIVITY, {"weights": weights(lambda w: {"weight": [2.0, *w["weight"][1:]]})}, "must lie in"),
        (CONNECTIVITY, {"weights": weights(lambda w: {"weight": [math.nan, *w["weight"][1:]]})}, "weighs nan"),
        (CONNECTIVITY, {"weights": weights(lambda w: {"weight": [0.25, *w["weight"][1:]]})}, "Eq. 4"),
        (CONNECTIVITY, {"weights": weights(lambda w: {"target": [0, *w["target"][1:]]})}, "edge to itself"),
        (CONNECTIVITY, {"weights": weights(lambda w: {"weight": w["weight"][1:]})}, "differ in length"),
        (CONNECTIVITY, {"weights": lambda _: None}, "must hold the lists"),
        (CONNECTIVITY, {"selections": lambda s: [[[9], *s[0][1:]], s[1]]}, "position 9"),
        (CONNECTIVITY, {"selections": lambda s: s[:1]}, "Eq. 4"),
        (CONNECTIVITY, {"selections": lambda s: [s[0][1:], s[1]]}, "repetition 0 does not hold"),
        (CONNECTIVITY, {"version": lambda _: 7}, "version 7"),
        (CONNECTIVITY, {"provenance": lambda p: {**p, "who": 1}}, "provenance"),
        (CONNECTIVITY, {"kind": lambda _: "poem"}, "kind 'poem'"),
        (EVIDENCE, {"from_scratch": lambda f: [0.5, *f[1:]]}, "'a' sums to 0.5"),
        (EVIDENCE, {"from_scratch": lambda f: [-1, *f[1:]]}, "from-scratch weight -1"),
        (EVIDENCE, {"from_scratch": lambda f: f[1:]}, "one weight for each of 4"),
        (EVIDENCE, {"selections": lambda s: [[[1], *s[0][1:]], s[1]]}, "Eq. 5"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path, graph, changes, message):
    path = edit(tmp_path, graph, **changes)
    with pytest.raises(ValueError, match=message):
        type(graph).load(path)
    assert any(str(path) in problem for problem in check_graph(path))


def test_an_unreadable_file_says_so(tmp_path):
    path = tmp_path / "g.json"
    with pytest.raises(ValueError, match="no such graph file"):
        load_graph(path)
    CONNECTIVITY.save(path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ValueError, match="not a readable graph file"):
        load_graph(path)
    assert check_graph(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "g.json"
    CONNECTIVITY.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        EVIDENCE.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_weights_given_directly_are_checked():
    with pytest.raises(ValueError, match=r"'a' -> 'b' weighs 1.5"):
        LearningConnectivity.from_weights(("a", "b"), [[0, 1.5], [0, 0]])
    with pytest.raises(ValueError, match="edge to itself"):
        LearningConnectivity.from_weights(("a", "b"), [[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="shape"):
        LearningConnectivity.from_weights(("a", "b"), [[0.0]])
    with pytest.raises(ValueError, match="'b' sums to 0"):
        FeasibilityEvidence.from_weights(("a", "b"), np.zeros((2, 2)), [1, 0])


def test_directly_given_evidence_is_renormalised_when_restricted():
    graph = FeasibilityEvidence.from_weights(("a", "b", "c"), [[0, 0.25, 0], [0, 0, 0], [0, 0.75, 0]], [1, 0, 1])
    assert graph.restrict(("a", "b")).weights.toarray().tolist() == [[0, 1], [0, 0]]


def test_describe_task_gives_the_strongest_first():
    found = describe_task(CONNECTIVITY, EVIDENCE, "ç")
    assert found["sources"] == [("a", 0.5), ("b", 0.5)]
    assert found["targets"] == [("d", 0.5)]
    assert found["evidence"] == [("d", 0.5), ("a", 0.25), ("b", 0.25)]
    assert describe_task(CONNECTIVITY, EVIDENCE, "a")["evidence"] == [("from scratch", 1.0)]
    with pytest.raises(KeyError, match="unknown task id 'x'"):
        describe_task(CONNECTIVITY, EVIDENCE, "x")


ASKED = [[0, 2, 1, 1], [2, 0, 0, 2], [1, 2, 0, 2], [2, 1, 1, 0]]


def partly_asked():
    return LearningConnectivity.from_selections(IDS, [[[], [0], [0], [2]], [[3], [0], [], []]], asked=ASKED)


def test_a_weight_is_the_share_of_the_repetitions_that_asked(tmp_path):
    graph = partly_asked()
    assert graph.weights.toarray().tolist() == [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0.5], [0.5, 0, 0, 0]]
    graph.save(tmp_path / "g.json")
    again = LearningConnectivity.load(tmp_path / "g.json")
    assert again.asked is not None
    assert again.asked.toarray().tolist() == ASKED
    assert (again.weights != graph.weights).nnz == 0
    part = again.restrict(["ç", "a"])
    assert part.asked is not None
    assert part.asked.toarray().tolist() == [[0, 1], [1, 0]]
    assert part.weights.toarray().tolist() == [[0, 0], [1, 0]]


def test_counts_asked_that_cannot_be_are_named(tmp_path):
    partly_asked().save(tmp_path / "g.json")
    document = json.loads((tmp_path / "g.json").read_text())
    for count, message in ((3, "in 3 repetitions"), (1, "more often than it was asked")):
        document["asked"]["count"][0] = count
        (tmp_path / "broken.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match=f"'a' -> 'b' was .*{message}"):
            LearningConnectivity.load(tmp_path / "broken.json")
    del document["asked"]["count"]
    (tmp_path / "broken.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="asked must hold the lists source, target and count"):
        load_graph(tmp_path / "broken.json")
