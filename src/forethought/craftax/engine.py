"""The benchmark on the fast engine: the same environment as `CraftaxEnvironment`, in C++ on the CPU."""

import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8

import craftax_native
from craftax_native import ffi
from forethought.craftax.interface import (
    NUM_ACTIONS,
    OBSERVATION_SPEC,
    check_at_least,
    check_evaluating,
    check_room,
    check_sizes,
    goal_numbers,
)
from forethought.craftax.own_goals import Goal, checked, chosen_goals, engine_rows
from forethought.environment import Assignment, Observation, Outcome
from forethought.spec import ObservationSpec


class EngineEnvironment:
    """The benchmark on Craftax 1.6.1's rules in C++; implements `forethought.environment.BatchedEnvironment`.

    The state is one array of bytes. Sharded along its axis it is several batches, each with its own queue.

    It differs from `CraftaxEnvironment` in two ways. In training every episode has a world of its own: the key of
    an environment's next episode is its last one's with 1 folded in. And idle environments stand still.

    Args:
        num_envs: Environments that step together, at least 1.
        goal_ids: The goals that goal numbers refer to; empty means all 256 in order, then one's own.
        episode_limit: Steps after which an episode ends.
        queue_capacity: Episodes that may wait in evaluation; by default four times `num_envs`.
        threads: Threads that share the work; by default one per core that the process may use. Results do not
            depend on it.
        own_goals: Goals besides the benchmark's; those with a predicate cannot be played here.

    Raises:
        ValueError: A number is too small, or a goal has a predicate.
        KeyError: A goal is neither in the benchmark nor one's own.
    """

    num_actions: int = NUM_ACTIONS
    noop_action: int | None = 0
    observation_spec: ObservationSpec = OBSERVATION_SPEC
    on_host: bool = True
    """The state lives on the CPU, wherever the learner does."""

    def __init__(
        self,
        num_envs: int,
        goal_ids: Sequence[str] = (),
        episode_limit: int = 4096,
        queue_capacity: int | None = None,
        threads: int | None = None,
        own_goals: Sequence[Goal] = (),
    ) -> None:
        self.queue_capacity = check_sizes(num_envs, episode_limit, queue_capacity)
        self.num_envs = num_envs
        self.episode_limit = episode_limit
        self.threads = len(os.sched_getaffinity(0)) if threads is None else threads
        check_at_least("threads", self.threads, 1)
        self.goal_ids = chosen_goals(goal_ids, checked(own_goals))
        self._table = engine_rows(self.goal_ids, own_goals)
        self._advance = jax.jit(self._step)
        self._append = jax.jit(ffi.enqueue)

    def reset(
        self, key: Key[Array, ""], goals: Int[Array | np.ndarray, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation]:
        """Start every environment in a fresh world with the goal given, for training.

        Raises:
            ValueError: The goals are not one per environment, or out of range.
        """
        numbers = goal_numbers(goals, self.num_envs, len(self.goal_ids))
        return self._start(craftax_native.reset, jax.random.split(key, self.num_envs), numbers)

    def reset_each(
        self, keys: Key[Array, " env"], goals: Int[Array | np.ndarray, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation]:
        """`reset` with a key for each environment, as for some of a larger batch."""
        numbers = goal_numbers(goals, self.num_envs, len(self.goal_ids))
        return self._start(craftax_native.reset, keys, numbers)

    def begin(
        self, keys: Key[Array, " env"], goals: Int[Array | np.ndarray, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation]:
        """Start one given episode in every environment, with an empty queue, for evaluation.

        Raises:
            ValueError: The goals are not one per environment, or out of range.
        """
        return self._start(craftax_native.begin, keys, goal_numbers(goals, self.num_envs, len(self.goal_ids)))

    def enqueue(
        self, state: UInt8[Array, " byte"], keys: Key[Array, " episode"], goals: Int[Array | np.ndarray, " episode"]
    ) -> UInt8[Array, " byte"]:
        """Append episodes to the queue.

        Idle environments take them at the end of the next step, the one idle for longest first.

        Raises:
            ValueError: The queue has no room for them, a goal is out of range, or the state is one of training.
        """
        numbers = goal_numbers(goals, keys.shape[0], len(self.goal_ids))
        header = craftax_native.describe(np.asarray(state))
        check_evaluating(header["mode"] == "training")
        check_room(len(numbers), header["waiting"], self.queue_capacity)
        return self._append(state, self._put(_words(keys)), self._put(numbers))

    def step(
        self, state: UInt8[Array, " byte"], actions: Int[Array | np.ndarray, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation, Outcome]:
        """Advance every environment by one step; those that are done start their next episode.

        Raises:
            jax.errors.JaxRuntimeError: when it runs: an action is out of range, or the state is of another make.
        """
        return self._advance(state, jnp.asarray(actions, jnp.int32))

    def assignment(self, state: UInt8[Array, " byte"]) -> Assignment:
        """The episode that each environment is in."""
        found = ffi.assignment(state, self.num_envs)
        return Assignment(found.goal, jax.random.wrap_key_data(found.key), found.step, found.active)

    def metrics(self, state: UInt8[Array, " byte"]) -> dict[str, Float[Array, ""]]:
        """Counts since the last `reset` or `begin`.

        `successes_at_start` are those on the first step of an episode whose goal held before it; `worlds_reused`
        is always 0.
        """
        return ffi.counts(state)

    def _start(
        self, start: Any, keys: Key[Array, " env"], goals: Int[np.ndarray, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation]:
        state = craftax_native.new_state(self.num_envs, self._table, self.episode_limit, self.queue_capacity)
        cells, features = craftax_native.new_observations(self.num_envs)
        start(state, _words(keys), goals, cells, features, self.threads)
        return self._put(state), Observation(self._put(cells), self._put(features))

    def _step(
        self, state: UInt8[Array, " byte"], actions: Int[Array, " env"]
    ) -> tuple[UInt8[Array, " byte"], Observation, Outcome]:
        after = ffi.step(state, actions, self.threads)
        outcome = Outcome(after.success, after.terminated, after.truncated)
        return after.state, Observation(after.cells, after.features), outcome

    def _put(self, array: np.ndarray) -> Array:
        # A copy, since the caller's array must outlive a state that is donated.
        return jnp.array(array, device=_cpu())


def _words(keys: Key[Array, " episode"]) -> np.ndarray:
    """The random keys as the engine takes them."""
    return np.ascontiguousarray(jax.random.key_data(keys))


def _cpu() -> Any:
    """The CPU if JAX computes elsewhere by default; otherwise None, so that arrays go with those of any device."""
    (default,) = jnp.zeros(()).devices()
    return None if default.platform == "cpu" else jax.devices("cpu")[0]
