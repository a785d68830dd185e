"""A loop of one's own over Gymnasium's vector environments: Q-learning on a table, with tasks from a curriculum.

pip install 'forethought[gym]'
python examples/gymnasium_vector.py            # the curriculum against uniform sampling, some seconds
python examples/gymnasium_vector.py --processes    # the same, each environment in a process of its own
"""

import argparse

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from forethought import Curriculum, CurriculumConfig, FeasibilityEvidence, LearningConnectivity, Task, TaskSet
from forethought.adapters.gymnasium import CurriculumVectorEnv, TaskWrapper

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
    return TaskWrapper(gym.wrappers.TimeLimit(Corridor(), 2 * DOORS), change_task)


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


def train(method, seed=0, steps=15_000, num_envs=8, processes=False):
    """Learn the value of every key at every door; returns the curriculum."""
    vector = AsyncVectorEnv if processes else SyncVectorEnv
    envs = CurriculumVectorEnv(vector([make] * num_envs), curriculum(method, seed), iteration_steps=256)
    rng = np.random.default_rng(seed)
    values = np.zeros((DOORS, KEYS))

    observations, _ = envs.reset(seed=seed)
    reset = np.zeros(num_envs, bool)
    for _ in range(steps):
        doors = observations.argmax(axis=1)
        ties = values[doors] + 1e-6 * rng.random((num_envs, KEYS))
        actions = np.where(rng.random(num_envs) < 0.05, rng.integers(KEYS, size=num_envs), ties.argmax(axis=1))
        following, rewards, terminations, truncations, _ = envs.step(actions)
        ahead = np.where(terminations, 0.0, 0.97 * values[following.argmax(axis=1)].max(axis=1))
        # A vector environment spends one step on each reset: nothing is learned from that one.
        for env in np.flatnonzero(~reset):
            values[doors[env], actions[env]] += 0.2 * (rewards[env] + ahead[env] - values[doors[env], actions[env]])
        reset = terminations | truncations
        observations = following
    envs.close()
    return envs.curriculum


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", action="store_true")
    for method in ("unif", "alp+d+f"):
        result = train(method, **vars(parser.parse_args()))
        print(f"{method:8} success door by door: {result.success_rate.round(1)}")
        print(f"{method:8} and what it trains on: {result.probabilities.round(2)}")
