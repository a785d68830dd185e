import numpy as np
import pytest

from forethought.simulate import KnownStudent, TransferStudent
from forethought.tasks import Task, TaskSet

TASKS = TaskSet([Task(name, f"do {name}") for name in ("a", "b", "c", "d")])


def matrix(**entries):
    values = np.zeros((4, 4))
    for pair, value in entries.items():
        values["abcd".index(pair[0]), "abcd".index(pair[1])] = value
    return values


def test_one_step_by_hand():
    # Training b: readiness 1 - 0.5 * (1 - 0.6) = 0.8, u = 0.2 * 0.8 = 0.16.
    student = TransferStudent(
        TASKS,
        transfer=matrix(bc=0.5, bd=-0.25),
        prerequisites=matrix(ab=0.5),
        rate=0.2,
        forgetting=0.1,
        initial=np.array([0.6, 0.5, 0.2, 0.4]),
    )
    outcome = student.train(1, np.random.default_rng(0))
    expected = [
        0.6 * 0.9,  # unrelated: forgets
        0.5 + 0.16 * 0.5,  # trained
        0.2 + 0.16 * 0.5 * 0.8,  # helped
        0.4 - 0.16 * 0.25 * 0.4,  # harmed
    ]
    np.testing.assert_allclose(student.competence, expected, rtol=1e-12)
    assert outcome == student.competence[1]


def test_a_full_prerequisite_at_zero_blocks_training_and_its_transfer():
    student = TransferStudent(TASKS, transfer=matrix(bc=1.0), prerequisites=matrix(ab=1.0))
    student.train(1, np.random.default_rng(0))
    np.testing.assert_array_equal(student.competence, np.zeros(4))


def test_two_prerequisites_multiply():
    student = TransferStudent(
        TASKS, prerequisites=matrix(ac=1.0, bc=0.5), rate=1.0, initial=np.array([0.5, 0.2, 0.0, 0.0])
    )
    assert student.train(2, np.random.default_rng(0)) == pytest.approx(0.5 * (1 - 0.5 * 0.8))


def test_wasted_units_come_with_their_probability():
    student = TransferStudent(TASKS, reliability=0.25, rate=0.5, forgetting=0.5, initial=np.full(4, 0.4))
    (taken, after), (wasted, idle) = student.transitions(student.state, 0)
    assert (taken, wasted) == (0.25, 0.75)
    assert after == pytest.approx((0.7, 0.2, 0.2, 0.2))
    assert idle == pytest.approx((0.4, 0.2, 0.2, 0.2))
    rng = np.random.default_rng(2)
    took = 0
    for _ in range(2000):
        student = TransferStudent(TASKS, reliability=0.25, rate=0.5)
        student.train(0, rng)
        took += student.competence[0] > 0
    assert took / 2000 == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 2000))


def test_performance_stays_within_bounds():
    rng = np.random.default_rng(3)
    student = TransferStudent(
        TASKS,
        transfer=rng.uniform(-1, 1, (4, 4)),
        prerequisites=np.triu(rng.uniform(0, 1, (4, 4)), 1),
        rate=1.0,
        forgetting=0.3,
        reliability=0.7,
        outcomes="gaussian",
        noise=1.0,
    )
    outcomes = np.array([student.train(task, rng) for task in rng.integers(4, size=500).tolist()])
    assert ((outcomes >= 0) & (outcomes <= 1)).all()
    assert ((student.competence >= 0) & (student.competence <= 1)).all()


def test_noisy_outcomes_have_the_stated_distribution():
    rng = np.random.default_rng(4)
    for outcomes, spread in (("gaussian", 0.05), ("bernoulli", np.sqrt(0.6 * 0.4))):
        drawn = []
        for _ in range(2000):
            student = TransferStudent(TASKS, outcomes=outcomes, noise=0.05, rate=0.2, initial=np.full(4, 0.5))
            drawn.append(student.train(0, rng))
            assert student.competence[0] == 0.6  # noise touches what is seen, not what is learnt
        assert np.mean(drawn) == pytest.approx(0.6, abs=4 * spread / np.sqrt(2000))
        assert np.std(drawn) == pytest.approx(spread, rel=0.1)
        if outcomes == "bernoulli":
            assert set(drawn) == {0.0, 1.0}


def test_the_graphs_follow_from_the_matrices():
    student = TransferStudent(
        TASKS, transfer=matrix(ab=0.3, cd=-0.5, ac=0.9), prerequisites=matrix(ab=0.8, cb=0.4, ac=0.2)
    )
    np.testing.assert_allclose(student.connectivity().weights.toarray(), matrix(ab=0.8, cb=0.4, ac=0.9), rtol=1e-12)
    evidence = student.evidence()
    np.testing.assert_allclose(evidence.weights.toarray(), matrix(ab=2 / 3, cb=1 / 3, ac=1.0), rtol=1e-12)
    np.testing.assert_array_equal(evidence.from_scratch, [1, 0, 0, 1])


def test_it_is_a_known_student():
    assert isinstance(TransferStudent(TASKS), KnownStudent)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transfer": np.zeros((3, 3))}, r"transfer has shape \(3, 3\)"),
        ({"transfer": matrix(ab=-1.5)}, r"transfer\[0, 1\] is -1.5; allowed is \[-1, 1\]"),
        ({"prerequisites": matrix(ab=-0.5)}, r"prerequisites\[0, 1\] is -0.5; allowed is \[0, 1\]"),
        ({"prerequisites": matrix(bb=0.5)}, "'b' is its own prerequisite"),
        ({"initial": np.array([0, 0, np.nan, 0])}, r"initial\[2\] is nan"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"forgetting": 1.0}, "forgetting is 1.0"),
        ({"reliability": 0.0}, "reliability is 0.0"),
        ({"noise": -1.0}, "noise is -1.0"),
    ],
)
def test_bad_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransferStudent(TASKS, **arguments)
