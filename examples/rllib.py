"""PPO of RLlib, its environments in other processes, with tasks from a curriculum.

pip install 'forethought[rllib]'
python examples/rllib.py        # a minute
"""

import argparse
from functools import partial

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

from forethought import Curriculum, CurriculumConfig, FeasibilityEvidence, LearningConnectivity, Task, TaskSet
from forethought.adapters.gymnasium import TaskWrapper
from forethought.adapters.rllib import CurriculumCallback

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


def make(config):
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


def train(iterations=20, steps=1000):
    """Train with two remote runners of four environments each; returns the curriculum's state."""
    register_env("corridor", make)
    config = (
        PPOConfig()
        .environment("corridor")
        .env_runners(num_env_runners=2, num_envs_per_env_runner=4)
        .callbacks(partial(CurriculumCallback, curriculum))
        .training(train_batch_size_per_learner=steps, minibatch_size=128, num_epochs=8, lr=1e-3, entropy_coeff=0.01)
        .rl_module(model_config={"fcnet_hiddens": [64]})
    )
    algorithm = config.build_algo()
    for iteration in range(iterations):
        result = algorithm.train()
        metrics = result["curriculum"]
        print(f"{iteration + 1:3} success {metrics['mean_success_rate']:.2f} solved {metrics['solved_share']:.2f}")
    ours = algorithm.callbacks[0]
    print(f"success door by door: {ours.curriculum.success_rate.round(1)}")
    # Beside `algorithm.save_to_path(...)`, which knows nothing of it; `ours.load_state_dict(state)` goes on.
    state = ours.state_dict()
    algorithm.stop()
    return state


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20)
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    train(**vars(parser.parse_args()))
