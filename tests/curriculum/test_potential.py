import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forethought.curriculum import potential
from forethought.curriculum.potential import DownstreamPotential


def brute_force(graph, weights, solved, length, discount):
    """D by listing every path (Section 4.1)."""
    size = len(weights)
    result = np.zeros(size)
    for source, target in itertools.permutations(range(size), 2):
        others = [node for node in range(size) if node not in (source, target)]
        best = 0.0
        for between in range(min(length, size - 1)):
            for middle in itertools.permutations(others, between):
                path = (source, *middle, target)
                value = 1.0
                for s, u in itertools.pairwise(path):
                    value *= discount * graph[s, u] * (not solved[u])
                best = max(best, value)
        result[source] += weights[target] * best
    return result


def random_graph(rng, size, density=0.4, ties=False):
    values = rng.integers(1, 6, (size, size)) / 5 if ties else rng.random((size, size))
    return values * (rng.random((size, size)) < density)


def make(graph, weights, length=2, discount=0.3):
    return DownstreamPotential(
        sparse.csr_array(graph), np.asarray(weights, float), max_path_length=length, path_discount=discount
    )


ENGINES = {"columns": (100, 100), "matrix": (0, 100), "rows": (0, 0)}


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    few, small = ENGINES[request.param]
    monkeypatch.setattr(potential, "FEW_TARGETS", few)
    monkeypatch.setattr(potential, "SMALL", small)
    return request.param


def test_a_chain_by_hand(engine):
    # a -0.5-> b -0.8-> c, only c weighted.
    graph = np.zeros((3, 3))
    graph[0, 1], graph[1, 2] = 0.5, 0.8
    values = make(graph, [0, 0, 1]).values
    assert values == pytest.approx([0.3 * 0.5 * 0.3 * 0.8, 0.3 * 0.8, 0])
    assert make(graph, [0, 0, 1], length=1).values == pytest.approx([0, 0.24, 0])


def test_a_strong_detour_beats_a_weak_direct_edge(engine):
    graph = np.zeros((3, 3))
    graph[0, 2], graph[0, 1], graph[1, 2] = 0.2, 1.0, 1.0
    assert make(graph, [0, 0, 1], discount=0.5).values[0] == pytest.approx(0.25)
    assert make(graph, [0, 0, 1], discount=0.3).values[0] == pytest.approx(0.09)
    assert make(graph, [0, 0, 1], discount=0.1).values[0] == pytest.approx(0.02)


def test_solved_tasks_end_paths_but_may_begin_them(engine):
    graph = np.zeros((3, 3))
    graph[0, 1], graph[1, 2] = 1.0, 1.0
    chain = make(graph, [0, 1, 1], discount=1.0)
    assert chain.values == pytest.approx([2, 1, 0])
    chain.update(np.array([1]), np.array([0, 0.9, 0]), 0.9)
    assert chain.values == pytest.approx([0, 1, 0])
    chain.update(np.array([1]), np.array([0, 0.89, 0]), 0.9)
    assert chain.values == pytest.approx([2, 1, 0])
    chain.update(np.array([2]), np.array([0, 0.89, 1.0]), 0.9)
    assert chain.values == pytest.approx([1, 0, 0])


def test_a_task_gives_nothing_to_itself(engine):
    graph = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert make(graph, [1, 0], length=5, discount=1.0).values == pytest.approx([0, 1])


@pytest.mark.parametrize("length", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_equals_listing_all_paths(engine, length, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 6)
    weights = rng.random(6) * (rng.random(6) < 0.7)
    solved = rng.random(6) < 0.3
    found = make(graph, weights, length, 0.6)
    found.update(np.arange(6), solved.astype(float), 0.9)
    assert found.values == pytest.approx(brute_force(graph, weights, solved, length, 0.6), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    engine_name=st.sampled_from(list(ENGINES)),
    length=st.sampled_from([1, 2, 3, 12]),
    ties=st.booleans(),
    flips=st.lists(st.sets(st.integers(0, 11), min_size=1, max_size=4), min_size=1, max_size=12),
)
def test_crossings_both_ways_leave_what_a_fresh_start_gives(seed, engine_name, length, ties, flips):
    few, small = ENGINES[engine_name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(potential, "FEW_TARGETS", few)
        patch.setattr(potential, "SMALL", small)
        rng = np.random.default_rng(seed)
        graph, weights = random_graph(rng, 12, 0.3, ties), rng.random(12) * (rng.random(12) < 0.8)
        kept = make(graph, weights, length)
        rates = np.zeros(12)
        for flip in flips:
            tasks = np.array(sorted(flip))
            rates[tasks] = 1.0 - rates[tasks]
            assert kept.update(tasks, rates, 0.9)
            fresh = make(graph, weights, length)
            fresh.refresh(rates, 0.9)
            # Bit for bit: a resumed run computes D anew.
            assert np.array_equal(kept.values, fresh.values)


def test_the_three_ways_agree_on_a_larger_graph(monkeypatch):
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 60, 0.1)
    weights = rng.random(60)
    rates = (rng.random(60) < 0.3).astype(float)
    found = []
    for few, small in ENGINES.values():
        monkeypatch.setattr(potential, "FEW_TARGETS", few)
        monkeypatch.setattr(potential, "SMALL", small)
        kept = make(graph, weights, 3)
        kept.update(np.arange(60), rates, 0.9)
        found.append(kept.values)
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    assert found[0] == pytest.approx(found[2], abs=1e-12)


def test_work_in_pieces_equals_work_at_once(monkeypatch):
    rng = np.random.default_rng(7)
    graph, weights = random_graph(rng, 40, 0.2), rng.random(40)
    monkeypatch.setattr(potential, "FEW_TARGETS", 0)
    monkeypatch.setattr(potential, "SMALL", 0)
    whole = make(graph, weights).values
    monkeypatch.setattr(potential, "_CHUNK", 50)
    assert np.array_equal(make(graph, weights).values, whole)


def test_nothing_is_computed_without_a_crossing():
    graph = random_graph(np.random.default_rng(0), 12)
    kept = make(graph, np.ones(12))
    before = kept.values
    assert not kept.update(np.arange(12), np.full(12, 0.89), 0.9)
    assert kept.values is before
