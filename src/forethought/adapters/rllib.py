"""A curriculum as a callback of RLlib (its new API stack), for any of its single-agent algorithms."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from forethought.adapters import missing
from forethought.adapters.assignments import (
    EPISODES_PER_ENVIRONMENT,
    Success,
    check_settings,
    checked,
    is_success,
    pooled,
)
from forethought.adapters.gymnasium import assign, check_takes_tasks
from forethought.curriculum import Curriculum
from forethought.curriculum.curriculum import Slots

try:
    from ray.rllib.callbacks.callbacks import RLlibCallback
except ModuleNotFoundError as error:
    raise missing("ray[rllib]", "rllib") from error

DRAWS = 64
"""Tasks drawn ahead for each environment in an iteration; an environment that needs more goes through them again."""


class CurriculumCallback(RLlibCallback):
    """Lets a curriculum choose the task of every episode that an RLlib algorithm samples for training.

    RLlib copies its configuration and makes callbacks of its own in every process, so the configuration takes a
    function that makes the curriculum:
    `config.callbacks(functools.partial(CurriculumCallback, make_curriculum))`. It is called once, in the process of
    the algorithm; `algorithm.callbacks[0].curriculum` is what it made. Every environment needs a
    `forethought.adapters.gymnasium.TaskWrapper`.

    An iteration of the curriculum is one of the algorithm's: after each `algorithm.train()` the curriculum hears of
    all episodes that ended, and its metrics are in `result["curriculum"]`. An environment takes up its task before
    each reset. Evaluation is left alone: there an environment keeps the task that it was made with.

    RLlib's checkpoints do not hold the curriculum: save `state_dict()` beside them, and load it after
    `Algorithm.from_checkpoint` and before `train`.

    Args:
        make_curriculum: makes the curriculum.
        new_task: whether an environment takes up another task with every episode, or keeps one for an iteration.
        fixed: task (index or id) -> environments that always run it; they are the first ones, in this order.
        success: last info of an episode -> its outcome in [0, 1]; by default `info["is_success"]`.
        episodes_per_environment: most recent episodes that count, of each environment on each task in an iteration.

    Raises:
        ValueError: if a setting is out of range; when the algorithm is built, if an environment has no `TaskWrapper`
            or the old API stack is used; amid training, if an episode's success is missing or out of range.
    """

    def __init__(
        self,
        make_curriculum: Callable[[], Curriculum],
        *,
        new_task: Literal["episode", "iteration"] = "episode",
        fixed: Slots | None = None,
        success: Success = is_success,
        episodes_per_environment: int = EPISODES_PER_ENVIRONMENT,
    ):
        super().__init__()
        check_settings(1, new_task, episodes_per_environment)
        self._make_curriculum = make_curriculum
        self._draws = DRAWS if new_task == "episode" else 1
        self._fixed = fixed or {}
        self._success = success
        self._episodes_per_environment = episodes_per_environment
        self._curriculum: Curriculum | None = None
        self._runners: Any = None

    # ------------------------------------------------------------------ in the algorithm's process

    @property
    def curriculum(self) -> Curriculum:
        """The curriculum; it exists in the process of the algorithm only."""
        if self._curriculum is None:
            raise RuntimeError("the curriculum exists in algorithm.callbacks only, once the algorithm is built")
        return self._curriculum

    def state_dict(self) -> dict[str, Any]:
        """The curriculum's state; between two calls of `train` it has heard of every episode."""
        return self.curriculum.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, with new tasks from the next reset of each environment on.

        Raises:
            ValueError: if the state is incomplete, or not of this curriculum; nothing has changed then.
        """
        self.curriculum.load_state_dict(state)
        self._give()

    def on_algorithm_init(self, *, algorithm: Any, **kwargs: Any) -> None:
        """Make the curriculum and hand out the first tasks, before any environment is reset."""
        if not algorithm.config.enable_env_runner_and_connector_v2:
            raise ValueError("CurriculumCallback needs RLlib's new API stack: enable_env_runner_and_connector_v2=True")
        self._curriculum = self._make_curriculum()
        self._runners = algorithm.env_runner_group
        self._give()

    def on_train_result(self, *, algorithm: Any, result: dict, **kwargs: Any) -> None:
        """Tell the curriculum what ended, and hand out new tasks."""
        ended, ids = [], self.curriculum.tasks.ids
        for worker, size, episodes in self._runners.foreach_env_runner(_collect):
            for environment, task, success in episodes:
                ended.append((worker * size + environment, task, checked(success, ids[task], environment)))
        self.curriculum.update(*pooled(ended, len(ids), self._episodes_per_environment))
        result["curriculum"] = self.curriculum.metrics()
        self._give()

    def on_env_runners_recreated(self, *, is_evaluation: bool, **kwargs: Any) -> None:
        """Hand out tasks to environments that take the place of lost ones."""
        if not is_evaluation:
            self._give()

    def _give(self) -> None:
        """Draw what every environment takes up from its next reset on, and send it."""
        sizes = dict(self._runners.foreach_env_runner(_size))
        first = self.curriculum.sample(sum(sizes.values()), self._fixed)
        held = sum(self._fixed.values())
        queues = [
            [int(task)]
            if self._draws == 1 or index < held
            else [int(task), *self.curriculum.sample(self._draws - 1).tolist()]
            for index, task in enumerate(first)
        ]
        given = {}
        for worker in sorted(sizes):
            given[worker], queues = queues[: sizes[worker]], queues[sizes[worker] :]
        self._runners.foreach_env_runner(partial(_take, given=given))

    # ------------------------------------------------------------------ in the processes of the environments

    def on_episode_created(self, *, env_runner: Any = None, env: Any = None, env_index: int, **kwargs: Any) -> None:
        """Set an environment's task, just before it is reset."""
        tasks = _tasks(env_runner)
        if tasks is not None:
            tasks.take_up(env_index)
            assign(env, tasks.running)

    def on_episode_end(self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any) -> None:
        """Keep the outcome of an episode until the algorithm asks for it."""
        tasks = _tasks(env_runner)
        if tasks is not None:
            tasks.ended.append((env_index, int(tasks.running[env_index]), self._success(episode.get_infos(-1))))


class _Tasks:
    """The tasks of one runner's environments, and what came of them since the algorithm last asked."""

    def __init__(self, size: int):
        self.queues: list[list[int]] = [[0]] * size
        self.taken = np.zeros(size, np.int64)
        self.running = np.zeros(size, np.int64)
        self.ended: list[tuple[int, int, Any]] = []

    def take_up(self, environment: int) -> None:
        queue = self.queues[environment]
        self.running[environment] = queue[self.taken[environment] % len(queue)]
        self.taken[environment] += 1


def _tasks(runner: Any) -> _Tasks | None:
    return getattr(runner, "forethought_tasks", None)


def _size(runner: Any) -> tuple[int, int]:
    """A runner's number, and the number of its environments; the algorithm's own runner may have none."""
    return runner.worker_index, 0 if runner.env is None else runner.num_envs


def _collect(runner: Any) -> tuple[int, int, list[tuple[int, int, Any]]]:
    tasks = _tasks(runner)
    ended = []
    if tasks is not None:
        ended, tasks.ended = tasks.ended, []
    return *_size(runner), ended


def _take(runner: Any, given: Mapping[int, list[list[int]]]) -> None:
    queues = given.get(runner.worker_index)
    if not queues:
        return
    tasks = _tasks(runner)
    if tasks is None:
        check_takes_tasks(runner.env)
        tasks = runner.forethought_tasks = _Tasks(len(queues))
    tasks.queues = queues
    tasks.taken[:] = 0
