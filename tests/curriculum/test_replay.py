import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.curriculum.replay import rank_weights, surprise
from forethought.tasks import Task, TaskSet

TASKS = TaskSet([Task(f"t{number}", "x") for number in range(4)])


def test_surprise_is_the_mean_error_over_outcomes_of_zero_and_one():
    for successes, episodes, expected in ((3, 4, 0.5), (0, 5, 0.9), (5, 5, 0.9), (2, 8, 0.25)):
        outcomes = np.array([1.0] * successes + [0.0] * (episodes - successes))
        rate = np.array([successes / episodes])
        assert surprise(rate, np.array([expected])) == pytest.approx(np.abs(outcomes - expected).mean())


def test_ranks_by_hand():
    # Ranks 2, 1, 3 at beta = 1/2: (1/2)^2, 1, (1/3)^2. The last task is not ranked, whatever its score.
    weights = rank_weights(np.array([0.3, 0.7, 0.1, 0.9]), np.array([True, True, True, False]), 0.5)
    assert weights == pytest.approx([1 / 4, 1, 1 / 9, 0])


def test_temperature_is_an_exponent_and_no_divisor():
    hot, cold = (rank_weights(np.array([0.2, 0.1]), np.ones(2, bool), beta) for beta in (1.0, 0.1))
    assert hot == pytest.approx([1, 0.5])
    assert cold == pytest.approx([1, 0.5**10])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7), st.sampled_from([0.1, 0.5, 1.0, 2.0]))
def test_ties_are_the_mean_over_all_ways_to_break_them(levels, temperature):
    scores = np.array(levels, np.float64)
    rng = np.random.default_rng(0)
    expected = np.zeros(scores.size)
    for group in set(levels):
        above = int((scores > group).sum())
        ranks = above + 1 + np.arange(int((scores == group).sum()))
        expected[scores == group] = np.mean((1 / ranks) ** (1 / temperature))
    order = rng.permutation(scores.size)
    found = rank_weights(scores[order], np.ones(scores.size, bool), temperature)
    assert found == pytest.approx(expected[order])
    assert found.sum() == pytest.approx(np.sum((1 / np.arange(1, scores.size + 1)) ** (1 / temperature)))


@pytest.mark.parametrize("levels", [3, 40, 10**6])
def test_with_many_tasks_only_what_rounding_hides_differs(levels):
    rng = np.random.default_rng(levels)
    scores = rng.integers(0, levels, 600) / levels
    found = rank_weights(scores, np.ones(600, bool), 0.1)
    order = np.argsort(-scores)
    full = np.arange(1.0, 601) ** -10
    expected = np.zeros(600)
    for level in np.unique(scores):
        expected[scores == level] = full[scores[order] == level].mean()
    assert np.abs(found - expected).sum() < 2.0**-58
    assert found.min() > 0


def test_nothing_seen_ranks_nothing():
    assert rank_weights(np.ones(3), np.zeros(3, bool), 0.1).tolist() == [0, 0, 0]


def test_a_decision_by_hand():
    config = CurriculumConfig(warmup=0, rank_temperature=1.0, staleness_share=0.25, exploration=0.2)
    curriculum = Curriculum(TASKS, method="plr", config=config)
    curriculum.update([0, 1], [0.5, 0.0])
    curriculum.update([1, 2], [1.0, 0.25])
    curriculum.update([], [])
    # Surprise 0.5 (from 0 to 0.5), 1 (from 0 to 1), 0.25: ranks 2, 1, 3. Unobserved for 3, 2, 2 iterations. t3 is new.
    assert curriculum.state_dict()["surprise"] == pytest.approx([0.5, 1.0, 0.25, 0])
    ranked = np.array([1 / 2, 1, 1 / 3, 0]) / (1 / 2 + 1 + 1 / 3)
    stale = np.array([3, 2, 2, 0]) / 7
    assert curriculum.probabilities == pytest.approx(0.8 * (0.75 * ranked + 0.25 * stale) + 0.2 / 4)


def test_the_latest_surprise_replaces_the_one_before():
    curriculum = Curriculum(TASKS, method="plr", config=CurriculumConfig(smoothing=0.5))
    for rate in (1.0, 0.0, 0.0):
        curriculum.update([0], [rate])
    # Expected before: 0, 1, 1/2.
    assert curriculum.state_dict()["surprise"][0] == pytest.approx(0.5)


def test_importance_multiplies_the_priorities():
    config = CurriculumConfig(warmup=0, rank_temperature=1.0, staleness_share=0.0, exploration=0.0)
    curriculum = Curriculum(TASKS, method="plr", weights=[1, 3, 0, 0], config=config)
    curriculum.update([0, 1, 2], [0.9, 0.8, 1.0])
    assert curriculum.probabilities == pytest.approx(np.array([1 / 2, 3 / 3, 0, 0]) / 1.5)


def test_a_state_with_an_impossible_surprise_is_refused():
    curriculum = Curriculum(TASKS, method="plr")
    state = curriculum.state_dict()
    for broken in (np.full(4, 1.5), np.full(4, np.nan), np.zeros(3)):
        with pytest.raises(ValueError, match="surprise"):
            curriculum.load_state_dict(state | {"surprise": broken})
