"""A curriculum that gives out every task once, and an environment that keeps a record: who ran what is then plain."""

import gymnasium as gym
import numpy as np

from forethought import Curriculum, Task, TaskSet

TASKS = 4000


def outcome(task):
    """What every episode of a task comes to, so that a task given for another shows."""
    return (task % 11) / 10


def length(task):
    """Steps of an episode."""
    return 1 + task % 3


class Counting(Curriculum):
    """Gives out the tasks 0, 1, 2, ... one after the other, and keeps what it is told."""

    def __init__(self, **settings):
        super().__init__(TaskSet([Task(str(n), f"Task {n}.") for n in range(TASKS)]), **settings)
        self.given = 0
        self.told = []

    def sample(self, k, fixed=None):
        held = [task for task, slots in (fixed or {}).items() for _ in range(slots)]
        first = self.given
        self.given += k - len(held)
        return np.array([*held, *range(first, self.given)], np.int64)

    def update(self, task_indices, successes, episodes=None):
        self.told.append((np.array(task_indices), np.array(successes), np.array(episodes)))
        super().update(task_indices, successes, episodes)

    def check(self):
        """Every task that was told has its own outcome; returns how often each was."""
        counts = np.zeros(TASKS, int)
        for tasks, successes, episodes in self.told:
            np.testing.assert_allclose(successes, [outcome(task) for task in tasks])
            np.add.at(counts, tasks, episodes)
        return counts


class Probe(gym.Env):
    """Keeps the task and the options of every reset, and the steps of every episode."""

    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first=0, kind=float):
        self.task = first
        self.kind = kind
        self.tasks, self.options, self.steps = [], [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tasks.append(self.task)
        self.options.append(options)
        self.steps.append(0)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps[-1] += 1
        ended = self.steps[-1] == length(self.tasks[-1])
        info = {"is_success": self.kind(outcome(self.tasks[-1]))} if ended else {"is_success": False}
        # Half of the tasks end by themselves, half are cut.
        terminated = ended and self.tasks[-1] % 2 == 0
        return np.zeros(1, np.float32), float(ended), terminated, ended and not terminated, info

    def record(self):
        """Task and steps of each episode, by reset."""
        return list(zip(self.tasks, self.steps, strict=True))


def change_task(env, task):
    env.unwrapped.task = task


class Taking(Probe):
    """A probe with a `set_task` of its own, for the next reset."""

    def set_task(self, task_index):
        self.task = task_index
