import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.judging.agreement import agreement, agreements, cohens_kappa


def of(yes, asked):
    return agreement(np.array(yes), np.array(asked), np.ones(len(yes), np.int64))


def test_alpha_of_the_published_two_observer_example():
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section A: ten units, alpha 0.095.
    meg, owen = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    found = of([a + b for a, b in zip(meg, owen, strict=True)], [2] * 10)
    assert found.alpha == pytest.approx(1 - 19 * 4 / (14 * 6))
    assert found.alpha == pytest.approx(0.095, abs=5e-4)
    assert found.observed == pytest.approx(0.6)
    assert found.positive == pytest.approx(1 / 3)


def reference_alpha(units):
    """Observed and expected disagreement straight from the definition, over all ordered pairs of votes."""
    units = [unit for unit in units if len(unit) >= 2]
    votes = [vote for unit in units for vote in unit]
    observed = sum((a != b) / (len(unit) - 1) for unit in units for a, b in itertools.permutations(unit, 2)) / len(
        votes
    )
    pairs = list(itertools.permutations(votes, 2))
    expected = sum(a != b for a, b in pairs) / len(pairs)
    return 1 - observed / expected if expected else None


@settings(max_examples=60)
@given(st.lists(st.lists(st.booleans(), min_size=0, max_size=4), min_size=1, max_size=8))
def test_alpha_follows_its_definition_with_missing_votes(units):
    found = of([sum(unit) for unit in units], [len(unit) for unit in units])
    if not any(len(unit) >= 2 for unit in units):
        assert found.alpha is None
        return
    expected = reference_alpha(units)
    assert found.alpha == (None if expected is None else pytest.approx(expected))


def test_alpha_equals_fleiss_kappa_for_many_units():
    rng = np.random.default_rng(0)
    share = rng.beta(0.3, 1.0, size=20_000)
    yes = rng.binomial(5, share)
    p = yes.mean() / 5
    per_unit = (yes * (yes - 1) + (5 - yes) * (4 - yes)) / 20
    fleiss = (per_unit.mean() - (p**2 + (1 - p) ** 2)) / (1 - p**2 - (1 - p) ** 2)
    assert of(yes, np.full(20_000, 5)).alpha == pytest.approx(fleiss, abs=1e-4)


def test_votes_without_any_variety_have_no_alpha():
    assert of([0, 0], [3, 3]).alpha is None
    assert of([0, 0], [3, 3]).positive is None
    assert of([3, 0], [3, 3]).alpha == 1.0
    assert of([1], [1]).observed is None


def test_kappa_by_hand():
    # 50 pairs: both yes 20, only first 5, only second 10, neither 15: agreement 0.7, by chance 0.5.
    assert cohens_kappa(np.array(20.0), np.array(25.0), np.array(30.0), 50.0) == pytest.approx(0.4)
    assert np.isnan(cohens_kappa(np.array(0.0), np.array(0.0), np.array(0.0), 50.0))


def test_agreement_of_a_connectivity_graph():
    graph = LearningConnectivity.from_selections("abc", [[[1], [0], []], [[1], [], []]])
    found = agreements(graph)["connectivity"]
    # Six pairs with two votes: b -> a twice yes, a -> b once, the rest never.
    assert found.pairs == 6
    assert found.edges_per_repetition == (2, 1)
    assert found.observed == pytest.approx(5 / 6)
    assert found.positive == pytest.approx(2 / 3)
    assert found.alpha == pytest.approx(1 - 11 * 1 / (9 * 3))
    assert found.kappa is not None
    assert found.kappa[0, 1] == pytest.approx((5 / 6 - 11 / 18) / (1 - 11 / 18))


def test_pairs_that_were_not_asked_are_not_votes():
    asked = [[0, 2, 0], [2, 0, 0], [1, 0, 0]]
    graph = LearningConnectivity.from_selections("abc", [[[1], [0], []], [[1], [], []]], asked=asked)
    found = agreements(graph)["connectivity"]
    # a -> b: 1 of 2, b -> a: 2 of 2; c -> a has a single vote and says nothing.
    assert found.pairs == 2
    assert found.observed == pytest.approx(0.5)
    assert found.alpha == pytest.approx(1 - 3 * 1 / (1 * 3))
    assert found.kappa is None


def test_agreement_of_evidence_is_given_for_edges_and_for_from_scratch():
    graph = FeasibilityEvidence.from_selections("abc", [[[], [0], [0, 1]], [[], [], [0]]])
    found = agreements(graph)
    assert found["from scratch"].alpha == pytest.approx(1 - 5 * 1 / (3 * 3))
    assert found["from scratch"].edges_per_repetition == (1, 2)
    assert found["evidence"].edges_per_repetition == (3, 1)
    assert found["evidence"].positive == pytest.approx(0.5)


def test_a_restricted_evidence_graph_counts_only_judgments_that_are_left():
    graph = FeasibilityEvidence.from_selections("abc", [[[], [0], [0, 1]], [[], [0], [1]], [[], [2], [0]]])
    found = agreements(graph.restrict(["a", "b"]))
    # The third judgment of b rested on c alone: two votes on a -> b are left, three on b -> a.
    assert found["evidence"].pairs == 2
    assert found["evidence"].alpha == 1.0
    assert found["evidence"].kappa is None


def test_weights_alone_and_a_single_repetition_have_no_agreement():
    assert agreements(LearningConnectivity.from_weights("ab", [[0, 1], [0, 0]])) == {}
    assert agreements(LearningConnectivity.from_selections("ab", [[[], [0]]])) == {}
