import numpy as np
import pytest

from forethought.judging.plan import KINDS
from forethought.judging.pruning import Pruning, likely_pairs, text_vectors

LARGE, SIZE = 2000, 600
CLUSTERS = np.arange(LARGE) // 20


def clustered(size=SIZE):
    """Vectors of tasks that come in families of twenty."""
    random = np.random.default_rng(0)
    return random.normal(size=(100, 32))[CLUSTERS[:size]] + 0.05 * random.normal(size=(size, 32))


def design(seed=0, repetition=0, share=0.25):
    pruning = Pruning(128, share, clustered(), "clusters")
    return likely_pairs("learning_connectivity", pruning, 64, 16, seed, repetition)


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_tasks_stay_affordable_and_no_pair_is_asked_twice(kind, make):
    evidence = kind == "feasibility_evidence"
    plan = make(
        kind, LARGE, repetitions=2, pruning=Pruning(256 if evidence else 128, 0.25, clustered(LARGE), "clusters")
    )
    assert len(plan.queries) == 2 * (LARGE // 8 if evidence else 2 * LARGE // 16)
    for repetition in range(2):
        asked = np.zeros((LARGE, LARGE), dtype=np.int64)
        for query in plan.queries:
            if query.repetition == repetition:
                asked[np.ix_(query.sources, query.targets)] += 1
        assert asked.max() == 1
        assert (asked.sum(axis=0) == (256 if evidence else 128)).all()
    assert plan.share_asked < plan.share_ever_asked < 2 * plan.share_asked


def test_near_tasks_are_candidates_of_each_other():
    found = [
        len(set(np.flatnonzero(CLUSTERS[t] == CLUSTERS).tolist()) - set(sum(group.sources, ())) - {t})
        for group in design()
        for t in group.targets[0]
    ]
    # Each has 19 others of its kind.
    assert sum(found) < 0.1 * 19 * SIZE


def test_the_random_share_is_drawn_from_the_rest_and_differs_by_repetition():
    candidates = [set(sum(group.sources, ())) for group in design()]
    assert {len(chosen) for chosen in candidates} == {128}
    kinds = np.array([len({CLUSTERS[s] for s in chosen}) for chosen in candidates])
    assert kinds.min() > 10
    near_only = [len({CLUSTERS[s] for s in sum(group.sources, ())}) for group in design(share=0.0)]
    assert np.mean(near_only) < kinds.mean()
    assert design(repetition=1) != design() == design()
    assert design(seed=1) != design()


def test_every_task_is_a_target_once():
    targets = sorted(t for group in design() for t in group.targets[0])
    assert targets == list(range(SIZE))
    assert all(len(group.targets) == 1 for group in design())


def test_more_candidates_than_tasks_means_all(make):
    plan = make(tasks=9, pruning=Pruning(50, 0.25, np.eye(9), "v"))
    plan.check_pairs()
    assert plan.share_asked == 1


def test_all_random_works_too(make):
    plan = make(tasks=9, pruning=Pruning(4, 1.0, np.eye(9), "v"))
    assert {len(set(query.sources)) for query in plan.queries} == {4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.25, np.eye(3)), "candidates is 1"),
        ((4, 1.5, np.eye(3)), "random_share is 1.5"),
        ((4, 0.5, np.full((3, 2), np.nan)), "finite vector"),
    ],
)
def test_bad_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Pruning(*arguments, "v")


def test_texts_with_shared_wording_are_near():
    texts = [
        "Have at least 1 wood.",
        "Have at least 2 wood.",
        "Defeat a zombie.",
        "Besiege einen Zombie",
        "開ける",
        "x",
    ]
    vectors = text_vectors(texts)
    assert vectors.shape == (6, 512)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar = unit @ unit.T
    assert similar[0, 1] > 0.6
    assert similar[0, 1] > similar[2, 3] > similar[0, 2]
    np.testing.assert_array_equal(vectors, text_vectors(texts))
