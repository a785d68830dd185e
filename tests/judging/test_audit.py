import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forethought.craftax import shipped
from forethought.graphs import FeasibilityEvidence, LearningConnectivity, Provenance
from forethought.judging.audit import audit
from forethought.judging.audit_text import audit_text, comparison_text
from forethought.judging.comparison import compare
from forethought.judging.structure import find_cycles, reaches_weighted
from forethought.tasks import Task, TaskSet

SIZE = 6
edges = st.sets(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).filter(lambda e: e[0] != e[1]), max_size=12
)


def matrix(pairs, values=None):
    dense = np.zeros((SIZE, SIZE))
    for i, (s, t) in enumerate(sorted(pairs)):
        dense[s, t] = 1.0 if values is None else values[i % len(values)]
    return dense


def simple_paths(dense, most):
    """All paths of at most `most` edges, as tuples of tasks; a cycle's first task ends it too."""
    found, frontier = [], [(task,) for task in range(len(dense))]
    for _ in range(most):
        frontier = [(*p, t) for p in frontier for t in np.flatnonzero(dense[p[-1]]).tolist() if t not in p[1:]]
        found += frontier
        frontier = [p for p in frontier if p[0] != p[-1]]
    return found


@settings(max_examples=60)
@given(edges, st.sets(st.integers(0, SIZE - 1), min_size=1), st.integers(1, 4))
def test_reaching_a_weighted_task_needs_a_path_to_another_one(pairs, targets, length):
    dense = matrix(pairs)
    weighted = np.isin(np.arange(SIZE), list(targets))
    expected = np.zeros(SIZE, bool)
    for path in simple_paths(dense, length):
        expected[path[0]] |= bool(weighted[path[-1]]) and path[0] != path[-1]
    assert reaches_weighted(sparse.csr_array(dense), weighted, length).tolist() == expected.tolist()


@settings(max_examples=60)
@given(edges, st.lists(st.sampled_from([0.2, 0.5, 1.0]), min_size=1, max_size=4))
def test_the_strongest_cycle_is_the_best_and_shortest_of_all(pairs, values):
    dense = matrix(pairs, values)
    loops = [p for p in simple_paths(dense, SIZE) if p[0] == p[-1]]
    found = find_cycles(sparse.csr_array(dense))
    assert bool(found.groups) == bool(loops)
    if not loops:
        return
    weakest = {p: min(dense[s, t] for s, t in itertools.pairwise(p)) for p in loops}
    best = max(weakest.values())
    assert found.weakest_edge == best
    loop = (*found.strongest, found.strongest[0])
    assert weakest[loop] == best
    assert len(loop) == min(len(p) for p, w in weakest.items() if w == best)
    assert {t for group in found.groups for t in group} == {t for p in loops for t in p}


TASKS = TaskSet([Task(id, f"Do {id}.", weight) for id, weight in zip("abcd", (0.0, 0.0, 1.0, 0.0), strict=True)])
CONNECTIVITY = LearningConnectivity.from_selections(
    "abcd",
    [[[], [0], [1], []], [[], [0], [], [0]]],
    Provenance(model_asked="asked", model_served="served", learner="l", date="2026-11-30"),
)


def test_an_audit_of_connectivity():
    found = audit(CONNECTIVITY, TASKS, horizon=1)
    assert (found.edges, found.repetitions, found.density) == (3, 2, pytest.approx(3 / 12))
    assert found.edges_by_weight == ((1.0, 1), (0.5, 2))
    assert found.in_degree.tolist() == [0, 1, 1, 1]
    assert found.out_degree.tolist() == [2, 1, 0, 0]
    assert found.out_weight.tolist() == [1.5, 0.5, 0, 0]
    assert found.unhelped == ("a",)
    assert found.helping_none == ("c", "d")
    assert found.without_path == ("a", "c", "d")
    assert audit(CONNECTIVITY, TASKS, horizon=2).without_path == ("c", "d")
    assert audit(CONNECTIVITY).without_path == ("c", "d")
    assert found.depth is None


