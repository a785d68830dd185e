"""A curriculum as a callback of Stable-Baselines3, for any of its algorithms and vector environments."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from forethought.adapters import missing
from forethought.adapters.assignments import EPISODES_PER_ENVIRONMENT, Assignments, Success, check_settings, is_success
from forethought.curriculum import Curriculum
from forethought.curriculum.curriculum import Slots

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise missing("stable-baselines3", "sb3") from error


class CurriculumCallback(BaseCallback):
    """Lets a curriculum choose the task of every environment that a Stable-Baselines3 algorithm trains in.

    Every environment needs a method `set_task(task_index: int)` that takes effect when it is next reset; the wrapper
    `forethought.adapters.gymnasium.TaskWrapper` gives it one. The callback sets the next task before the vector
    environment resets, so it works with `DummyVecEnv` and `SubprocVecEnv` alike. The curriculum lives in this
    callback, in the trainer's process, and nowhere else.

    Training begins with a reset under the curriculum's first tasks. `learn(..., reset_num_timesteps=False)` with the
    same callback goes on amid the episodes.

    Args:
        curriculum: decides; may be shared with nothing else that samples or updates.
        iteration_steps: environment steps, over all environments, from one update of the curriculum to the next.
        new_task: whether an environment takes up another task with every episode, or keeps one for an iteration.
        fixed: task (index or id) -> environments that always run it; they are the first ones, in this order.
        success: last info of an episode -> its outcome in [0, 1]; by default `info["is_success"]`. With SB3's
            `Monitor`, `lambda info: info["episode"]["r"] > 0` is another.
        episodes_per_environment: most recent episodes that count, of each environment on each task in an iteration.
        verbose: as in Stable-Baselines3.

    Raises:
        ValueError: if a number is out of range; when training begins, if an environment has no `set_task`; amid
            training, if an episode's success is missing or out of range.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        *,
        iteration_steps: int,
        new_task: Literal["episode", "iteration"] = "episode",
        fixed: Slots | None = None,
        success: Success = is_success,
        episodes_per_environment: int = EPISODES_PER_ENVIRONMENT,
        verbose: int = 0,
    ):
        super().__init__(verbose)
        check_settings(iteration_steps, new_task, episodes_per_environment)
        self.curriculum = curriculum
        self._settings: dict[str, Any] = {
            "iteration_steps": iteration_steps,
            "new_task": new_task,
            "fixed": fixed,
            "episodes_per_environment": episodes_per_environment,
        }
        self._success = success
        self._assignments = Assignments(curriculum, 0, **self._settings)
        self._environments: VecEnv | None = None

    def state_dict(self) -> dict[str, Any]:
        """The curriculum's state and the episodes it has not heard of yet; numbers, strings and arrays, flat."""
        return self._assignments.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; call it before `learn`.

        Raises:
            ValueError: if the state is incomplete, or not of this curriculum; nothing has changed then.
        """
        self._assignments.load_state_dict(state)

    def _on_training_start(self) -> None:
        environments = self.training_env
        if environments is self._environments and not self.locals.get("reset_num_timesteps", True):
            return
        if not environments.has_attr("set_task"):
            raise ValueError(
                "the environments have no set_task(task_index); wrap each in forethought.adapters.gymnasium.TaskWrapper"
            )
        self._environments = environments
        before = self._assignments
        self._assignments = Assignments(self.curriculum, environments.num_envs, **self._settings)
        self._assignments.pending, self._assignments.steps = before.pending, before.steps
        everything = range(environments.num_envs)
        self._assignments.begin()
        self._assign(everything)
        # `learn` has reset the environments already, before any callback could set a task.
        model: Any = self.model
        model._last_obs = environments.reset()
        model._last_episode_starts = np.ones(environments.num_envs, bool)
        if model._vec_normalize_env is not None:
            model._last_original_obs = model._vec_normalize_env.get_original_obs()
        self._assign(self._assignments.started(everything))

    def _on_step(self) -> bool:
        assignments = self._assignments
        infos, dones = self.locals["infos"], self.locals["dones"]
        ended = np.flatnonzero(dones).tolist()
        for environment in ended:
            assignments.finished(environment, self._success(infos[environment]))
        changed = assignments.started(ended)
        if assignments.advance(len(dones)):
            changed = range(len(dones))
            for name, value in self.curriculum.metrics().items():
                self.logger.record(f"curriculum/{name}", value)
        self._assign(changed)
        return True

    def _assign(self, environments: Iterable[int]) -> None:
        for environment in environments:
            task = int(self._assignments.next[environment])
            self.training_env.env_method("set_task", task, indices=[environment])
