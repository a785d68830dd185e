import numpy as np
import pytest
from probe import Counting

from forethought import Curriculum, Task, TaskSet
from forethought.adapters.assignments import Assignments, check_settings, is_success, pooled


def _assignments(**settings):
    return Assignments(Counting(), 3, **{"iteration_steps": 10} | settings)


def test_each_environment_has_a_task_in_hand_before_its_episode_ends():
    assignments = _assignments()
    assignments.begin()
    assert assignments.next.tolist() == [0, 1, 2]
    assert assignments.started(range(3)) == [0, 1, 2]
    assert assignments.running.tolist() == [0, 1, 2]
    assert assignments.next.tolist() == [3, 4, 5]
    assert assignments.started([1]) == [1]
    assert assignments.running.tolist() == [0, 4, 2]
    assert assignments.next.tolist() == [3, 6, 5]


def test_a_task_for_an_iteration_stays_until_the_next():
    assignments = _assignments(new_task="iteration")
    assignments.begin()
    assert assignments.started(range(3)) == []
    assert assignments.started([1]) == []
    assert assignments.running.tolist() == [0, 1, 2]
    assert assignments.advance(10)
    assert assignments.next.tolist() == [3, 4, 5]
    assert assignments.running.tolist() == [0, 1, 2]


def test_an_iteration_ends_at_its_steps_and_tells_what_ended_since():
    assignments = _assignments()
    assignments.begin()
    assignments.started(range(3))
    assignments.finished(1, 0.5)
    assert not assignments.advance(9)
    assert assignments.curriculum.told == []
    assignments.finished(2, True)
    assert assignments.advance(3)
    assert assignments.next.tolist() == [6, 7, 8]
    assert [column.tolist() for column in assignments.curriculum.told[0]] == [[1, 2], [0.5, 1.0], [1, 1]]
    assert assignments.steps == 2
    assert not assignments.advance(7)
    assert assignments.advance(1)
    assert assignments.curriculum.told[1][0].size == 0
    assert assignments.curriculum.iteration == 2


def test_only_the_latest_episodes_of_an_environment_on_a_task_count():
    episodes = [(0, 7, 0.0), (0, 7, 1.0), (0, 7, 1.0), (1, 7, 0.0), (0, 8, 0.25)]
    tasks, means, counts = pooled(episodes, 10, 2)
    assert tasks.tolist() == [7, 8, 7]
    assert means.tolist() == [1.0, 0.25, 0.0]
    assert counts.tolist() == [2, 1, 1]
    assert [column.size for column in pooled([], 10, 2)] == [0, 0, 0]


@pytest.mark.parametrize("new_task", ["episode", "iteration"])
def test_fixed_tasks_keep_the_first_environments(new_task):
    assignments = _assignments(fixed={900: 1, 901: 1}, new_task=new_task)
    for _ in range(3):
        assignments.begin()
        assignments.started(range(3))
        assignments.started(range(3))
        assert assignments.running[:2].tolist() == [900, 901]
        assert assignments.next[:2].tolist() == [900, 901]
    assert assignments.curriculum.given > 2


def test_the_method_target_overrules_fixed_tasks():
    tasks = TaskSet([Task(name, name) for name in "abc"]).with_target("c")
    assignments = Assignments(Curriculum(tasks, method="target"), 2, iteration_steps=1, fixed={"a": 1})
    assignments.begin()
    assignments.started([0, 1])
    assert assignments.running.tolist() == assignments.next.tolist() == [2, 2]


def test_a_state_holds_what_the_curriculum_has_not_heard(tmp_path):
    assignments = _assignments()
    assignments.begin()
    assignments.started(range(3))
    assignments.finished(1, 0.5)
    assignments.advance(4)
    np.savez(tmp_path / "state.npz", **assignments.state_dict())

    again = _assignments()
    with np.load(tmp_path / "state.npz") as state:
        again.load_state_dict(state)
    again.begin()
    again.started(range(3))
    assert not again.advance(5)
    assert again.advance(1)
    assert [column.tolist() for column in again.curriculum.told[0]] == [[1], [0.5], [1]]


def test_an_empty_state_and_a_short_one():
    assignments = _assignments()
    state = assignments.state_dict()
    assignments.load_state_dict(state)
    assert assignments.pending == []
    with pytest.raises(ValueError, match="lacks pending_steps"):
        assignments.load_state_dict({name: value for name, value in state.items() if name != "pending_steps"})
    with pytest.raises(ValueError, match="different lengths"):
        assignments.load_state_dict(state | {"pending_tasks": np.zeros(2, int)})
    bad = {"pending_environments": [0], "pending_tasks": [-1], "pending_successes": [1.0]}
    with pytest.raises(ValueError, match="pending_tasks holds"):
        assignments.load_state_dict(state | bad)
    bad = {"pending_environments": [0], "pending_tasks": [1], "pending_successes": [np.nan]}
    with pytest.raises(ValueError, match="task '1' in environment 0 has the success nan"):
        assignments.load_state_dict(state | bad)
    assert assignments.pending == []


@pytest.mark.parametrize("success", [1.5, -0.1, float("nan"), None, "yes", [0.5, 0.5]])
def test_an_outcome_that_is_none_names_the_task_and_the_environment(success):
    assignments = _assignments()
    assignments.begin()
    assignments.started(range(3))
    with pytest.raises(ValueError, match=r"task '1' in environment 1 has the success .*allowed: numbers in \[0, 1\]"):
        assignments.finished(1, success)
    assert assignments.pending == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iteration_steps": 0}, "iteration_steps is 0; allowed: a whole number >= 1"),
        ({"iteration_steps": 2.5}, "iteration_steps is 2.5"),
        ({"iteration_steps": True}, "iteration_steps is True"),
        ({"episodes_per_environment": 0}, "episodes_per_environment is 0"),
        ({"new_task": "step"}, "new_task is 'step'; allowed: 'episode', 'iteration'"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        check_settings(**{"iteration_steps": 1, "new_task": "episode", "episodes_per_environment": 5} | settings)


def test_more_fixed_environments_than_there_are():
    tasks = TaskSet([Task(name, name) for name in "ab"])
    assignments = Assignments(Curriculum(tasks), 2, iteration_steps=1, fixed={"a": 3})
    with pytest.raises(ValueError, match="fixed slots add up to 3; allowed: at most k = 2"):
        assignments.begin()


def test_success_is_asked_for_by_name():
    assert is_success({"is_success": 0.5}) == 0.5
    with pytest.raises(ValueError, match=r"no 'is_success'.*pass success=.*'episode', 'task'"):
        is_success({"task": 1, "episode": {}})