def test_an_audit_of_evidence_finds_circles_and_what_never_starts():
    graph = FeasibilityEvidence.from_selections("abcd", [[[], [0], [3], [2]], [[], [0, 2], [3], [2]]])
    found = audit(graph)
    assert found.cycle_groups == (("c", "d"),)
    assert set(found.strongest_cycle) == {"c", "d"}
    assert found.strongest_cycle_weight == 1.0
    assert found.ungrounded == ("c", "d")
    assert found.depth is not None
    assert found.depth.tolist() == [0, 1, -1, -1]
    assert found.unhelped == ()
    assert found.without_path == ()


def test_a_restriction_is_audited_without_warnings():
    graph = FeasibilityEvidence.from_selections("abcd", [[[], [0], [1], [2]]])
    found = audit(graph, TASKS.restrict(["d", "c", "a"]))
    assert found.ids == ("d", "c", "a")
    assert found.unhelped == ("c",)
    assert found.ungrounded == ("d", "c")


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"horizon .* is 0; it must be 1 or more"):
        audit(CONNECTIVITY, horizon=0)
    with pytest.raises(ValueError, match="unknown task id 'z'"):
        audit(CONNECTIVITY, TaskSet([Task("z", "z")]))


def test_the_text_says_it_all():
    text = audit_text(audit(CONNECTIVITY, TASKS))
    for part in ("asked, served by served", "1: 1; 0.5: 2", "helped by no task", "1: a", "alpha", "helping no task"):
        assert part in text
    evidence = FeasibilityEvidence.from_selections("abcd", [[[], [0], [3], [2]], [[], [0], [3], [2]]])
    assert "2 tasks in 1 group; the strongest: c -> d -> c, weakest edge 1" in audit_text(audit(evidence))


def test_a_comparison_by_hand():
    first = LearningConnectivity.from_weights("abc", [[0, 1.0, 0.2], [0, 0, 0.4], [0, 0, 0]])
    second = LearningConnectivity.from_weights("cbz", [[0, 0.5, 0.9], [0, 0, 0], [0, 0, 0]])
    found = compare(first, second)
    assert found.ids == ("b", "c")
    assert (found.only_first, found.only_second) == (("a",), ("z",))
    # b -> c weighs 0.4 and 0; c -> b weighs 0 and 0.5.
    assert (found.edges, found.shared, found.jaccard, found.weighted_jaccard) == ((1, 1), 0, 0.0, 0.0)
    assert found.mean_difference == pytest.approx(0.45)
    assert found.differences == (("c", "b", 0.0, 0.5), ("b", "c", 0.4, 0.0))


def test_a_graph_compared_with_itself_agrees_fully():
    graph = shipped.evidence()
    found = compare(graph, graph)
    assert (found.jaccard, found.weighted_jaccard, found.kappa) == (1.0, 1.0, 1.0)
    assert found.correlation == pytest.approx(1.0)
    assert found.differences == ()
    assert found.from_scratch == ()


def test_graphs_that_cannot_be_compared():
    with pytest.raises(ValueError, match="two kinds"):
        compare(shipped.evidence(), shipped.connectivity())
    with pytest.raises(ValueError, match="no task in common"):
        compare(CONNECTIVITY, LearningConnectivity.from_weights(["x"], [[0]]))


def test_graphs_without_any_edge_are_audited_and_compared():
    empty = LearningConnectivity.from_weights("ab", np.zeros((2, 2)))
    assert audit(empty).unhelped == ("a", "b")
    found = compare(empty, empty)
    assert found.jaccard is None
    assert "-" in comparison_text(found)
    assert "none" in audit_text(audit(empty))


def test_the_shipped_graphs():
    tasks = shipped.goals()
    connectivity = audit(shipped.connectivity(), tasks)
    assert connectivity.agreement["connectivity"].edges_per_repetition == (4783, 11007, 8165, 7286, 9053)
    assert connectivity.agreement["connectivity"].alpha == pytest.approx(0.730, abs=5e-4)
    assert connectivity.unhelped == connectivity.without_path == ()
    evidence = audit(shipped.evidence(), tasks)
    assert evidence.cycle_groups == evidence.ungrounded == ()
    text = comparison_text(compare(shipped.evidence(), shipped.evidence("subroutines")), ("primitive", "subroutines"))
    assert "place_crafting_table" in text
