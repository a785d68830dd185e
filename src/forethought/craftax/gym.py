"""The benchmark as a Gymnasium environment: one game, one goal an episode.

    import gymnasium
    import forethought.craftax.gym

    env = gymnasium.make("forethought/Craftax-v0", goals=["have_1_wood", "see_cow"])
    env.unwrapped.set_task(1)  # from the next reset on
    observation, info = env.reset(seed=0)  # info["text"]: "See a cow."

A step that reaches the goal gives reward 1 and ends the episode. The engine plays wherever it is installed, and JAX is
not loaded then. Here it plays goals of one's own with a predicate too, which gets the states as NumPy arrays and need
not be fit to be compiled; handing them over makes such steps slower.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, SupportsFloat

import numpy as np

from forethought.craftax.backends import engine_fault, pick_backend
from forethought.craftax.interface import NUM_ACTIONS, OBSERVATION_SPEC
from forethought.craftax.own_goals import Goal, checked, chosen_goals, engine_rows, load_goals, with_own
from forethought.craftax.shipped import embeddings as shipped_embeddings
from forethought.embeddings import Embeddings

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the Gymnasium environment needs gymnasium: pip install 'forethought[gym]'", name="gymnasium"
    ) from error

ENV_ID = "forethought/Craftax-v0"


class CraftaxGoals(gymnasium.Env[dict[str, np.ndarray], np.int64]):
    """One game of Craftax with a goal, registered as `forethought/Craftax-v0`.

    An observation holds `cells` (uint8[9, 11, 8]: block, item, five creatures and projectiles, visible) and
    `features` (float32[51]) as everywhere in the benchmark, and `goal`, the vector of the goal's text. Every info holds
    `task` (the goal's number), `goal` (its id), `text`, and `is_success`.

    Args:
        goals: Ids of the goals, in the order of their numbers; none for all 256, and one's own after them.
        own_goals: Goals besides the benchmark's, or the Python file of them.
        backend: What plays: engine, jax, or auto for the engine where it is installed.
        episode_limit: Steps after which an episode is truncated.
        embeddings: Vectors of the goals' texts: `minilm` (384 wide), a file or `Embeddings`; None leaves them out.
        render_mode: None, or rgb_array.

    Raises:
        KeyError: A goal is unknown.
        ValueError: A number or a name is out of range, a goal has no vector, or JAX cannot compile its predicate.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's way

    def __init__(
        self,
        goals: Sequence[str] = (),
        *,
        own_goals: str | Path | Sequence[Goal] = (),
        backend: str = "auto",
        episode_limit: int = 4096,
        embeddings: str | Path | Embeddings | None = "minilm",
        render_mode: str | None = None,
    ):
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}; allowed are None and 'rgb_array'")
        if episode_limit < 1:
            raise ValueError(f"episode_limit is {episode_limit}, but must be at least 1")
        own = load_goals(own_goals) if isinstance(own_goals, str | Path) else checked(own_goals)
        self.tasks = with_own(own).restrict(chosen_goals(goals, own))
        """The goals, by number."""
        self.render_mode = render_mode
        # Here the engine can judge every goal, with its states' help.
        self.backend = "engine" if backend == "auto" and not engine_fault() else pick_backend(backend)
        self._game: _Game = (_EngineGame if self.backend == "engine" else _JaxGame)(self.tasks.ids, own, episode_limit)
        self._vectors = None if embeddings is None else _embeddings(embeddings).for_tasks(self.tasks)
        self._task: int | None = None
        self.task: int | None = None
        """The goal of the running episode, by number."""
        self._over = True
        self._observed: tuple[np.ndarray, np.ndarray] | None = None
        spec = OBSERVATION_SPEC
        most = np.concatenate([np.full(table.channels, table.rows - 1) for table in spec.tables])
        seen: dict[str, spaces.Space[Any]] = {
            "cells": spaces.Box(
                np.zeros((spec.height, spec.width, spec.channels), np.uint8),
                np.broadcast_to(most, (spec.height, spec.width, spec.channels)).astype(np.uint8),
                dtype=np.uint8,
            ),
            "features": spaces.Box(-10.0, 100.0, (spec.features,), np.float32),
        }
        if self._vectors is not None:
            seen["goal"] = spaces.Box(-1.0, 1.0, self._vectors.shape[1:], np.float32)
        self.observation_space = spaces.Dict(seen)
        self.action_space = spaces.Discrete(NUM_ACTIONS)

    def set_task(self, task_index: int | None) -> None:
        """Take up a goal, by number, with the next reset and all after it; None: each reset draws one at random.

        Raises:
            IndexError: There is no such goal.
        """
        self._task = None if task_index is None else self._checked(task_index)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode in a fresh world.

        Args:
            seed: Of the worlds from here on, and of the goals where none is set.
            options: `goal`, the id or number of this episode's goal; `key`, two words from which its world and all
                chances come, such as `forethought.evaluation.episode_keys` gives for the episodes of an evaluation.

        Raises:
            ValueError: An option is unknown, or the key is not two words.
            KeyError, IndexError: There is no such goal.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        goal, key = options.pop("goal", None), options.pop("key", None)
        if options:
            raise ValueError(f"option {next(iter(options))!r} is unknown; allowed are goal and key")
        if goal is None:
            goal = int(self.np_random.integers(len(self.tasks))) if self._task is None else self._task
        self.task = self.tasks.index(goal) if isinstance(goal, str) else self._checked(goal)
        words = self.np_random.integers(0, 2**32, 2, np.uint32) if key is None else np.asarray(key)
        if words.shape != (2,) or words.dtype.kind not in "iu" or (words < 0).any() or (words >= 2**32).any():
            raise ValueError(f"option key is {key!r}; it must be two whole numbers below 2**32")
        self._observed = self._game.begin(words.astype(np.uint32), self.task)
        self._over = False
        return self._observation(), self._info(False)

    def step(self, action: int | np.integer) -> tuple[dict[str, np.ndarray], SupportsFloat, bool, bool, dict[str, Any]]:
        """Act; reward 1 and `terminated` say that the goal is reached, `terminated` also that the player is dead.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode, or it is over.
            ValueError: There is no such action.
        """
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode is over, or none has begun; call reset()")
        if not self.action_space.contains(action):
            raise ValueError(f"action is {action!r}; it must be a whole number from 0 to {NUM_ACTIONS - 1}")
        self._observed, success, terminated, truncated = self._game.step(int(action))
        self._over = success or terminated or truncated
        ended = success or terminated
        return self._observation(), float(success), ended, truncated and not ended, self._info(success)

    def render(self) -> np.ndarray | None:
        """What is in view, drawn: uint8[height, width, 3]; None without `render_mode`."""
        if self.render_mode is None or self._observed is None or self.task is None:
            return None
        from forethought.craftax.frames import draw

        return np.asarray(draw(*self._observed, self.tasks[self.task].text))

    def _checked(self, number: int) -> int:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(self.tasks):
            raise IndexError(f"task is {number!r}; allowed are 0 to {len(self.tasks) - 1}")
        return int(number)

    def _observation(self) -> dict[str, np.ndarray]:
        assert self._observed is not None
        cells, features = self._observed
        seen = {"cells": cells, "features": features}
        return seen if self._vectors is None else seen | {"goal": self._vectors[self.task].copy()}

    def _info(self, success: bool) -> dict[str, Any]:
        assert self.task is not None
        task = self.tasks[self.task]
        return {"task": self.task, "goal": task.id, "text": task.text, "is_success": float(success)}


