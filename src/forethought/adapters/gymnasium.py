"""Gymnasium: environments that take tasks, and vector environments in which a curriculum chooses them."""

from collections.abc import Callable, Mapping
from typing import Any

from forethought.adapters import missing
from forethought.adapters.assignments import Success

try:
    import gymnasium as gym
except ModuleNotFoundError as error:
    raise missing("gymnasium", "gym") from error

ChangeTask = Callable[[gym.Env, int], Mapping[str, Any] | None]
"""Makes an environment ready for a task, just before it is reset; may return options for the reset."""


class TaskWrapper(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Gives an environment `set_task`: the task that it takes up when it is next reset, whoever resets it.

    Every info has the task of the running episode as `info["task"]`.

    Args:
        env: the environment.
        change_task: called with the environment and the task's index just before each reset; a mapping that it
            returns joins the options of that reset (the caller's own options win). None if `env` has a
            `set_task(task_index)` of its own.
        success: last info of an episode -> its outcome in [0, 1], which becomes `info["is_success"]`. None leaves
            that to the environment.
        task: the first task.

    Raises:
        ValueError: if `change_task` is None and the environment has no `set_task`.

    Example:
        >>> import gymnasium as gym
        >>> def gravity(env, task):
        ...     env.unwrapped.gravity = (1.6, 9.8)[task]
        >>> env = TaskWrapper(gym.make("CartPole-v1"), gravity)
        >>> env.set_task(1)
        >>> _, info = env.reset(seed=0)
        >>> info["task"], env.unwrapped.gravity
        (1, 9.8)
    """

    def __init__(
        self, env: gym.Env, change_task: ChangeTask | None = None, *, success: Success | None = None, task: int = 0
    ):
        gym.utils.RecordConstructorArgs.__init__(self, change_task=change_task, success=success, task=task)
        gym.Wrapper.__init__(self, env)
        if change_task is None and not env.has_wrapper_attr("set_task"):
            raise ValueError(
                f"{env} has no set_task(task_index); pass change_task, a function of it and a task's index"
            )
        self._change_task = change_task or _set_task
        self._success = success
        self.next_task = int(task)
        """What the environment takes up when it is next reset."""
        self.task = int(task)
        """The task of the running episode."""

    def set_task(self, task_index: int) -> None:
        """Take up a task at the next reset."""
        self.next_task = int(task_index)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Take up the task that is due, and reset."""
        self.task = self.next_task
        chosen = self._change_task(self.env, self.task)
        if chosen is not None:
            options = {**chosen, **(options or {})}
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "task": self.task}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, with the task in the info, and with the success where the episode ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = {**info, "task": self.task}
        if self._success is not None and (terminated or truncated):
            info["is_success"] = self._success(info)
        return observation, reward, terminated, truncated, info


def _set_task(env: gym.Env, task: int) -> None:
    env.get_wrapper_attr("set_task")(task)
