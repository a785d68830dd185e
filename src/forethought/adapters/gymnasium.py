"""Gymnasium: environments that take tasks, and vector environments in which a curriculum chooses them."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from forethought.adapters import missing
from forethought.adapters.assignments import EPISODES_PER_ENVIRONMENT, Assignments, Success, is_success
from forethought.curriculum import Curriculum
from forethought.curriculum.curriculum import Slots

try:
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
except ModuleNotFoundError as error:
    raise missing("gymnasium", "gym") from error

ChangeTask = Callable[[gym.Env, int], Mapping[str, Any] | None]
"""Makes an environment ready for a task, just before it is reset; may return options for that reset."""


class TaskWrapper(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Gives an environment `set_task`: the task that it takes up when it is next reset, whoever resets it.

    Every info has the task of the running episode as `info["task"]`.

    Args:
        env: the environment.
        change_task: called with `env` and the task's index just before each reset; a mapping that it returns joins
            the options of that reset, where the caller's own options win. None if `env` has a `set_task(task_index)`
            of its own.
        success: last info of an episode -> its outcome in [0, 1], which becomes `info["is_success"]`. None leaves
            that to the environment.
        task: the first task.

    Raises:
        ValueError: if `change_task` is None and the environment has no `set_task`.

    Example:
        >>> import gymnasium as gym
        >>> def change_gravity(env, task):
        ...     env.unwrapped.gravity = (1.6, 9.8)[task]
        >>> env = TaskWrapper(gym.make("CartPole-v1"), change_gravity)
        >>> env.set_task(1)
        >>> _, info = env.reset(seed=0)
        >>> info["task"], env.unwrapped.gravity
        (1, 9.8)
    """

    def __init__(
        self, env: gym.Env, change_task: ChangeTask | None = None, *, success: Success | None = None, task: int = 0
    ):
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, change_task=change_task, success=success, task=task
        )
        gym.Wrapper.__init__(self, env)
        if change_task is None and not env.has_wrapper_attr("set_task"):
            raise ValueError(f"{env} has no set_task(task_index); pass change_task(env, task_index)")
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
        return observation, self._told(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, with the task in the info, and with the success where the episode ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = self._told(info)
        if self._success is not None and (terminated or truncated):
            info["is_success"] = float(self._success(info))
        return observation, reward, terminated, truncated, info

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        info = {**info, "task": self.task}
        # A vector environment stores all infos in the type that it sees first: as a truth, 0.5 would become True.
        if isinstance(info.get("is_success"), bool | int | np.bool_ | np.number):
            info["is_success"] = float(info["is_success"])
        return info


class CurriculumVectorEnv(VectorWrapper):
    """A vector environment in which a curriculum gives every environment its task before each reset.

    The loop is the usual one: `reset`, `step`, `step`, ...; the curriculum hears of every finished episode and is
    updated after each `iteration_steps`. All three autoreset modes are served; with `AutoresetMode.DISABLED`, reset
    the environments that ended through `options={"reset_mask": mask}`. The curriculum lives here, in the process of
    the loop, also when the environments live in others.

    Args:
        env: `SyncVectorEnv` or `AsyncVectorEnv`, or wrappers around one; each of its environments has a `TaskWrapper`.
        curriculum: decides; may be shared with nothing else that samples or updates.
        iteration_steps: environment steps, over all environments, from one update of the curriculum to the next.
        new_task: whether an environment takes up another task with every episode, or keeps one for an iteration.
        fixed: task (index or id) -> environments that always run it; they are the first ones, in this order.
        success: last info of an episode -> its outcome in [0, 1]; by default `info["is_success"]`. If `env` is
            wrapped in `RecordEpisodeStatistics`, `lambda info: info["episode"]["r"] > 0` is another.
        episodes_per_environment: most recent episodes that count, of each environment on each task in an iteration.

    Raises:
        ValueError: if a number is out of range, or `env` has no autoreset mode or no `TaskWrapper`; in `step`, if an
            episode's success is missing or out of range.

    Example:
        >>> import gymnasium as gym
        >>> from forethought import Curriculum, Task, TaskSet
        >>> def change_gravity(env, task):
        ...     env.unwrapped.gravity = (1.6, 9.8)[task]
        >>> def make():
        ...     env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1", max_episode_steps=50))
        ...     return TaskWrapper(env, change_gravity, success=lambda info: info["episode"]["l"] == 50)
        >>> tasks = TaskSet([Task("moon", "Balance on the moon."), Task("earth", "Balance on the earth.")])
        >>> envs = CurriculumVectorEnv(gym.vector.SyncVectorEnv([make] * 4), Curriculum(tasks), iteration_steps=400)
        >>> _ = envs.action_space.seed(0)
        >>> observations, infos = envs.reset(seed=0)
        >>> for _ in range(250):
        ...     observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> envs.curriculum.iteration
        2
    """

    def __init__(
        self,
        env: VectorEnv,
        curriculum: Curriculum,
        *,
        iteration_steps: int,
        new_task: Literal["episode", "iteration"] = "episode",
        fixed: Slots | None = None,
        success: Success = is_success,
        episodes_per_environment: int = EPISODES_PER_ENVIRONMENT,
    ):
        super().__init__(env)
        self.curriculum = curriculum
        self._mode = env.metadata.get("autoreset_mode")
        if not isinstance(self._mode, AutoresetMode):
            raise ValueError(
                f"{env} has the autoreset mode {self._mode!r}; allowed: {', '.join(map(str, AutoresetMode))}"
            )
        check_takes_tasks(env)
        self._success = success
        self._assignments = Assignments(
            curriculum,
            env.num_envs,
            iteration_steps=iteration_steps,
            new_task=new_task,
            fixed=fixed,
            episodes_per_environment=episodes_per_environment,
        )
        self._begun = False
        self._ended = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`, each to the task that is its own."""
        options = None if options is None else dict(options)
        mask = (options or {}).get("reset_mask")
        if mask is None or not self._begun:
            self._assignments.begin()
            self._begun = True
            assign(self.env, self._assignments.next)
        result = self.env.reset(seed=seed, options=options)  # pyright: ignore[reportArgumentType]
        started = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        self._ended[started] = False
        self._start(started)
        return result

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; where one is reset, it takes up its next task."""
        assignments = self._assignments
        result = self.env.step(actions)
        _, _, terminations, truncations, infos = result
        restarted = np.zeros(self.num_envs, bool)
        if self._mode is AutoresetMode.NEXT_STEP:
            # These were reset instead of stepped.
            restarted = self._ended
            self._start(np.flatnonzero(restarted))
        self._ended = np.logical_or(terminations, truncations)
        ended = np.flatnonzero(self._ended)
        for environment in ended.tolist():
            assignments.finished(environment, self._success(_last_info(infos, environment)))
        if self._mode is AutoresetMode.SAME_STEP:
            self._start(ended)
        if assignments.advance(int(np.count_nonzero(~restarted))):
            assign(self.env, assignments.next)
        return result

    def state_dict(self) -> dict[str, Any]:
        """The curriculum's state and the episodes it has not heard of yet; numbers, strings and arrays, flat."""
        return self._assignments.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; call it before `reset`.

        Raises:
            ValueError: if the state is incomplete, or not of this curriculum; nothing has changed then.
        """
        self._assignments.load_state_dict(state)

    def _start(self, environments: np.ndarray) -> None:
        if self._assignments.started(environments.tolist()):
            assign(self.env, self._assignments.next)


def check_takes_tasks(env: VectorEnv) -> None:
    """Refuse a vector environment unless each of its environments has a `TaskWrapper`, by a ValueError."""
    call: Any = getattr(env.unwrapped, "call", None)
    if call is None or not hasattr(env.unwrapped, "set_attr"):
        raise ValueError(f"{env.unwrapped} cannot set attributes; allowed: SyncVectorEnv, AsyncVectorEnv")
    lacking = [index for index, has in enumerate(call("has_wrapper_attr", "next_task")) if not has]
    if lacking:
        raise ValueError(f"environments {lacking} of {env} take no tasks; wrap each in TaskWrapper")


def assign(env: VectorEnv, tasks: np.ndarray) -> None:
    """Set the task that each environment takes up when it is next reset."""
    # Options of a reset reach all environments or, when one resets itself, none; attributes reach each its own.
    vector: Any = env.unwrapped
    vector.set_attr("next_task", tasks.tolist())


def _set_task(env: gym.Env, task: int) -> None:
    env.get_wrapper_attr("set_task")(task)


def _last_info(infos: dict[str, Any], environment: int) -> dict[str, Any]:
    """The info with which an environment's episode ended, out of the infos of all."""
    if "final_info" not in infos:
        return _info(infos, environment)
    # The rest of the infos is of the next episode by now, except what `RecordEpisodeStatistics` adds.
    statistics = {key: infos[key] for key in ("episode", "_episode") if key in infos}
    return _info(statistics, environment) | _info(infos["final_info"], environment)


def _info(infos: dict[str, Any], environment: int) -> dict[str, Any]:
    result = {}
    for key, values in infos.items():
        is_mask = key.startswith("_") and key[1:] in infos
        if is_mask or not infos.get(f"_{key}", np.ones(environment + 1, bool))[environment]:
            continue
        result[key] = _info(values, environment) if isinstance(values, dict) else values[environment]
    return result
