"""Every formula against numbers worked out by hand or a slow reference."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from forethought.experiments.statistics import (
    area_under_curve,
    coverage,
    iqm,
    mean,
    paired_difference,
    performance_profile,
    probability_of_improvement,
    shared_coverage,
    steps_to,
    stratified_bootstrap,
)


def column(*values):
    return np.array(values, dtype=np.float64)


def test_the_interquartile_mean_drops_a_quarter_at_each_end():
    assert iqm(column(9, 1, 2, 3, 100)) == pytest.approx((2 + 3 + 9) / 3)
    assert iqm(column(0, 1, 2, 3, 4, 5, 6, 70)) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert iqm(column(1, 2, 6)) == pytest.approx(3)
    scores = np.random.default_rng(0).normal(size=(4, 23))
    np.testing.assert_allclose(iqm(scores), trim_mean(scores, 0.25, axis=1))
    with pytest.raises(ValueError, match="at least one"):
        iqm(column())


def test_the_bootstrap_agrees_with_all_resamples_of_three_runs():
    """With three runs there are 27 equally probable resamples, so the quantiles are known."""
    scores = column(0.0, 1.0, 5.0)
    means = sorted(np.mean(drawn) for drawn in itertools.product(scores, repeat=3))
    found = stratified_bootstrap([scores], mean, confidence=0.8, resamples=20_000)
    assert found.value == pytest.approx(2)
    # 2.7 of the 27 resamples lie beyond each end.
    assert (found.low, found.high) == pytest.approx((means[2], means[24]))


def test_strata_are_resampled_apart_and_what_one_run_was_measured_on_stays_together():
    apart = stratified_bootstrap([column(1, 1, 1), column(3, 3)], mean)
    assert (apart.value, apart.low, apart.high) == pytest.approx((9 / 5, 9 / 5, 9 / 5))
    # Each run's goals sum to 1: resampled as runs, the mean cannot move; resampled goal by goal, it would.
    together = stratified_bootstrap([np.array([[0.0, 1.0], [1.0, 0.0], [0.3, 0.7]])], mean)
    assert (together.value, together.low, together.high) == pytest.approx((0.5, 0.5, 0.5))


def test_five_runs_make_intervals_that_are_too_narrow_as_said():
    rng = np.random.default_rng(1)
    trials = 600
    covered = 0
    for _ in range(trials):
        found = stratified_bootstrap([rng.normal(size=5)], mean, resamples=400)
        covered += found.low <= 0 <= found.high
    assert covered / trials == pytest.approx(0.84, abs=0.04)


def test_a_paired_difference_ignores_what_the_pairs_have_in_common():
    common = column(0.1, 0.5, 0.9)
    found = paired_difference([common + 0.05], [common])
    assert (found.value, found.low, found.high) == pytest.approx((0.05, 0.05, 0.05))
    two = paired_difference([column(1, 0), column(0.5)], [column(0, 0), column(0)])
    assert two.value == pytest.approx((1 + 0 + 0.5) / 3)
    assert two.low < two.value < two.high


def test_the_probability_of_improvement_is_mann_whitneys():
    first, second = column(0.1, 0.4, 0.4, 0.9), column(0.2, 0.4, 0.1, 0.0)
    wins = sum((a > b) + 0.5 * (a == b) for a in first for b in second) / 16
    assert wins == mannwhitneyu(first, second).statistic / 16
    found = probability_of_improvement([first], [second])
    assert found.value == pytest.approx(wins)
    assert 0 <= found.low < found.value < found.high <= 1
    sure = probability_of_improvement([first, first], [first - 1, first + 1])
    assert (sure.value, sure.low, sure.high) == pytest.approx((0.5, 0.5, 0.5))
    # Runs that equal their partners do so in every resample of pairs.
    tied = probability_of_improvement([first], [first])
    assert (tied.value, tied.low, tied.high) == pytest.approx((0.5, 0.5, 0.5))
    goals = probability_of_improvement([np.array([[1.0, 0.0]])], [np.array([[0.0, 0.0]])])
    assert goals.value == pytest.approx(0.75)


def test_improvement_by_all_resamples_of_two_pairs():
    """Four resamples of two pairs: with first = (1, 2), second = (0, 3) they give 1/2, 1, 0, 1/2."""
    values = []
    for i, j in itertools.product(range(2), repeat=2):
        a, b = np.array([1, 2])[[i, j]], np.array([0, 3])[[i, j]]
        values.append(np.mean([[x > y for y in b] for x in a]))
    assert sorted(values) == [0, 0.5, 0.5, 1]
    found = probability_of_improvement([column(1, 2)], [column(0, 3)], confidence=0.9)
    assert (found.low, found.value, found.high) == (0, 0.5, 1)


def test_curves():
    steps, rates = np.array([0, 10, 40]), column(0.0, 0.5, 1.0)
    assert steps_to(steps, rates) == 10
    assert steps_to(steps, rates, 0.51) == 40
    assert steps_to(steps, rates - 0.6, 0.5) == math.inf
    assert area_under_curve(steps, rates) == pytest.approx((10 * 0.25 + 30 * 0.75) / 40)
    assert area_under_curve(steps[:1], rates[2:]) == 1
    with pytest.raises(ValueError, match="ascend"):
        area_under_curve(np.array([0, 0]), column(0, 1))
    with pytest.raises(ValueError, match="one rate a step"):
        steps_to(steps, rates[:2])


def test_profiles_and_coverage_count_strictly():
    rates = column(0.0, 0.0, 0.5, 1.0)
    np.testing.assert_allclose(performance_profile(rates, column(0, 0.25, 0.5, 1)), [0.5, 0.5, 0.25, 0])
    np.testing.assert_allclose(performance_profile(np.stack([rates, rates + 1]), column(0)), [[0.5], [1]])
    assert coverage(rates) == 0.5


def test_what_two_runs_share_is_seen_from_either_side():
    first, second = column(0.1, 0.2, 0.0, 0.0), column(0.0, 0.3, 0.4, 0.0)
    assert shared_coverage(first, second) == 0.5
    assert shared_coverage(column(0.1, 0, 0, 0), second) == 0
    assert shared_coverage(second, column(0.1, 0.1, 0.1, 0.0)) == 1
    assert math.isnan(shared_coverage(np.zeros(4), second))
    with pytest.raises(ValueError, match="the same goals"):
        shared_coverage(first, second[:3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stratified_bootstrap([]), "at least one stratum"),
        (lambda: stratified_bootstrap([column()]), "a run in each"),
        (lambda: stratified_bootstrap([column(1, math.nan)]), "not finite"),
        (lambda: stratified_bootstrap([column(1)], resamples=0), "resamples is 0"),
        (lambda: stratified_bootstrap([column(1)], confidence=1.0), "confidence is 1.0"),
        (lambda: paired_difference([column(1, 2)], [column(1)]), "must have the same"),
        (lambda: probability_of_improvement([column(1)], [column(1), column(2)]), "must have the same"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
