import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forethought.curriculum.feasibility import Feasibility
from forethought.curriculum.scores import (
    distribution,
    feasibility_signal,
    intermediate_signal,
    learnability_signal,
    normalisers,
    progress_signal,
    valued,
)


def test_progress_signal_by_hand():
    progress = np.array([0.04, -0.09, 0.0])
    assert progress_signal(progress, 0.5, "absolute") == pytest.approx([0.2, 0.3, 0])
    assert progress_signal(progress, 0.5, "positive") == pytest.approx([0.2, 0, 0])
    assert progress_signal(progress, 2.0, "absolute") == pytest.approx([0.0016, 0.0081, 0])


def test_thresholds_are_inclusive():
    rates = np.array([0.0, 0.05, 0.051, 0.1, 0.9, 0.91])
    assert feasibility_signal(rates, np.ones(6), 0.05).tolist() == [1, 1, 0, 0, 0, 0]
    assert intermediate_signal(rates).tolist() == [0, 0, 0, 1, 1, 0]


def test_learnability_by_hand():
    assert learnability_signal(np.array([0.0, 0.1, 0.5, 0.75, 1.0])) == pytest.approx([0, 0.09, 0.25, 0.1875, 0])


def test_normalised_by_its_own_mean_when_downstream_is_larger():
    active = np.array([True, True, False])
    by_weight, by_downstream = normalisers(active, np.array([0.1, 0.3, 0.6]), np.array([1.0, 3.0, 100.0]))
    assert (by_weight, by_downstream) == pytest.approx((1 / 0.2, 1 / 2.0))


def test_a_small_downstream_signal_is_not_blown_up():
    active = np.array([True, True])
    by_weight, by_downstream = normalisers(active, np.array([0.4, 0.6]), np.array([0.01, 0.0]))
    assert (by_weight, by_downstream) == pytest.approx((2.0, 2.0))


def test_zero_means_count_for_nothing():
    active = np.array([True, False])
    assert normalisers(active, np.array([0.0, 1.0]), np.array([0.0, 1.0])) == (0.0, 0.0)
    assert normalisers(active, np.array([0.0, 1.0]), np.array([0.5, 1.0])) == pytest.approx((0.0, 2.0))
    assert normalisers(~np.array([True, True]), np.ones(2), np.ones(2)) == (0.0, 0.0)


@given(st.integers(0, 10**6), st.floats(0, 3))
def test_score_equals_the_reference(seed, alpha):
    rng = np.random.default_rng(seed)
    signal, weights, downstream = (rng.random(9) * (rng.random(9) < 0.6) for _ in range(3))
    active = [m for m in range(9) if signal[m] > 0]
    expected = np.zeros(9)
    if active:
        mean_w = sum(weights[m] for m in active) / len(active)
        mean_d = sum(downstream[m] for m in active) / len(active)
        for m in active:
            worth = weights[m] / mean_w if mean_w > 0 else 0.0
            if max(mean_w, mean_d) > 0:
                worth += alpha * downstream[m] / max(mean_w, mean_d)
            expected[m] = signal[m] * worth
    assert valued(signal, weights, downstream, alpha) == pytest.approx(expected, abs=1e-12)
    assert valued(signal, weights, None, alpha) == pytest.approx(signal * weights)


def test_distribution_or_uniform():
    shares, positive = distribution(np.array([1.0, 3.0]))
    assert (shares.tolist(), positive) == ([0.25, 0.75], True)
    shares, positive = distribution(np.zeros(4))
    assert (shares.tolist(), positive) == ([0.25] * 4, False)


def make_feasibility():
    evidence = np.zeros((3, 3))
    evidence[0, 1], evidence[0, 2], evidence[1, 2] = 0.75, 0.5, 0.5
    return evidence, np.array([1.0, 0.25, 0.0])


def test_feasibility_by_hand():
    evidence, scratch = make_feasibility()
    f = Feasibility(sparse.csr_array(evidence), scratch)
    assert f.values.tolist() == [1.0, 0.25, 0.0]
    affected = f.update(np.array([0]), np.array([0.4, 0.0, 0.0]))
    assert affected.tolist() == [1, 2]
    assert f.values == pytest.approx([1.0, 0.25 + 0.3, 0.2])


@given(st.integers(0, 10**6))
def test_feasibility_updates_equal_the_full_sum(seed):
    rng = np.random.default_rng(seed)
    shares = rng.random((13, 12)) * (rng.random((13, 12)) < 0.4)
    shares /= np.maximum(shares.sum(axis=0), 1e-9)
    kept = Feasibility(sparse.csr_array(shares[:12]), shares[12])
    rates = np.zeros(12)
    for _ in range(4):
        changed = np.unique(rng.integers(0, 12, 3))
        rates[changed] = rng.random(changed.size)
        kept.update(changed, rates)
    assert kept.values == pytest.approx(shares[12] + rates @ shares[:12], abs=1e-12)
    fresh = Feasibility(sparse.csr_array(shares[:12]), shares[12])
    fresh.refresh(rates)
    assert np.array_equal(kept.values, fresh.values)
