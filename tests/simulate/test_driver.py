import numpy as np
import pytest

from forethought.simulate import PrerequisiteGrid, Record, TransferStudent, run
from forethought.tasks import Task, TaskSet


class Cycle:
    """Trains on the tasks in turn and remembers what it is told."""

    def __init__(self, tasks):
        self.tasks, self.next, self.told = tasks, 0, []

    def sample(self, k):
        chosen = (self.next + np.arange(k)) % self.tasks
        self.next += k
        return chosen

    def update(self, task_indices, successes):
        self.told.append((task_indices.tolist(), successes.tolist()))


def test_every_draw_is_trained_and_reported_back():
    student, cycle = PrerequisiteGrid(2, full=4, unlock=1), Cycle(4)
    record = run(student, cycle, decisions=2, tasks_per_decision=5)
    assert cycle.told == [
        ([0, 1, 2, 3, 0], [0.25, 0.25, 0.25, 0.25, 0.5]),
        ([1, 2, 3, 0, 1], [0.5, 0.5, 0.5, 0.75, 0.75]),
    ]
    np.testing.assert_array_equal(record.episodes, [0, 5, 10])
    np.testing.assert_array_equal(record.competence, [[0, 0, 0, 0], [0.5, 0.25, 0.25, 0.25], [0.75, 0.75, 0.5, 0.5]])
    np.testing.assert_array_equal(record.draws, [3, 3, 2, 2])
    np.testing.assert_array_equal(record.competence[-1], student.competence)


def test_points_can_be_spaced_and_the_last_is_kept():
    record = run(PrerequisiteGrid(2), Cycle(4), decisions=7, tasks_per_decision=2, every=3)
    np.testing.assert_array_equal(record.episodes, [0, 6, 12, 14])


def test_the_student_has_its_own_seed():
    def drive(seed):
        tasks = TaskSet([Task("a", "do a"), Task("b", "do b")])
        cycle = Cycle(2)
        run(TransferStudent(tasks, outcomes="gaussian"), cycle, 3, 4, seed=seed)
        return cycle.told

    assert drive(1) == drive(1)
    assert drive(1) != drive(2)


def test_reading_a_record():
    tasks = TaskSet([Task("a", "do a"), Task("b", "do b")])
    record = Record(tasks, np.array([0, 64, 128]), np.array([[0, 0], [0.5, 0.75], [0.6, 0.76]]), np.array([100, 28]))
    np.testing.assert_array_equal(record.at(127), [0.5, 0.75])
    np.testing.assert_array_equal(record.at(128), [0.6, 0.76])
    assert record.mastered_at("b") == 128
    assert record.mastered_at(1, threshold=0.7) == 64
    assert record.mastered_at("a") is None
    with pytest.raises(ValueError, match="129 episodes lie outside"):
        record.at(129)


@pytest.mark.parametrize("arguments", [{"decisions": -1}, {"tasks_per_decision": 0}, {"every": 0}])
def test_bad_counts_are_named(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        run(PrerequisiteGrid(2), Cycle(4), **{"decisions": 1, **arguments})
