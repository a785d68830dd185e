import numpy as np
import pytest
from probe import Counting, Probe, Taking, change_task, length, outcome
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from forethought import Curriculum, Task, TaskSet
from forethought.adapters.gymnasium import TaskWrapper
from forethought.adapters.sb3 import CurriculumCallback

ENVS = 3

# Forking is the fast way to processes of one's own; what these run starts no thread.
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def _subproc(makers):
    return SubprocVecEnv(makers, start_method="fork")


def _make():
    return TaskWrapper(Probe(), change_task, task=3999)


def _ppo(env):
    policy = {"net_arch": [4]}
    return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, policy_kwargs=policy, device="cpu")


def _callback(curriculum=None, **settings):
    return CurriculumCallback(curriculum or Counting(), **{"iteration_steps": 10} | settings)


def _finished(record):
    return [task for task, steps in record if steps == length(task)]


@pytest.mark.parametrize("new_task", ["episode", "iteration"])
@pytest.mark.parametrize("kind", [DummyVecEnv, _subproc])
def test_each_environment_takes_up_a_task_of_its_own_before_every_reset(kind, new_task):
    env = kind([_make] * ENVS)
    callback = _callback(new_task=new_task)
    _ppo(env).learn(96, callback=callback)
    records = env.env_method("record")
    env.close()

    counts = callback.curriculum.check()
    assert callback.curriculum.iteration == 96 // 10
    finished = []
    for index, (first, *record) in enumerate(records):
        # The first episode is the one that `learn` begins before any callback; no step is taken in it.
        assert first == (3999, 0)
        assert record[0][0] == index
        finished += _finished(record)
    if new_task == "episode":
        assert len(finished) == len(set(finished)) > 40
        pending = callback.state_dict()["pending_tasks"]
        assert sorted([*np.flatnonzero(counts), *pending]) == sorted(finished)
    else:
        # Tasks change with iterations only, and every environment has its own.
        assert 3 * 8 <= len(set(finished)) <= 3 * 10
        assert set(np.flatnonzero(counts)) <= set(finished)


def test_an_environment_that_takes_tasks_itself():
    env = DummyVecEnv([Taking] * ENVS)
    callback = _callback()
    _ppo(env).learn(48, callback=callback)
    assert callback.curriculum.check().sum() > 15


def test_other_algorithms_and_wrappers():
    env = VecNormalize(VecMonitor(DummyVecEnv([_make] * 2)))
    callback = _callback()
    model = DQN("MlpPolicy", env, learning_starts=20, buffer_size=200, seed=0, device="cpu")
    model.learn(60, callback=[callback])
    assert callback.curriculum.iteration == 6
    assert callback.curriculum.check().sum() > 20
    np.testing.assert_array_equal(model._last_original_obs, np.zeros((2, 1)))

    callback = _callback(success=lambda info: info["is_success"])
    A2C("MlpPolicy", DummyVecEnv([lambda: Monitor(_make())]), device="cpu").learn(30, callback=callback)
    assert callback.curriculum.check().sum() > 10


def test_success_from_a_monitor():
    tasks = TaskSet([Task("a", "A."), Task("b", "B.")])
    callback = _callback(Curriculum(tasks, method="unif"), success=lambda info: info["episode"]["r"] > 0)
    _ppo(DummyVecEnv([lambda: Monitor(_make())])).learn(32, callback=callback)
    assert callback.curriculum.success_rate.tolist() == [1, 1]


def test_learning_goes_on_amid_the_episodes():
    env = DummyVecEnv([_make] * ENVS)
    callback = _callback()
    model = _ppo(env)
    for _ in range(4):
        model.learn(48, callback=callback, reset_num_timesteps=False)
    counts = callback.curriculum.check()
    assert callback.curriculum.iteration == 4 * 48 // 10
    for record in env.env_method("record"):
        # After the reset of the first `learn`, no episode is cut short but the one that still runs.
        assert [task for task, _ in record[1:-1]] == _finished(record)[: len(record) - 2]
    assert counts.max() == 1


