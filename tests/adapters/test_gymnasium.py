import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector
from probe import Counting, Probe, Taking, change_task, length, outcome

from forethought import Curriculum, Task, TaskSet
from forethought.adapters.gymnasium import CurriculumVectorEnv, TaskWrapper

MODES = list(AutoresetMode)
ENVS = 3

# `AsyncVectorEnv` forks; what its processes run starts no thread.
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def _make(kind=float):
    return TaskWrapper(Probe(kind=kind), change_task)


def _vector(kind=SyncVectorEnv, mode=AutoresetMode.NEXT_STEP, num_envs=ENVS, **settings):
    env = kind([_make] * num_envs, autoreset_mode=mode)
    return CurriculumVectorEnv(env, Counting(), **{"iteration_steps": 10} | settings)


def _play(envs, steps, reset=True):
    """The usual loop; returns the info with which each episode ended, by environment."""
    ends = [[] for _ in range(envs.num_envs)]
    if reset:
        envs.reset(seed=0)
    actions = np.zeros(envs.num_envs, int)
    for _ in range(steps):
        _, _, terminations, truncations, infos = envs.step(actions)
        ended = terminations | truncations
        last = infos.get("final_info", infos)
        for index in np.flatnonzero(ended):
            ends[index].append((int(last["task"][index]), float(last["is_success"][index])))
        if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    return ends


