"""A corridor of eight doors: each opens to one of three keys, and a wrong key leads back to the start."""

import gymnasium as gym
import numpy as np

from forethought import Task, TaskSet

DOORS = 8
TASKS = TaskSet([Task(f"door-{n + 1}", f"Go through door {n + 1}.") for n in range(DOORS)])


class Corridor(gym.Env):
    """See which door is ahead, choose a key; the task says how far to get."""

    observation_space = gym.spaces.Box(0, 1, (DOORS,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self):
        self.keys = np.random.default_rng(0).integers(3, size=DOORS)
        self.goal = 0
        self.place = 0

    def reset(self, *, seed=None, options=None):
        """Go back to the start."""
        super().reset(seed=seed)
        self.place = 0
        return self._look(), {}

    def step(self, action):
        """Try a key."""
        right = action == self.keys[self.place]
        self.place = self.place + 1 if right else 0
        success = self.place > self.goal
        return self._look(), float(success), success, False, {"is_success": success}

    def _look(self):
        return np.eye(DOORS, dtype=np.float32)[min(self.place, DOORS - 1)]


def change_task(env, task):
    """Make a corridor ready for a task, just before it is reset."""
    env.unwrapped.goal = task
