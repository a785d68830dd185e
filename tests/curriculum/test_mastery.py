import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forethought.curriculum import Curriculum, CurriculumConfig, mastery
from forethought.curriculum.mastery import prerequisite_graph, topological_order
from forethought.graphs import LearningConnectivity
from forethought.tasks import Task, TaskSet


def make_tasks(size):
    return TaskSet([Task(f"t{number}", "x") for number in range(size)])


def make(weights, **settings):
    tasks = make_tasks(len(weights))
    connectivity = LearningConnectivity.from_weights(tasks.ids, np.asarray(weights, np.float64))
    settings = {"warmup": 0, "exploration": 0.0, **settings}
    return Curriculum(tasks, connectivity=connectivity, method="mastering-rate", config=CurriculumConfig(**settings))


def edges(graph):
    return {(int(s), int(t)) for s, t in zip(*graph.nonzero(), strict=True)}


class Reference:
    """The authors' procedure with plain loops."""

    def __init__(self, size, arrows, config):
        self.size, self.config = size, config
        self.before = {m: sorted(s for s, t in arrows if t == m) for m in range(size)}
        self.after = {m: sorted(t for s, t in arrows if s == m) for m in range(size)}

    def ancestors(self, m):
        return set(self.before[m]).union(*(self.ancestors(s) for s in self.before[m]))

    def attention(self, rates, progress):
        c = self.config
        mastery_of = [min(p / c.solved_threshold, 1.0) for p in rates]
        most = max(abs(x) for x in progress)
        pre = []
        for m in range(self.size):
            ready = min((mastery_of[a] for a in self.ancestors(m)), default=1.0)
            done = min((mastery_of[t] for t in self.after[m]), default=0.0)
            lp = abs(progress[m]) / most if most else 0.0
            state = (1 - c.mastery_potential) * lp + c.mastery_potential * (1 - mastery_of[m])
            pre.append(ready**c.mastery_power * state * (1 - done))
        attention, left = list(pre), list(range(self.size))
        while left:
            m = next(m for m in left if not set(self.after[m]) & set(left))
            left.remove(m)
            for share, others in ((c.predecessor_share, self.before[m]), (c.successor_share, self.after[m])):
                given_away = attention[m] * share
                attention[m] -= given_away
                for other in others:
                    attention[other] += given_away / len(others)
        return np.array(attention)


def test_a_chain_by_hand():
    # a -> b -> c, mastery 1, 1/2, 0; gamma = 1: what is left to master; p = 2.
    config = {"mastery_potential": 1.0, "mastery_power": 2.0, "solved_threshold": 0.8, "smoothing": 1.0}
    curriculum = make([[0, 1, 0], [0, 0, 1], [0, 0, 0]], predecessor_share=0.2, successor_share=0.0, **config)
    curriculum.update([0, 1], [0.8, 0.4])
    # Before handing over: a 1 * 0 * (1 - 1/2), b 1 * 1/2 * (1 - 0), c (1/2)^2 * 1 * (1 - 0).
    # c keeps 0.2 and hands 0.05 to b; b keeps 0.8 * 0.55 and hands 0.11 to a, who has nobody to hand to but gives too.
    assert curriculum.probabilities == pytest.approx(np.array([0.8 * 0.11, 0.44, 0.2]) / (0.088 + 0.44 + 0.2))


def test_nothing_is_trained_before_its_prerequisites_show():
    curriculum = make([[0, 1, 0], [0, 0, 1], [0, 0, 0]], predecessor_share=0.0, successor_share=0.0)
    assert curriculum.probabilities.tolist() == [1, 0, 0]
    curriculum.update([0], [0.9])
    # t0 has all the progress and nothing left to master, t1 the other way round.
    assert curriculum.probabilities.tolist() == [0.5, 0.5, 0]


def test_a_graph_without_circles_stays_as_it_is():
    rng = np.random.default_rng(2)
    weights = np.triu(rng.random((20, 20)), 1)
    assert edges(prerequisite_graph(sparse.csr_array(weights), 0.5)) == {
        (s, t) for s in range(20) for t in range(20) if weights[s, t] >= 0.5
    }


def test_circles_are_cut_by_who_gives_more():
    # 0 and 1 help each other, 0 more; 1 and 2 as much as each other; 2 leads out to 3, which is in no circle.
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 0], weights[1, 2], weights[2, 1], weights[2, 3] = 1.0, 0.6, 0.8, 0.8, 0.5
    assert edges(prerequisite_graph(sparse.csr_array(weights), 0.5)) == {(0, 1), (2, 1), (2, 3)}


def test_a_share_of_votes_at_the_threshold_counts():
    weights = np.array([[0, 1 - 0.4], [0, 0]])
    assert edges(prerequisite_graph(sparse.csr_array(weights), 0.6)) == {(0, 1)}
    assert edges(prerequisite_graph(sparse.csr_array(weights), 0.61)) == set()


@given(st.integers(0, 10**6))
def test_what_is_kept_has_no_circles(seed):
    rng = np.random.default_rng(seed)
    graph = prerequisite_graph(sparse.csr_array(rng.random((15, 15)) * (rng.random((15, 15)) < 0.4)), 0.4)
    order = topological_order(graph).tolist()
    assert sorted(order) == list(range(15))
    place = {task: at for at, task in enumerate(order)}
    assert all(place[s] < place[t] for s, t in edges(graph))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_attention_equals_the_reference_whatever_the_size(seed, small):
    rng = np.random.default_rng(seed)
    size = 9
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) < 0.5), 1)
    names = rng.permutation(size)
    weights = weights[np.ix_(names, names)]
    config = CurriculumConfig(warmup=0, exploration=0.0)
    reference = Reference(size, {(s, t) for s in range(size) for t in range(size) if weights[s, t] >= 0.5}, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mastery, "SMALL", size if small else 0)
        curriculum = make(weights)
        for _ in range(6):
            seen = np.unique(rng.integers(0, size, 4))
            curriculum.update(seen, rng.choice([0.0, 0.3, 0.9, 1.0], seen.size))
            expected = reference.attention(curriculum.success_rate, curriculum.learning_progress)
            expected = expected / expected.sum() if expected.sum() > 0 else np.full(size, 1 / size)
            assert curriculum.probabilities == pytest.approx(expected, abs=1e-12)
        fresh = make(weights)
        fresh.load_state_dict(curriculum.state_dict())
        assert np.array_equal(fresh.probabilities, curriculum.probabilities)