@pytest.mark.parametrize("new_task", ["episode", "iteration"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_each_environment_takes_up_a_task_of_its_own_before_every_reset(kind, mode, new_task):
    envs = _vector(kind, mode, new_task=new_task)
    ends = _play(envs, 60)
    records = envs.unwrapped.call("record")
    curriculum = envs.curriculum
    envs.close()

    counts = curriculum.check()
    assert len(curriculum.told) >= 10
    steps = sum(sum(steps for _, steps in record) for record in records)
    assert curriculum.iteration == steps // 10
    if new_task == "episode":
        # No task twice, be it in one environment or in two.
        run = [task for record in records for task, _ in record]
        assert len(run) == len(set(run)) >= 60
    else:
        for record in records:
            tasks = [task for task, _ in record]
            assert tasks == sorted(tasks)
            assert len(set(tasks)) > 8
    for record, ended in zip(records, ends, strict=True):
        over = [task for task, steps in record if steps == length(task)]
        assert ended == [(task, outcome(task)) for task in over]
    told = [task for ended in ends for task, _ in ended]
    assert np.flatnonzero(counts).size <= len(told)
    assert set(np.flatnonzero(counts)) <= set(told)


@pytest.mark.parametrize("mode", MODES)
def test_every_finished_episode_is_told_once(mode):
    envs = _vector(mode=mode, iteration_steps=ENVS)
    ends = _play(envs, 40)
    counts = envs.curriculum.check()
    told = np.bincount([task for ended in ends for task, _ in ended], minlength=counts.size)
    pending = envs.state_dict()["pending_tasks"]
    np.testing.assert_array_equal(counts + np.bincount(pending, minlength=counts.size), told)


@pytest.mark.parametrize("mode", MODES)
def test_the_end_of_an_iteration_replaces_tasks_not_yet_taken_up(mode):
    envs = _vector(mode=mode, iteration_steps=12, num_envs=1, new_task="iteration")
    _play(envs, 60)
    (record,) = envs.unwrapped.call("record")
    done = 0
    for task, steps in record:
        # The task that was current when this episode began; at SAME_STEP it begins within the step that ends the last.
        assert task == max(done - (mode is AutoresetMode.SAME_STEP), 0) // 12
        done += steps


def test_an_environment_that_takes_tasks_itself():
    with pytest.raises(ValueError, match=r"Probe.* has no set_task\(task_index\); pass change_task"):
        TaskWrapper(Probe())
    envs = CurriculumVectorEnv(
        SyncVectorEnv([lambda: TaskWrapper(Taking(), task=1)] * 2), Counting(), iteration_steps=10
    )
    _play(envs, 20)
    assert envs.curriculum.check().sum() > 8
    assert envs.curriculum.iteration == 2


def test_a_task_waits_for_the_next_reset():
    env = _make()
    env.set_task(5)
    _, info = env.reset()
    assert info["task"] == 5
    env.set_task(6)
    *_, info = env.step(0)
    assert info["task"] == env.task == 5
    assert env.next_task == 6
    assert env.reset()[1]["task"] == 6
    assert env.reset()[1]["task"] == 6


def test_options_that_a_task_needs_join_those_of_the_reset():
    env = TaskWrapper(Probe(), lambda env, task: {"level": task, "music": False})
    env.set_task(4)
    env.reset()
    env.reset(options={"music": True})
    assert env.unwrapped.options == [{"level": 4, "music": False}, {"level": 4, "music": True}]


def test_a_success_of_ones_own():
    env = TaskWrapper(Probe(), change_task, success=lambda info: info["task"] == 3)
    env.set_task(3)
    _, first = env.reset()
    assert "is_success" not in first
    *_, info = env.step(0)
    assert info == {"is_success": 1.0, "task": 3}
    assert isinstance(info["is_success"], float)


def test_a_wrapped_environment_can_be_made_again_from_its_spec():
    env = TaskWrapper(gym.make("CartPole-v1"), change_task, task=2)
    again = gym.make(env.spec)
    assert again.get_wrapper_attr("next_task") == 2


def test_part_of_a_success_survives_beside_truths():
    """Gymnasium stores the infos of all environments in the type of the first: 0.5 beside False became True."""

    def make(kind, task):
        return lambda: TaskWrapper(Probe(kind=kind), change_task, task=task)

    envs = SyncVectorEnv([make(bool, 11), make(float, 16)], autoreset_mode=AutoresetMode.DISABLED)
    envs.set_attr("next_task", [11, 16])
    envs.reset()
    for _ in range(2):
        *_, infos = envs.step(np.zeros(2, int))
    assert infos["is_success"].tolist() == [False, 0.5]
    assert infos["is_success"].dtype == float


@pytest.mark.parametrize("mode", MODES)
def test_success_from_recorded_statistics(mode):
    env = vector.RecordEpisodeStatistics(SyncVectorEnv([_make] * ENVS, autoreset_mode=mode))
    seen = []

    def success(info):
        seen.append(info)
        return info["episode"]["r"] > 0 and info["task"] >= 0

    curriculum = Curriculum(TaskSet([Task(str(n), "Do it.") for n in range(4)]), method="unif")
    envs = CurriculumVectorEnv(env, curriculum, iteration_steps=9, success=success)
    envs.reset(seed=0)
    for _ in range(20):
        _, _, terminations, truncations, _ = envs.step(np.zeros(ENVS, int))
        if mode is AutoresetMode.DISABLED and (terminations | truncations).any():
            break
    assert seen
    # Gymnasium 1.2 leaves the first reward after a reset out at SAME_STEP.
    returns = {0.0, 1.0} if mode is AutoresetMode.SAME_STEP else {1.0}
    assert {info["episode"]["r"] for info in seen} <= returns
    assert [info["is_success"] for info in seen] == pytest.approx([outcome(info["task"]) for info in seen])


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_a_reset_of_some_leaves_the_callers_mask_and_the_others_alone(kind):
    envs = _vector(kind, AutoresetMode.DISABLED)
    envs.reset()
    options = {"reset_mask": np.array([False, True, False]), "music": True}
    _, infos = envs.reset(options=options)
    assert options.keys() == {"reset_mask", "music"}
    assert infos["task"][1] == 4
    records = envs.unwrapped.call("record")
    assert [[task for task, _ in record] for record in records] == [[0], [1, 4], [2]]
    # Environment 1 has another task in hand again, the others still theirs.
    assert envs.unwrapped.get_attr("next_task") == (3, 6, 5)
    envs.close()


def test_a_reset_of_all_begins_anew():
    envs = _vector()
    for seed in (0, 1):
        _, infos = envs.reset(seed=seed, options={"music": True})
    assert infos["task"].tolist() == [6, 7, 8]
    assert envs.unwrapped.envs[0].unwrapped.options == [{"music": True}] * 2


def test_fixed_environments():
    tasks = TaskSet([Task(name, name) for name in "abcdefgh"])
    env = SyncVectorEnv([_make] * ENVS)
    envs = CurriculumVectorEnv(env, Curriculum(tasks, method="unif"), iteration_steps=8, fixed={"c": 1})
    _play(envs, 60)
    first, *others = envs.unwrapped.call("record")
    assert {task for task, _ in first} == {2}
    assert len({task for record in others for task, _ in record}) > 3


def test_a_saved_state_goes_on(tmp_path):
    tasks = TaskSet([Task(str(n), f"Task {n}.") for n in range(6)])

    def make():
        env = SyncVectorEnv([_make] * ENVS)
        return CurriculumVectorEnv(env, Curriculum(tasks, seed=3), iteration_steps=8)

    envs = make()
    _play(envs, 25)
    np.savez(tmp_path / "state.npz", **envs.state_dict())
    state = envs.state_dict()
    assert state["pending_tasks"].size > 0
    others = []
    for _ in range(2):
        other = make()
        with np.load(tmp_path / "state.npz") as saved:
            other.load_state_dict(saved)
        # The state is there before the first task is drawn.
        assert other.curriculum.iteration == envs.curriculum.iteration > 2
        np.testing.assert_array_equal(other.curriculum.probabilities, envs.curriculum.probabilities)
        assert other.state_dict()["pending_steps"] == state["pending_steps"]
        others.append(_play(other, 25))
    assert others[0] == others[1]
    envs.reset()
    assert _play(envs, 25, reset=False) == others[0]


def test_numpys_global_numbers_are_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    _play(_vector(), 20)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_environments_that_take_no_tasks_are_named():
    env = SyncVectorEnv([_make, Probe, Probe])
    with pytest.raises(ValueError, match=r"environments \[1, 2\] of .* take no tasks; wrap each in TaskWrapper"):
        CurriculumVectorEnv(env, Counting(), iteration_steps=10)


def test_a_vector_environment_of_another_kind():
    env = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match="cannot set attributes; allowed: SyncVectorEnv, AsyncVectorEnv"):
        CurriculumVectorEnv(env, Counting(), iteration_steps=10)
    env.metadata = {}
    with pytest.raises(ValueError, match=r"has the autoreset mode None; allowed: .*SAME_STEP"):
        CurriculumVectorEnv(env, Counting(), iteration_steps=10)


def test_a_missing_success_tells_what_there_is():
    class Silent(Probe):
        def step(self, action):
            observation, reward, terminated, truncated, _ = super().step(action)
            return observation, reward, terminated, truncated, {"score": 3}

    envs = CurriculumVectorEnv(
        SyncVectorEnv([lambda: TaskWrapper(Silent(), change_task)]), Counting(), iteration_steps=10
    )
    envs.reset()
    with pytest.raises(ValueError, match=r"no 'is_success'; .* success=, .* which has 'score', 'task'"):
        envs.step(np.zeros(1, int))


def test_a_success_out_of_range_names_the_task():
    envs = CurriculumVectorEnv(SyncVectorEnv([_make]), Counting(), iteration_steps=10, success=lambda info: 7)
    envs.reset()
    with pytest.raises(ValueError, match="task '0' in environment 0 has the success 7; allowed"):
        envs.step(np.zeros(1, int))


def test_importing_the_adapters_loads_no_framework_and_a_missing_one_is_named():
    program = """
import sys
import forethought.adapters
frameworks = {"gymnasium", "stable_baselines3", "ray", "torch", "jax", "scipy"}
assert not frameworks & sys.modules.keys(), frameworks & sys.modules.keys()
for name, library, extra in (
    ("gymnasium", "gymnasium", "gym"), ("sb3", "stable_baselines3", "sb3"), ("rllib", "ray", "rllib"),
):
    sys.modules[library] = None
    try:
        getattr(forethought.adapters, name)
    except ModuleNotFoundError as error:
        assert f"pip install 'forethought[{extra}]'" in str(error), error
    else:
        raise AssertionError(name)
    if library == "gymnasium":
        del sys.modules[library]
try:
    forethought.adapters.keras
except AttributeError as error:
    assert "'keras'" in str(error)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
