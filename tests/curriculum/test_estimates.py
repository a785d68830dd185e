import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.curriculum.estimates import Estimates


def make(size=1, smoothing=0.3, max_observations=7, lookback=12):
    return Estimates(size, smoothing=smoothing, max_observations=max_observations, lookback=lookback)


def observe(estimates, iteration, **rates):
    tasks = np.array([int(name[1:]) for name in rates], np.int64)
    estimates.observe(tasks, np.array(list(rates.values()), np.float64), iteration)


class Reference:
    """One task's estimates with plain lists (Appendix A.2)."""

    def __init__(self, smoothing, points, lookback):
        self.smoothing, self.points, self.lookback = smoothing, points, lookback
        self.history = [(-1, 0.0)]
        self.rate, self.slope = 0.0, 0.0

    def observe(self, iteration, rate):
        first = len(self.history) == 1
        self.rate = rate if first else (1 - self.smoothing) * self.rate + self.smoothing * rate
        earlier = [p for p in self.history[-(self.points - 1) :] if p[0] >= iteration - self.lookback]
        if not earlier:
            earlier = [(iteration - self.lookback, self.history[-1][1])]
        fit = [*earlier, (iteration, rate)]
        self.history.append((iteration, rate))
        self.slope = np.polynomial.polynomial.polyfit([x for x, _ in fit], [y for _, y in fit], 1)[1]


def test_the_first_observation_replaces_and_the_next_ones_average():
    estimates = make()
    observe(estimates, 0, t0=0.5)
    assert estimates.success_rate[0] == 0.5
    observe(estimates, 1, t0=1.0)
    assert estimates.success_rate[0] == pytest.approx(0.7 * 0.5 + 0.3 * 1.0)


def test_a_first_observation_of_zero_is_a_first_observation_too():
    estimates = make()
    observe(estimates, 0, t0=0.0)
    observe(estimates, 1, t0=1.0)
    assert estimates.success_rate[0] == pytest.approx(0.3)


def test_the_pseudo_observation_makes_the_first_slope():
    estimates = make()
    observe(estimates, 0, t0=0.5)
    assert estimates.learning_progress[0] == pytest.approx(0.5)
    estimates = make()
    observe(estimates, 3, t0=0.8)
    assert estimates.learning_progress[0] == pytest.approx(0.2)


def test_slope_of_three_points_by_hand():
    # (-1, 0), (0, 0.2), (2, 0.9): means 1/3 and 11/30; 4.2/3 over 14/3.
    estimates = make()
    observe(estimates, 0, t0=0.2)
    observe(estimates, 2, t0=0.9)
    x, y = np.array([-1, 0, 2]), np.array([0, 0.2, 0.9])
    by_hand = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    assert by_hand == pytest.approx(0.307142857142857)
    assert estimates.learning_progress[0] == pytest.approx(by_hand)


def test_an_old_point_enters_at_the_start_of_the_lookback():
    estimates = make()
    observe(estimates, 0, t0=0.4)
    observe(estimates, 50, t0=1.0)
    assert estimates.learning_progress[0] == pytest.approx(0.6 / 12)
    estimates = make()
    observe(estimates, 40, t0=0.6)
    assert estimates.learning_progress[0] == pytest.approx(0.6 / 12)


def test_a_point_exactly_at_the_lookback_counts():
    estimates = make()
    observe(estimates, 0, t0=0.5)
    observe(estimates, 12, t0=1.0)
    assert estimates.learning_progress[0] == pytest.approx(0.5 / 12)


def test_seven_points_at_most_enter():
    estimates = make()
    for iteration in range(6):
        observe(estimates, iteration, t0=0.0)
    observe(estimates, 6, t0=0.7)
    x, y = np.arange(7.0), np.array([0, 0, 0, 0, 0, 0, 0.7])
    assert estimates.learning_progress[0] == pytest.approx(np.polyfit(x, y, 1)[0])


def test_rounding_alone_is_not_progress():
    estimates = make()
    for iteration in range(30):
        observe(estimates, iteration, t0=0.1 + 0.2)
    assert estimates.learning_progress[0] == 0.0


def test_others_are_left_alone():
    estimates = make(3)
    observe(estimates, 0, t0=0.3, t2=0.6)
    before = {name: array.copy() for name, array in estimates.arrays().items()}
    observe(estimates, 1, t0=0.9)
    for name, array in estimates.arrays().items():
        assert np.array_equal(array[1:], before[name][1:])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.floats(0, 1)), min_size=1, max_size=25),
    st.integers(2, 9),
    st.integers(1, 15),
)
def test_any_history_equals_the_reference(steps, points, lookback):
    estimates, reference = make(2, 0.3, points, lookback), Reference(0.3, points, lookback)
    iteration = -1
    for gap, rate in steps:
        iteration += gap
        observe(estimates, iteration, t1=rate)
        reference.observe(iteration, rate)
        assert estimates.success_rate[1] == pytest.approx(reference.rate, abs=1e-12)
        assert estimates.learning_progress[1] == pytest.approx(reference.slope, abs=2e-9)
