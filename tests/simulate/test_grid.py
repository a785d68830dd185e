import numpy as np
import pytest

from forethought.simulate import KnownStudent, PrerequisiteGrid

RNG = np.random.default_rng(0)


def test_a_cell_opens_when_a_lower_neighbour_reaches_the_unlock_level():
    student = PrerequisiteGrid(10)
    corner = 11  # (1, 1): its lower neighbours are (0, 0), (0, 1) and (1, 0)
    assert student.train(corner, RNG) == 0.0
    for level in range(1, 75):
        assert student.train(0, RNG) == level / 100
    assert student.train(corner, RNG) == 0.0
    student.train(0, RNG)
    assert student.train(corner, RNG) == 0.01
    assert student.levels[corner] == 1
    assert student.train(12, RNG) == 0.0  # (1, 2) lies above (1, 1), which is not mastered yet


def test_a_level_stops_at_full():
    student = PrerequisiteGrid(2, full=3, unlock=2)
    assert [student.train(0, RNG) for _ in range(5)] == pytest.approx([1 / 3, 2 / 3, 1, 1, 1])


def test_the_graphs_hold_exactly_the_lower_neighbours():
    student = PrerequisiteGrid(3)
    weights = student.connectivity().weights.toarray()
    shares = student.evidence().weights.toarray()
    for cell in range(9):
        row, column = divmod(cell, 3)
        lower = {
            (r, c)
            for r in (row - 1, row)
            for c in (column - 1, column)
            if r >= 0 and c >= 0 and (r, c) != (row, column)
        }
        expected = np.zeros(9)
        for r, c in lower:
            expected[3 * r + c] = 1.0
        np.testing.assert_array_equal(weights[:, cell], expected)
        np.testing.assert_allclose(shares[:, cell], expected / max(len(lower), 1))
    np.testing.assert_array_equal(student.evidence().from_scratch, [1, 0, 0, 0, 0, 0, 0, 0, 0])
    assert student.connectivity().ids == student.tasks.ids


def test_transitions_agree_with_training():
    student = PrerequisiteGrid(3, full=4, unlock=2)
    rng = np.random.default_rng(1)
    for task in rng.integers(9, size=300).tolist():
        ((probability, predicted),) = student.transitions(student.state, task)
        student.train(task, rng)
        assert probability == 1.0
        assert student.state == predicted
        np.testing.assert_array_equal(student.competence, student.competence_of(predicted))
    assert student.competence.sum() > 2


def test_the_far_corner_takes_751_episodes_at_best():
    student = PrerequisiteGrid(10)
    for step in range(9):
        for _ in range(75):
            student.train(11 * step, RNG)
    for _ in range(76):
        student.train(99, RNG)
    assert student.far_corner == student.tasks.ids[99]
    assert student.competence[99] > 0.75


def test_it_is_a_known_student():
    assert isinstance(PrerequisiteGrid(2), KnownStudent)


@pytest.mark.parametrize("arguments", [{"size": 1}, {"unlock": 0}, {"full": 10, "unlock": 11}])
def test_bad_settings_are_named(arguments):
    with pytest.raises(ValueError, match=list(arguments)[-1]):
        PrerequisiteGrid(**arguments)


@pytest.mark.parametrize("task", [-1, 4])
def test_an_index_outside_the_tasks_is_refused(task):
    with pytest.raises(IndexError, match=r"outside 0\.\.3"):
        PrerequisiteGrid(2).train(task, RNG)


def test_what_is_nowhere_farther_out_than_a_mastered_cell_is_boring():
    student = PrerequisiteGrid(3)
    boring = student.interestingness().weights.toarray()
    assert np.flatnonzero(boring[student.tasks.index("cell-1-1")]).tolist() == [0, 1, 3]
    assert boring[0].sum() == 0
    assert boring[8].sum() == 8