def test_learning_anew_begins_with_a_reset_to_new_tasks():
    env = DummyVecEnv([_make] * ENVS)
    callback = _callback()
    model = _ppo(env)
    model.learn(48, callback=callback)
    given = callback.curriculum.given
    before = env.env_method("record")
    model.learn(48, callback=callback)
    callback.curriculum.check()
    for index, record in enumerate(env.env_method("record")):
        unstepped, first = record[len(before[index])], record[len(before[index]) + 1]
        assert unstepped[1] == 0
        assert first[0] == given + index
    assert callback.curriculum.iteration == 96 // 10


def test_a_saved_state_goes_on(tmp_path):
    tasks = TaskSet([Task(str(n), f"Task {n}.") for n in range(6)])
    callback = _callback(Curriculum(tasks, seed=3))
    model = _ppo(DummyVecEnv([_make] * ENVS))
    model.learn(48, callback=callback)
    model.save(tmp_path / "model")
    np.savez(tmp_path / "curriculum.npz", **callback.state_dict())
    assert callback.state_dict()["pending_tasks"].size > 0

    ends = []
    for _ in range(2):
        env = DummyVecEnv([_make] * ENVS)
        again = _callback(Curriculum(tasks, seed=3))
        with np.load(tmp_path / "curriculum.npz") as state:
            again.load_state_dict(state)
        assert again.curriculum.iteration == 4
        np.testing.assert_array_equal(again.curriculum.probabilities, callback.curriculum.probabilities)
        resumed = PPO.load(tmp_path / "model", env=env, device="cpu")
        resumed.learn(48, callback=again, reset_num_timesteps=False)
        # 48 steps before and 48 after: none is lost on the way.
        assert again.curriculum.iteration == 9
        ends.append(env.env_method("record"))
    assert ends[0] == ends[1]
    # The first episodes after the resumption have the tasks that the curriculum would have drawn next.
    expected = callback.curriculum.sample(ENVS)
    assert [record[1][0] for record in ends[0]] == expected.tolist()


def test_fixed_environments():
    env = DummyVecEnv([_make] * ENVS)
    tasks = TaskSet([Task(str(n), f"Task {n}.") for n in range(6)])
    _ppo(env).learn(48, callback=_callback(Curriculum(tasks, method="unif"), fixed={"4": 2}))
    for index, (_, *record) in enumerate(env.env_method("record")):
        assert (len({task for task, _ in record}) == 1) == (index < 2)


def test_the_curriculum_is_logged():
    callback = _callback()
    model = _ppo(DummyVecEnv([_make] * ENVS))
    model.learn(48, callback=callback, log_interval=None)
    logged = dict(model.logger.name_to_value)
    assert logged["curriculum/iteration"] == 4
    assert {f"curriculum/{name}" for name in callback.curriculum.metrics()} <= logged.keys()


def test_environments_that_take_no_tasks():
    env = DummyVecEnv([Probe])
    with pytest.raises(ValueError, match=r"no set_task\(task_index\); wrap each in .*TaskWrapper"):
        _ppo(env).learn(48, callback=_callback())


def test_a_missing_success_tells_what_there_is():
    class Silent(Probe):
        def step(self, action):
            return *super().step(action)[:4], {"score": 3}

    model = _ppo(DummyVecEnv([lambda: Monitor(TaskWrapper(Silent(), change_task))]))
    with pytest.raises(ValueError, match=r"no 'is_success'; .* success=, .* which has .*'episode', 'score', 'task'"):
        model.learn(48, callback=_callback())


def test_settings_out_of_range():
    with pytest.raises(ValueError, match="iteration_steps is 0"):
        _callback(iteration_steps=0)


def test_every_outcome_is_its_tasks_own():
    # What the tests above rest on.
    assert len({outcome(task) for task in range(11)}) == 11
