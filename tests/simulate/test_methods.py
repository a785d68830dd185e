"""Real curricula against students small enough that the optimum is known."""

import numpy as np
import pytest

from forethought.curriculum import METHODS, Curriculum, CurriculumConfig
from forethought.simulate import LookAhead, PrerequisiteGrid, TransferStudent, UniformChoice, regret, run
from forethought.tasks import Task, TaskSet


def curricula(student, tasks, method, **settings):
    def make(seed):
        return Curriculum(
            tasks,
            connectivity=student.connectivity(),
            feasibility=student.evidence(),
            interestingness=student.interestingness(),
            method=method,
            seed=seed,
            config=CurriculumConfig(**settings),
        )

    return make


def test_a_uniform_curriculum_has_the_exact_regret_of_uniform_choice():
    student = PrerequisiteGrid(2, full=4, unlock=3)
    tasks = student.tasks.with_target(student.far_corner)
    search = LookAhead(student, 20, tasks.weights)
    exact = regret(student, UniformChoice(student), 20, weights=tasks.weights, look_ahead=search)
    drawn = regret(
        student,
        curricula(student, tasks, "unif"),
        20,
        weights=tasks.weights,
        seeds=range(60),
        look_ahead=search,
    )
    assert exact.optimum == drawn.optimum == 1.0
    assert drawn.regret == pytest.approx(exact.regret, abs=4 * drawn.standard_error)


def test_foresight_lowers_the_regret_on_a_far_target():
    student = PrerequisiteGrid(3, full=3, unlock=3)
    tasks = student.tasks.with_target(student.far_corner)
    search = LookAhead(student, 26, tasks.weights)
    without, guided = (
        regret(
            student,
            curricula(student, tasks, method, max_path_length=4, warmup=2),
            26,
            weights=tasks.weights,
            seeds=range(40),
            look_ahead=search,
        )
        for method in ("alp", "alp+d+f")
    )
    assert guided.regret + 2 * guided.standard_error < without.regret <= 1.0


def test_a_forgotten_task_is_taken_up_again():
    tasks = TaskSet([Task(name, f"do {name}") for name in ("a", "b", "c", "d")])
    student = TransferStudent(tasks, rate=0.1, forgetting=0.01, outcomes="bernoulli")
    record = run(student, curricula(student, tasks, "alp")(0), 150, 16, seed=1)
    assert record.competence[-50:].min() > 0.3
    assert np.all(record.draws > 150)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_a_student(method):
    student = PrerequisiteGrid(3, full=4, unlock=3)
    tasks = student.tasks.with_target(student.far_corner) if method == "target" else student.tasks
    record = run(student, curricula(student, tasks, method, warmup=2)(0), 60, 8)
    assert record.draws.sum() == 480
    assert (record.competence[-1].max() > 0.7) == (method != "target")


def test_a_needed_task_is_boring_once_what_needed_it_is_mastered():
    tasks = TaskSet([Task(name, f"do {name}") for name in ("a", "b", "c")])
    student = TransferStudent(tasks, prerequisites=np.array([[0, 1, 0], [0, 0, 0.4], [0, 0, 0]]))
    assert student.interestingness().weights.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0.4, 0]]
