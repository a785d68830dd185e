import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.curriculum.bandit import best_probabilities
from forethought.tasks import Task, TaskSet


def found(buffers):
    """The probabilities for buffers of any lengths."""
    places = max(2, *(len(buffer) for buffer in buffers))
    changes = np.array([[*buffer, *[-1.0] * (places - len(buffer))] for buffer in buffers])
    smallest = np.array([min(buffer, default=0.0) for buffer in buffers])
    largest = np.array([max(buffer, default=0.0) for buffer in buffers])
    return best_probabilities(changes, smallest, largest)


def by_enumeration(buffers):
    """The definition: every combination of draws, the ties shared."""
    result = np.zeros(len(buffers))
    combinations = list(itertools.product(*(buffer or [0.0] for buffer in buffers)))
    for drawn in combinations:
        best = np.array(drawn) == max(drawn)
        result[best] += 1 / best.sum()
    return result / len(combinations)


def test_two_tasks_by_hand():
    # The first wins with 0.5 always, with 0.1 only against 0; the second else.
    assert found([[0.5, 0.1], [0.0, 0.3]]) == pytest.approx([0.75, 0.25])


def test_ties_are_broken_at_random():
    assert found([[0.2], [0.2], [0.2, 0.1]]) == pytest.approx([5 / 12, 5 / 12, 2 / 12])


def test_no_change_anywhere_is_a_tie_of_all():
    assert found([[0.0, 0.0], [], [0.0]]) == pytest.approx([1 / 3] * 3)


def test_a_task_without_observations_wins_only_such_ties():
    assert found([[0.4, 0.0], []]) == pytest.approx([0.75, 0.25])


BUFFERS = st.lists(st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0]), max_size=3), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(BUFFERS)
def test_any_buffers_equal_the_enumeration(buffers):
    assert found(buffers) == pytest.approx(by_enumeration(buffers), abs=1e-12)


@pytest.mark.parametrize("count", [40, 4_000])
def test_many_ties_share_equally_and_sum_to_one(count):
    rng = np.random.default_rng(count)
    changes = rng.integers(0, 2, (count, 6)).astype(np.float64)
    probabilities = best_probabilities(changes, changes.min(axis=1), changes.max(axis=1))
    assert probabilities.sum() == pytest.approx(1, abs=1e-10)
    # Draws of 1 with chances c/6: simulate the definition.
    chances = changes.mean(axis=1)
    wins = np.zeros(count)
    for _ in range(4_000):
        drawn = np.flatnonzero(rng.random(count) < chances)
        wins[drawn] += 1 / max(drawn.size, 1)
    for level in range(7):
        group = np.isclose(chances, level / 6)
        if group.any():
            assert np.ptp(probabilities[group]) < 1e-12
            assert probabilities[group].sum() == pytest.approx(wins[group].sum() / 4_000, abs=0.03)


def test_beyond_enough_large_changes_nothing_counts():
    # 400 tasks change by different amounts or not at all, half and half: task i wins if none above it does.
    changes = np.zeros((400, 2))
    changes[:, 0] = np.linspace(0.9, 0.1, 400)
    probabilities = best_probabilities(changes, changes.min(axis=1), changes.max(axis=1))
    assert probabilities == pytest.approx(0.5 ** np.arange(1, 401), abs=1e-15)


def test_buffers_are_the_changes_between_the_observations_kept():
    tasks = TaskSet([Task("a", "x"), Task("b", "y")])
    config = CurriculumConfig(warmup=0, max_observations=3, exploration=0.0)
    curriculum = Curriculum(tasks, method="thompson", config=config)
    for a, b in ((0.5, 0.1), (0.6, 0.3), (0.6, 0.7)):
        curriculum.update([0, 1], [a, b])
    # The last two changes: a 0.1 and 0 (0.5 is forgotten), b 0.2 and 0.4.
    assert curriculum.probabilities == pytest.approx([0, 1])
    curriculum.update([1], [0.7])
    # b: 0.4 and 0.
    assert curriculum.probabilities == pytest.approx(by_enumeration([[0.1, 0.0], [0.4, 0.0]]))


def test_rounding_makes_no_ties_unequal():
    tasks = TaskSet([Task("a", "x"), Task("b", "y")])
    curriculum = Curriculum(tasks, method="thompson", config=CurriculumConfig(warmup=0, max_observations=2))
    curriculum.update([0, 1], [0.1, 0.6])
    curriculum.update([0, 1], [0.3, 0.8])
    assert 0.3 - 0.1 != 0.8 - 0.6
    assert curriculum.probabilities == pytest.approx([0.5, 0.5])
