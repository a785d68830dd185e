"""Which environment gets which task next, and what came of it: what the adapters to trainers share."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
from jaxtyping import Int64

from forethought.curriculum import Curriculum, latest_per_environment
from forethought.curriculum.curriculum import Slots

Success = Callable[[Mapping[str, Any]], Any]
"""The last info of an episode -> its outcome in [0, 1]; True and False will do."""

EPISODES_PER_ENVIRONMENT = 5
"""Most recent episodes of an environment that count (paper, A.2)."""

_PENDING = {"pending_environments": np.int64, "pending_tasks": np.int64, "pending_successes": np.float64}


class Assignments:
    """The tasks of a fixed number of environments under one curriculum, over its iterations.

    An environment has a task that it runs and one that it takes up when it is next reset. The order of calls:
    `begin`, reset all, `started` for all; then step after step `finished` for the episodes that ended, `started` for
    the environments that were reset, and `advance`. `begin`, and `advance` when it is true, change what all
    environments take up next, and `started` what those do that it returns; `next` must reach them before their reset.

    Args:
        curriculum: decides; may be shared with nothing else that samples or updates.
        num_envs: environments, at least 1.
        iteration_steps: environment steps, over all environments, from one update of the curriculum to the next.
        new_task: whether an environment takes up another task with every episode, or keeps one for an iteration.
        fixed: task (index or id) -> environments that always run it; they are the first ones, in this order.
        episodes_per_environment: most recent episodes that count, of each environment on each task in an iteration.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        num_envs: int,
        *,
        iteration_steps: int,
        new_task: Literal["episode", "iteration"] = "episode",
        fixed: Slots | None = None,
        episodes_per_environment: int = EPISODES_PER_ENVIRONMENT,
    ):
        check_settings(iteration_steps, new_task, episodes_per_environment)
        self.curriculum = curriculum
        self.next: Int64[np.ndarray, " env"] = np.zeros(num_envs, np.int64)
        """What each environment takes up when it is next reset."""
        self.running: Int64[np.ndarray, " env"] = np.zeros(num_envs, np.int64)
        """What each environment runs now."""
        self.pending: list[tuple[int, int, float]] = []
        """Environment, task and success of the episodes that ended since the last update."""
        self.steps = 0
        """Environment steps since the last update."""
        self._iteration_steps = iteration_steps
        self._each_episode = new_task == "episode"
        self._fixed = fixed or {}
        self._held = 0
        self._episodes = episodes_per_environment

    def begin(self) -> None:
        """Give every environment a new task to take up."""
        self.next = self.curriculum.sample(self.next.size, self._fixed)
        self._held = sum(self._fixed.values())

    def started(self, environments: Iterable[int]) -> list[int]:
        """Take note that environments were reset; returns those with something new to take up next."""
        changed = []
        for environment in environments:
            self.running[environment] = self.next[environment]
            if self._each_episode and environment >= self._held:
                self.next[environment] = self.curriculum.sample(1)[0]
                changed.append(environment)
        return changed

    def finished(self, environment: int, success: Any) -> None:
        """Record the outcome of the episode that an environment ran.

        Raises:
            ValueError: if the outcome is no number in [0, 1].
        """
        outcome = checked(success, self.curriculum.tasks.ids[self.running[environment]], environment)
        self.pending.append((environment, int(self.running[environment]), outcome))

    def advance(self, steps: int) -> bool:
        """Count environment steps; where they complete an iteration, update the curriculum and `begin` the next."""
        self.steps += steps
        if self.steps < self._iteration_steps:
            return False
        # What goes beyond belongs to the next iteration, so that `n` steps hold `n // iteration_steps` of them.
        self.steps %= self._iteration_steps
        self.curriculum.update(*self.observations())
        self.pending.clear()
        self.begin()
        return True

    def observations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the pending episodes tell `Curriculum.update`: tasks, mean successes, numbers of episodes."""
        return pooled(self.pending, len(self.curriculum.tasks), self._episodes)

    def state_dict(self) -> dict[str, Any]:
        """The curriculum's state and the episodes that it has not heard of yet."""
        columns = zip(*self.pending, strict=True) if self.pending else [(), (), ()]
        pending = {
            name: np.array(column, dtype) for (name, dtype), column in zip(_PENDING.items(), columns, strict=True)
        }
        return self.curriculum.state_dict() | {"pending_steps": self.steps} | pending

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, at the beginning of an episode everywhere.

        Raises:
            ValueError: if the state is incomplete, or not of this curriculum; nothing has changed then.
        """
        if lacking := sorted({"pending_steps", *_PENDING} - state.keys()):
            raise ValueError(f"state lacks {', '.join(lacking)}")
        columns = [np.asarray(state[name]).tolist() for name in _PENDING]
        if len({len(column) for column in columns}) != 1:
            raise ValueError(f"state has columns of different lengths: {', '.join(_PENDING)}")
        ids = self.curriculum.tasks.ids
        if unknown := [task for task in columns[1] if not 0 <= task < len(ids)]:
            raise ValueError(f"state's pending_tasks holds {unknown[0]!r}; allowed: 0 to {len(ids) - 1}")
        pending = [(env, task, checked(success, ids[task], env)) for env, task, success in zip(*columns, strict=True)]
        steps = int(state["pending_steps"])
        self.curriculum.load_state_dict(state)
        self.pending, self.steps = pending, steps


def is_success(info: Mapping[str, Any]) -> Any:
    """The default `Success`: `info["is_success"]`, as Stable-Baselines3 and Gymnasium-Robotics have it.

    Raises:
        ValueError: if it is not there.
    """
    if "is_success" not in info:
        raise ValueError(
            "the last info of an episode has no 'is_success'; let the environment set it, or pass success=, "
            f"a function of that info, which has {', '.join(map(repr, sorted(map(str, info)))) or 'nothing'}"
        )
    return info["is_success"]


def checked(success: Any, task: str, environment: int) -> float:
    """An outcome as a number; a ValueError that names the task and the environment if it is none in [0, 1]."""
    try:
        outcome = float(success)
    except (TypeError, ValueError):
        outcome = np.nan
    if not 0 <= outcome <= 1:
        raise ValueError(
            f"an episode of task {task!r} in environment {environment} has the success {success!r}; "
            "allowed: numbers in [0, 1], True and False"
        )
    return outcome


def pooled(
    episodes: Iterable[tuple[int, int, float]], num_tasks: int, latest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tasks, mean successes and numbers of episodes of the latest episodes of each environment on each task.

    Args:
        episodes: environment, task and success of each, in the order in which they ended.
        num_tasks: tasks of the curriculum.
        latest: episodes that count, of each environment on each task.
    """
    episodes = list(episodes)
    keys = np.array([environment * num_tasks + task for environment, task, _ in episodes], np.int64)
    keys, means, counts = latest_per_environment(keys, [success for *_, success in episodes], latest)
    return keys % num_tasks, means, counts


def check_settings(iteration_steps: object, new_task: object, episodes_per_environment: object) -> None:
    """Refuse settings that are out of range, by a ValueError that names the setting, the value and the range."""
    for name, value in (("iteration_steps", iteration_steps), ("episodes_per_environment", episodes_per_environment)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} is {value!r}; allowed: a whole number >= 1")
    if new_task not in ("episode", "iteration"):
        raise ValueError(f"new_task is {new_task!r}; allowed: 'episode', 'iteration'")