class _Game(Protocol):
    """One game on some backend."""

    def __init__(self, ids: Sequence[str], own: Sequence[Goal], episode_limit: int): ...

    def begin(self, key: np.ndarray, goal: int) -> tuple[np.ndarray, np.ndarray]:
        """Start an episode; gives cells and features."""
        ...

    def step(self, action: int) -> tuple[tuple[np.ndarray, np.ndarray], bool, bool, bool]:
        """Gives cells and features, and success, terminated, truncated."""
        ...


class _EngineGame:
    def __init__(self, ids: Sequence[str], own: Sequence[Goal], episode_limit: int):
        engine = _engine()
        predicates = {goal.id: goal.reached for goal in own}
        self._predicates = [predicates.get(id) for id in ids]
        # The engine plays for a goal that is never reached where a predicate says when it is.
        rows = [_NEVER if predicates.get(id) else engine_rows([id], own)[0] for id in ids]
        self._state = engine.new_state(1, np.array(rows, np.uint8), episode_limit, 1)
        self._seen = engine.new_observations(1)
        self._flags = np.zeros(1, bool), np.zeros(1, bool), np.zeros(1, bool)
        self._reached: Any = None

    def begin(self, key: np.ndarray, goal: int) -> tuple[np.ndarray, np.ndarray]:
        _engine().begin(self._state, key[None], np.array([goal], np.int32), *self._seen)
        self._reached = self._predicates[goal]
        return self._look()

    def step(self, action: int) -> tuple[tuple[np.ndarray, np.ndarray], bool, bool, bool]:
        before = self._export()
        cells, features = self._seen
        success, terminated, truncated = self._flags
        actions = np.array([action], np.int32)
        _engine().step(self._state, actions, cells, features, success, terminated, truncated)
        reached = bool(success[0]) if self._reached is None else bool(self._reached(before, self._export()))
        return self._look(), reached, bool(terminated[0]), bool(truncated[0])

    def _export(self) -> Any:
        if self._reached is None:
            return None
        return _engine().to_envstate(_engine().export_env(self._state, 0))

    def _look(self) -> tuple[np.ndarray, np.ndarray]:
        cells, features = self._seen
        return cells[0].copy(), features[0].copy()


class _JaxGame:
    def __init__(self, ids: Sequence[str], own: Sequence[Goal], episode_limit: int):
        from forethought.craftax.environment import CraftaxEnvironment

        self._environment = CraftaxEnvironment(1, ids, episode_limit, queue_capacity=1, own_goals=own)
        self._state: Any = None

    def begin(self, key: np.ndarray, goal: int) -> tuple[np.ndarray, np.ndarray]:
        import jax
        import jax.numpy as jnp

        keys = jax.random.wrap_key_data(jnp.asarray(key[None]))
        self._state, seen = self._environment.begin(keys, jnp.array([goal]))
        return np.array(seen.cells[0]), np.array(seen.features[0])

    def step(self, action: int) -> tuple[tuple[np.ndarray, np.ndarray], bool, bool, bool]:
        import jax.numpy as jnp

        self._state, seen, outcome = self._environment.step(self._state, jnp.array([action], jnp.int32))
        success, terminated, truncated = (bool(flag[0]) for flag in outcome)
        return (np.array(seen.cells[0]), np.array(seen.features[0])), success, terminated, truncated


def _engine() -> Any:
    """The fast engine; not kept in a game, for a module can be neither copied nor pickled."""
    import craftax_native

    return craftax_native


_NEVER = np.array([0, 0, 255, 255], np.uint8)
"""255 wood, as a row of the engine's table."""


def _embeddings(given: str | Path | Embeddings) -> Embeddings:
    if given == "minilm":
        return shipped_embeddings()
    return given if isinstance(given, Embeddings) else Embeddings.load(given)


if ENV_ID not in gymnasium.registry:
    gymnasium.register(id=ENV_ID, entry_point="forethought.craftax.gym:CraftaxGoals")
