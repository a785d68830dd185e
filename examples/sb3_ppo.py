"""PPO of Stable-Baselines3 with tasks from a curriculum; stopped half-way, saved, and gone on with.

pip install 'forethought[sb3]'
python examples/sb3_ppo.py               # half a minute
python examples/sb3_ppo.py --processes   # each environment in a process of its own
"""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from forethought import Curriculum, CurriculumConfig, FeasibilityEvidence, LearningConnectivity, Task, TaskSet
from forethought.adapters.gymnasium import TaskWrapper
from forethought.adapters.sb3 import CurriculumCallback

DOORS, KEYS = 10, 4
TASKS = TaskSet([Task(f"door-{n + 1}", f"Go through door {n + 1}.") for n in range(DOORS)])


class Corridor(gym.Env):
    """See which door is ahead, choose a key; a wrong one leads back to the start, and the task says how far to get."""

    observation_space = gym.spaces.Box(0, 1, (DOORS,), np.float32)
    action_space = gym.spaces.Discrete(KEYS)

    def __init__(self):
        self.keys = np.random.default_rng(0).integers(KEYS, size=DOORS)
        self.goal = self.place = 0

    def reset(self, *, seed=None, options=None):
        """Go back to the start."""
        super().reset(seed=seed)
        self.place = 0
        return self._look(), {}

    def step(self, action):
        """Try a key."""
        self.place = self.place + 1 if action == self.keys[self.place] else 0
        success = self.place > self.goal
        return self._look(), float(success), success, False, {"is_success": success}

    def _look(self):
        return np.eye(DOORS, dtype=np.float32)[min(self.place, DOORS - 1)]


def change_task(env, task):
    """Make a corridor ready for a task; called just before it is reset."""
    env.unwrapped.goal = task


def make():
    """An environment that takes tasks."""
    return Monitor(TaskWrapper(gym.wrappers.TimeLimit(Corridor(), 2 * DOORS), change_task))


def curriculum(method="alp+d+f", seed=0):
    """All that matters is the last door; each door helps with the next, and shows that it is ready to be tried."""
    chain = np.eye(DOORS, k=1)
    first = np.eye(DOORS)[0]
    return Curriculum(
        TASKS.with_target(f"door-{DOORS}", share=0.5),
        connectivity=LearningConnectivity.from_weights(TASKS.ids, chain),
        feasibility=FeasibilityEvidence.from_weights(TASKS.ids, chain, from_scratch=first),
        method=method,
        seed=seed,
        config=CurriculumConfig(warmup=4, max_path_length=DOORS),
    )


def train(steps=20_000, folder=Path("."), num_envs=8, processes=False):
    """Train half of the steps, save, load all into new objects, train the other half; returns the curriculum."""
    torch.set_num_threads(1)  # A small network gains nothing from more.
    envs = (SubprocVecEnv if processes else DummyVecEnv)([make] * num_envs)
    callback = CurriculumCallback(curriculum(), iteration_steps=512)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=128, learning_rate=1e-3, seed=0, device="cpu")
    model.learn(steps // 2, callback=callback)
    model.save(folder / "model.zip")
    np.savez(folder / "curriculum.npz", **callback.state_dict())

    callback = CurriculumCallback(curriculum(), iteration_steps=512)
    with np.load(folder / "curriculum.npz") as state:
        callback.load_state_dict(state)
    model = PPO.load(folder / "model.zip", envs, device="cpu")
    model.learn(steps // 2, callback=callback, reset_num_timesteps=False)
    envs.close()
    return callback.curriculum


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", action="store_true")
    result = train(**vars(parser.parse_args()))
    print(f"success after {result.iteration} iterations, door by door: {result.success_rate.round(1)}")
    print(f"what it trains on now: {result.probabilities.round(2)}")
    print(f"why the last door has its share: {result.explain(TASKS.ids[-1])}")
