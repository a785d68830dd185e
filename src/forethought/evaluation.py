"""Success rates of a frozen agent: many environments act side by side, and none idles while episodes wait.

Every episode has a key of its own, made of the seed, the goal and the episode's number, and everything random
in the episode comes from that key. So the outcome depends neither on how many environments share the work nor
on the order in which they finish, and two agents that are evaluated with one seed meet the same worlds.
"""

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from forethought.environment import BatchedEnvironment
from forethought.learner.acting import act, empty_memory, forget
from forethought.learner.network import ActorCritic

EVALUATION_STREAM = 3
"""Sets evaluation's keys apart from those of training, which start from the same seed."""

_PENDING = -1

WILSON_Z = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@runtime_checkable
class Agent(Protocol):
    """What is evaluated: a `Learner`, or anything else that gives a network."""

    @property
    def goal_embeddings(self) -> Float[Array, "goal width"]:
        """Vectors of all goals."""
        ...

    def network(self, state: Any) -> ActorCritic:
        """The network in a state."""
        ...


class EvaluationResult(NamedTuple):
    """Outcome per goal; arrays have one entry a goal."""

    goals: tuple[str, ...]
    episodes: np.ndarray
    successes: np.ndarray
    first_step_successes: np.ndarray
    """Those among `successes` that came on an episode's first step: mostly goals that held from the start."""

    @property
    def success_rate(self) -> np.ndarray:
        """Share of successful episodes, in [0, 1]."""
        return self.successes / self.episodes

    @property
    def wilson(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the 95 % Wilson interval of each success rate."""
        return wilson_interval(self.successes, self.episodes)

    def columns(self, iteration: int, steps: int) -> dict[str, Any]:
        """The rows of `evaluations.parquet`, a column each."""
        low, high = self.wilson
        return {
            "iteration": [iteration] * len(self.goals),
            "steps": [steps] * len(self.goals),
            "goal": list(self.goals),
            "episodes": self.episodes,
            "successes": self.successes,
            "first_step_successes": self.first_step_successes,
            "success_rate": self.success_rate,
            "wilson_low": low,
            "wilson_high": high,
        }


def wilson_interval(
    successes: np.ndarray | int, episodes: np.ndarray | int, z: float = WILSON_Z
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a success probability (Wilson 1927).

    Args:
        successes: Counts, 0 to `episodes`.
        episodes: Counts, 1 or more.
        z: Width in standard deviations.

    Returns:
        Lower and upper ends in [0, 1].

    Raises:
        ValueError: If a count is out of range.
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(episodes, dtype=np.float64)
    if (n < 1).any() or (k < 0).any() or (k > n).any():
        raise ValueError(f"{successes} successes in {episodes} episodes: at least 1 episode, and 0 to all successful")
    rate, spread = k / n, z * z / n
    centre = (rate + spread / 2) / (1 + spread)
    half = z * np.sqrt(rate * (1 - rate) / n + spread / (4 * n)) / (1 + spread)
    # The ends are exact at 0 and n successes; rounding would miss them by a hair.
    return np.where(k == 0, 0.0, np.clip(centre - half, 0, 1)), np.where(k == n, 1.0, np.clip(centre + half, 0, 1))


class Evaluator:
    """Evaluates agents of one architecture in one domain; compiles once, however often it runs."""

    def __init__(
        self,
        learner: Agent,
        make_environment: Callable[..., BatchedEnvironment],
        goal_ids: Sequence[str],
        *,
        goals: Sequence[int] | None = None,
        episodes: int = 128,
        num_envs: int = 1024,
        seed: int = 0,
        chunk: int = 64,
    ):
        """Set an evaluation up.

        Args:
            learner: Whose networks will be evaluated.
            make_environment: `make_environment(num_envs, queue_capacity=...)` gives the domain's environment.
            goal_ids: Ids of all goals of the environment and of the learner's embeddings, in their order.
            goals: Positions in `goal_ids` to evaluate; None for all.
            episodes: Episodes of each goal; the first ones started count, however long they take.
            num_envs: Environments that act side by side (fewer if there are not so many episodes).
            seed: The run's seed.
            chunk: Steps between two looks of the host.

        Raises:
            ValueError: If a number is not positive, or a goal is unknown or named twice.
        """
        for name, value in (("episodes", episodes), ("num_envs", num_envs), ("chunk", chunk)):
            if value < 1:
                raise ValueError(f"evaluation {name} is {value}; it must be at least 1")
        self.goals = tuple(range(len(goal_ids)) if goals is None else (int(goal) for goal in goals))
        if not self.goals or len(set(self.goals)) != len(self.goals):
            raise ValueError(f"evaluation goals are {list(self.goals)}; there must be at least one, and none twice")
        if min(self.goals) < 0 or max(self.goals) >= len(goal_ids):
            raise ValueError(f"evaluation goals are {list(self.goals)}; allowed are 0 to {len(goal_ids) - 1}")
        self.goal_ids = tuple(goal_ids[goal] for goal in self.goals)
        self.episodes = episodes
        self._chunk = chunk
        self._learner = learner
        self._slots = min(num_envs, len(self.goals) * episodes)
        self._block = -(-self._slots // 4)
        self._environment = make_environment(self._slots, queue_capacity=2 * self._slots)
        # A goal's key depends on its id alone: it is the same in every subset of the goals.
        labels = jnp.array([zlib.crc32(goal.encode()) for goal in self.goal_ids], jnp.uint32)
        root = jax.random.fold_in(jax.random.key(seed), EVALUATION_STREAM)
        self._keys = np.asarray(jax.random.key_data(_episode_keys(root, labels, episodes)))
        self._advance = jax.jit(self._advance_chunk, donate_argnums=0)
        self._empty_memory = jax.jit(empty_memory, static_argnums=1)

    def run(self, state: Any, *, stop: Callable[[], bool] = lambda: False) -> EvaluationResult | None:
        """Evaluate one agent.

        Args:
            state: The learner's state; it is only read.
            stop: Asked after every chunk; when it says yes, the evaluation is given up.

        Returns:
            The outcome, or None if it was given up.
        """
        network = self._learner.network(state)
        total = len(self.goals) * self.episodes
        outcome = np.full(total, _PENDING, np.int8)
        first_step = np.zeros(total, bool)
        while (pending := np.flatnonzero(outcome == _PENDING)).size:
            if not self._wave(network, pending, outcome, first_step, stop):
                return None
        # Episodes are numbered goal by goal within each round, see `_wave`.
        shape = (self.episodes, len(self.goals))
        return EvaluationResult(
            goals=self.goal_ids,
            episodes=np.full(len(self.goals), self.episodes, np.int64),
            successes=outcome.reshape(shape).sum(0, dtype=np.int64),
            first_step_successes=first_step.reshape(shape).sum(0, dtype=np.int64),
        )

    def _wave(
        self,
        network: Any,
        pending: np.ndarray,
        outcome: np.ndarray,
        first_step: np.ndarray,
        stop: Callable[[], bool],
    ) -> bool:
        """Play the pending episodes, until all are over or every environment has run out of queued ones.

        One wave is enough unless the queue empties within a chunk.

        Returns:
            False if `stop` said so.
        """
        # Episode i is number i // goals of goal i % goals, so goals that take long do not all start last.
        # What pads the last block is an episode that is queued already: the same key, the same outcome.
        blocks = -(-max(0, len(pending) - self._slots) // self._block)
        queue = np.resize(pending, self._slots + blocks * self._block)
        place, number = queue % len(self.goals), queue // len(self.goals)
        keys, goals = self._keys[place, number], np.asarray(self.goals, np.int32)[place]
        identity = {(int(g), k.tobytes()): index for index, g, k in zip(queue, goals, keys, strict=True)}

        first = _episodes(keys, goals, slice(0, self._slots))
        carry = (*self._environment.begin(*first), self._empty_memory(network, self._slots))
        queued, finished, active = self._slots, 0, self._slots
        while active and (outcome[pending] == _PENDING).any():
            while queued < len(queue) and queued - finished - active + self._block <= self._environment.queue_capacity:
                block = slice(queued, queued + self._block)
                carry = (self._environment.enqueue(carry[0], *_episodes(keys, goals, block)), *carry[1:])
                queued += self._block
            carry, trace = self._advance(carry, network)
            done, success, goal, key, step, running = (np.asarray(item) for item in trace)
            finished, active = finished + int(done.sum()), int(running)
            for time, slot in zip(*np.nonzero(done), strict=True):
                index = identity[int(goal[time, slot]), key[time, slot].tobytes()]
                outcome[index] = success[time, slot]
                first_step[index] = success[time, slot] and step[time, slot] == 0
            if stop():
                return False
        return True

    def _advance_chunk(self, carry: Any, network: Any) -> tuple[Any, Any]:
        environment, embeddings = self._environment, self._learner.goal_embeddings

        def advance(carry: Any, _: None) -> tuple[Any, Any]:
            state, observation, memory = carry
            episode = environment.assignment(state)
            # An environment that idled has seen steps that belong to no episode.
            memory = forget(memory, episode.step == 0)
            keys = _action_keys(episode.key, episode.step)
            action = act(network, memory, observation, episode.goal, embeddings, keys)
            state, observation, outcome = environment.step(state, action.action)
            trace = (
                outcome.done,
                outcome.success,
                episode.goal,
                jax.random.key_data(episode.key),
                episode.step,
            )
            return (state, observation, action.memory), trace

        carry, trace = jax.lax.scan(advance, carry, None, length=self._chunk)
        return carry, (*trace, environment.assignment(carry[0]).active.sum())


def evaluate(
    learner: Agent,
    state: Any,
    make_environment: Callable[..., BatchedEnvironment],
    goal_ids: Sequence[str],
    **settings: Any,
) -> EvaluationResult:
    """Evaluate one agent once; arguments as those of `Evaluator`."""
    result = Evaluator(learner, make_environment, goal_ids, **settings).run(state)
    assert result is not None
    return result


@partial(jax.jit, static_argnames="episodes")
def _episode_keys(root: Key[Array, ""], labels: UInt32[Array, " goal"], episodes: int) -> Key[Array, "goal episode"]:
    fold = jax.random.fold_in
    of_goal = jax.vmap(fold, (None, 0))(root, labels)
    return jax.vmap(jax.vmap(fold, (None, 0)), (0, None))(of_goal, jnp.arange(episodes))


def _episodes(keys: np.ndarray, goals: np.ndarray, part: slice) -> tuple[Array, Array]:
    return jax.random.wrap_key_data(jnp.asarray(keys[part])), jnp.asarray(goals[part])


def _action_keys(keys: Key[Array, " env"], steps: Int[Array, " env"]) -> Key[Array, " env"]:
    fold = jax.random.fold_in
    return jax.vmap(lambda key, step: fold(fold(key, 1), step))(keys, steps)
