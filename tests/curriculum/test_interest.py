import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.curriculum.interest import Interest
from forethought.graphs import Interestingness, check_graph
from forethought.tasks import Task, TaskSet

IDS = ("wood", "2 wood", "🪵", "stone")
TASKS = TaskSet([Task(id, "x") for id in IDS])


def by_loops(boring, rates, mastered):
    """OMNI's procedure, over mastered tasks."""
    interesting, dull = set(), set()
    for task in sorted(range(len(rates)), key=lambda m: -rates[m]):
        if rates[task] < mastered or task in dull:
            continue
        interesting.add(task)
        dull |= {m for m in range(len(rates)) if boring[task, m] and m != task and m not in interesting}
    return dull


@given(st.integers(0, 10**6))
def test_any_matrix_equals_the_procedure(seed):
    rng = np.random.default_rng(seed)
    size = 14
    boring = (rng.random((size, size)) < rng.random()) * 1.0
    interest = Interest(sparse.csr_array(boring), 0.5, 0.25, 0.6)
    for _ in range(3):
        rates = rng.integers(0, 8, size) / 7
        factors = interest.factors(rates)
        assert set(np.flatnonzero(factors < 1)) == by_loops(boring, rates, 0.6)
        assert set(factors.tolist()) <= {0.25, 1.0}


def test_what_is_boring_itself_makes_nothing_boring():
    # wood makes 2 wood boring, 2 wood would make stone boring.
    boring = np.zeros((4, 4))
    boring[0, 1] = boring[1, 3] = boring[1, 0] = 1.0
    interest = Interest(sparse.csr_array(boring), 0.5, 0.0, 0.9)
    assert interest.factors(np.array([1.0, 0.95, 0.0, 0.0])).tolist() == [1, 0, 1, 1]
    # With 2 wood ahead, wood and stone are boring.
    assert interest.factors(np.array([0.95, 1.0, 0.0, 0.0])).tolist() == [0, 1, 1, 0]
    # What was forgotten has no say.
    assert interest.factors(np.array([0.5, 0.5, 0.0, 0.0])).tolist() == [1, 1, 1, 1]


def test_rounding_does_not_decide_who_has_more_say():
    boring = np.zeros((4, 4))
    boring[0, 1] = boring[1, 0] = 1.0
    interest = Interest(sparse.csr_array(boring), 0.5, 0.0, 0.9)
    for rates in ([1.0, 1.0], [1 - 4e-16, 1.0], [0.99, 0.99 + 1e-12]):
        assert interest.factors(np.array([*rates, 0.0, 0.0])).tolist() == [1, 0, 1, 1]


def make(judged, **settings):
    graph = Interestingness.from_judgments(IDS, judged)
    config = CurriculumConfig(warmup=0, smoothing=1.0, **settings)
    return Curriculum(TASKS, interestingness=graph, method="omni", config=config)


def test_learning_progress_is_masked_by_hand():
    judged = np.ones((4, 4))
    judged[0, 1] = 0.2
    curriculum = make(judged, exploration=0.2)
    curriculum.update([0, 1, 3], [1.0, 0.25, 0.25])
    # sqrt of progress from 0: 1, 1/2, 0, 1/2; 2 wood is boring once wood is mastered.
    expected = np.array([1, 0.0005, 0, 0.5])
    assert curriculum.interestingness.tolist() == [1, 0.001, 1, 1]
    assert curriculum.probabilities == pytest.approx(0.8 * expected / expected.sum() + 0.2 / 4)
    assert curriculum.explain("2 wood")["interestingness"] == 0.001
    assert curriculum.metrics()["boring_share"] == 0.25


def test_the_threshold_is_the_share_of_judgments():
    judged = np.ones((4, 4))
    judged[0, 1] = 1 - 0.6
    for threshold, factor in ((0.6, 0.001), (0.61, 1.0)):
        curriculum = make(judged, boring_threshold=threshold)
        curriculum.update([0], [1.0])
        assert curriculum.interestingness[1] == factor


def test_without_boring_tasks_it_is_alp():
    omni, alp = make(np.ones((4, 4))), Curriculum(TASKS, method="alp", config=CurriculumConfig(warmup=0, smoothing=1.0))
    for rates in ([0.5, 0.3, 1.0, 0.0], [1.0, 1.0, 1.0, 0.2]):
        for curriculum in (omni, alp):
            curriculum.update(range(4), rates)
        assert np.array_equal(omni.probabilities, alp.probabilities)
        assert np.array_equal(omni.sample(20), alp.sample(20))


def test_a_judged_matrix_survives_its_file_and_is_matched_by_id(tmp_path):
    graph = Interestingness.from_judgments(IDS, np.arange(16).reshape(4, 4) / 16)
    graph.save(tmp_path / "boring.json")
    assert check_graph(tmp_path / "boring.json") == []
    loaded = Interestingness.load(tmp_path / "boring.json")
    assert loaded.ids == IDS
    assert np.array_equal(loaded.weights.toarray(), graph.weights.toarray())
    turned = TaskSet(reversed(list(TASKS)))
    assert np.array_equal(loaded.align(turned).weights.toarray(), graph.weights.toarray()[::-1, ::-1])


def test_votes_become_shares():
    graph = Interestingness.from_selections(["a", "b"], [[[1], []], [[1], [0]]])
    assert graph.weights.toarray().tolist() == [[0, 0.5], [1, 0]]


def test_a_bad_matrix_or_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="have the shape"):
        Interestingness.from_judgments(IDS, np.ones((3, 4)))
    with pytest.raises(ValueError, match="must lie in"):
        Interestingness.from_judgments(IDS, np.full((4, 4), 2.0))
    with pytest.raises(ValueError, match="weighs nan"):
        Interestingness.from_judgments(IDS, np.full((4, 4), np.nan))
    path = tmp_path / "boring.json"
    Interestingness.from_judgments(IDS, np.ones((4, 4))).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"kind": "learning_connectivity"}))
    with pytest.raises(ValueError, match="'interestingness' is needed"):
        Interestingness.load(path)


def test_a_graph_over_other_tasks_is_refused_whatever_the_method():
    graph = Interestingness.from_judgments(["a", "b"], np.ones((2, 2)))
    with pytest.raises(ValueError, match="has no task 'wood'"):
        Curriculum(TASKS, interestingness=graph, method="unif")
