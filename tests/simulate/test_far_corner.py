"""The acceptance test of the curriculum: only a task nine prerequisites away counts, and the graph is true."""

import warnings

import numpy as np
import pytest

from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.simulate import PrerequisiteGrid, run

DRAWS = 64


def drive(method, episodes, *, length=20, discount=0.3, seed=0):
    student = PrerequisiteGrid(10)
    curriculum = Curriculum(
        student.tasks.with_target(student.far_corner),
        connectivity=student.connectivity(),
        feasibility=student.evidence(),
        method=method,
        seed=seed,
        config=CurriculumConfig(max_path_length=length, path_discount=discount),
    )
    return student.far_corner, run(student, curriculum, -(-episodes // DRAWS), DRAWS, seed=seed)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["unif", "alp", "alp+f", "perm"])
def test_without_foresight_nothing_is_learnt_there(method):
    target, record = drive(method, 20_000)
    assert record.competence[:, record.tasks.index(target)].max() == 0.0


@pytest.mark.parametrize("seed", [0, 1])
def test_downstream_potential_gets_there_between_5k_and_10k_episodes(seed):
    target, record = drive("alp+d", 10_000, seed=seed)
    assert record.at(5_000)[record.tasks.index(target)] <= 0.75
    mastered = record.mastered_at(target)
    assert mastered is not None
    assert 5_000 < mastered <= 10_000


@pytest.mark.parametrize("seed", [0, 1])
def test_with_feasibility_it_gets_there_before_5k(seed):
    target, record = drive("alp+d+f", 5_000 - 5_000 % DRAWS, seed=seed)
    mastered = record.mastered_at(target)
    assert mastered is not None
    assert mastered < 5_000


@pytest.mark.parametrize("method", ["alp+d", "alp+d+f"])
def test_a_reach_of_two_edges_is_too_short_and_says_so(method):
    with pytest.warns(UserWarning, match="max_path_length"):
        target, record = drive(method, 20_000, length=2)
    assert record.competence[:, record.tasks.index(target)].max() == 0.0


def test_a_long_reach_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, record = drive("alp+d+f", 5_000)
    assert np.flatnonzero(record.competence[-1] > 0.75).size >= 9
