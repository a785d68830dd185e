"""Collecting experience: all environments step together for a fixed number of steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import BatchedEnvironment, Observation, Outcome
from forethought.learner.acting import Action, Memory, evaluate_step, forget, restore_memory, sample
from forethought.learner.config import NetworkConfig
from forethought.learner.network import ActorCritic, GoalTables
from forethought.learner.subroutines import Calls, log_reference, no_calls


class Rollout(NamedTuple):
    """Where all environments are between two updates."""

    environment: Any
    """State of the environments."""
    observation: Observation
    goals: Int[Array, " env"]
    hidden: Float[Array, "memory layer env width"]
    """Inputs of each block at the last steps, the latest last."""
    age: Int[Array, " env"]
    """Steps since the start of the episode, at most the memory's length."""
    calls: Calls
    """The subroutines in progress."""
    eligible: Bool[Array, " call"]
    """Which goals may be called; empty for a learner without calls."""


class Experience(NamedTuple):
    """What a rollout saw, and what the network made of it at the time; arrays have axes [time env]."""

    observation: Observation
    age: Int[Array, "time env"]
    calls: Calls
    """As they were when the choice was made."""
    choice: Int[Array, "time env"]
    """The action, or the environment's number of actions plus the goal called."""
    log_prob: Float[Array, "time env"]
    value: Float[Array, "time env"]
    hidden: Float[Array, "time layer env width"]
    outcome: Outcome
    called: Bool[Array, "time env"]
    """Whether the episode has seen a call, this step's included."""

    @property
    def done(self) -> Bool[Array, "time env"]:
        """Which steps ended an episode."""
        return self.outcome.success | self.outcome.terminated | self.outcome.truncated


def start(
    environment: BatchedEnvironment,
    config: NetworkConfig,
    key: Key[Array, ""],
    goals: Int[Array, " env"],
    eligible: Bool[Array, " call"],
) -> Rollout:
    """Reset all environments; nothing is remembered, and nobody is called."""
    goals = jnp.array(goals, jnp.int32)
    state, observation = environment.reset(key, goals)
    shape = (config.memory, config.blocks, environment.num_envs, config.width)
    return Rollout(
        state,
        observation,
        goals,
        jnp.zeros(shape, config.compute_dtype),
        jnp.zeros(environment.num_envs, jnp.int32),
        no_calls(environment.num_envs),
        jnp.array(eligible, bool),
    )


def collect(
    environment: BatchedEnvironment,
    network: ActorCritic,
    rollout: Rollout,
    goal_embeddings: Float[Array, "goal goal_width"],
    key: Key[Array, ""],
    length: int,
) -> tuple[Rollout, Experience, Float[Array, " env"]]:
    """Act for `length` steps.

    Args:
        environment: The environments.
        network: The policy; constant during the rollout.
        rollout: Where the environments are.
        goal_embeddings: Vectors of all goals.
        key: Source of the actions: those of step t and environment n come from folding in t, then n.
        length: Steps of each environment.

    Returns:
        Where the environments are now, the experience, and the value of the state after the last step.
    """
    part = _prepare(network, rollout, goal_embeddings, key)

    def step(carry: tuple, time: Int[Array, ""]) -> tuple[tuple, Experience]:
        state, observation, memory = carry
        chosen = _choose(network, part, observation, memory, time)
        state, following, outcome = environment.step(state, chosen.action)
        return (state, following, forget(chosen.memory, outcome.done)), _note(observation, memory, chosen, outcome)

    carry = (rollout.environment, rollout.observation, part.memory)
    carry, experience = jax.lax.scan(step, carry, jnp.arange(length, dtype=jnp.int32))
    following, last_value = _conclude(network, part, rollout, carry, experience)
    return following, experience, last_value


class HostCollector:
    """`collect` for environments that step on the host while the network computes on another device.

    One compiled program chooses all actions of a step; the environments step outside of it. Nothing calls back
    from a compiled program.

    Args:
        environment: The environments; `step` works on arrays of the host.
        length: Steps of each environment.
    """

    def __init__(self, environment: BatchedEnvironment, length: int) -> None:
        self._environment = environment
        self._length = length
        self._host = jax.devices("cpu")[0]
        self._step: Callable[..., Any] = jax.jit(environment.step, donate_argnums=0)
        self._prepare = jax.jit(_prepare)
        self._choose = jax.jit(_choose)
        self._note: Callable[..., Any] = jax.jit(
            lambda observation, memory, chosen, outcome: (
                forget(chosen.memory, outcome.done),
                _note(observation, memory, chosen, outcome),
            )
        )
        self._conclude = jax.jit(_conclude)
        self._stack = jax.jit(lambda steps: jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps))

    def __call__(
        self,
        network: ActorCritic,
        rollout: Rollout,
        goal_embeddings: Float[Array, "goal goal_width"],
        key: Key[Array, ""],
    ) -> tuple[Rollout, Experience, Float[Array, " env"]]:
        """Act for a rollout; arguments and results as those of `collect`."""
        device = next(iter(rollout.age.devices()))
        part = self._prepare(network, rollout, goal_embeddings, key)
        state, observation, memory = rollout.environment, rollout.observation, part.memory
        steps = []
        for time in range(self._length):
            chosen = self._choose(network, part, observation, memory, jnp.asarray(time, jnp.int32))
            with jax.default_device(self._host):
                moved = self._step(state, jax.device_put(chosen.action, self._host))
            state = moved[0]
            following, outcome = jax.device_put(moved[1:], device)
            memory, noted = self._note(observation, memory, chosen, outcome)
            observation = following
            steps.append(noted)
        experience = self._stack(steps)
        rest = rollout._replace(environment=None)
        ended, last_value = self._conclude(network, part, rest, (None, observation, memory), experience)
        return ended._replace(environment=state), experience, last_value


def steps_on_host(environment: BatchedEnvironment) -> bool:
    """Whether the environments live on the host while the default device is another."""
    (default,) = jnp.zeros(()).devices()
    return getattr(environment, "on_host", False) and default.platform != "cpu"


class _Part(NamedTuple):
    """What stays the same during a rollout, and the memory at its start."""

    tables: GoalTables
    reference: Float[Array, " choice"]
    goals: Int[Array, " env"]
    key: Key[Array, ""]
    memory: Memory


def _prepare(
    network: ActorCritic, rollout: Rollout, goal_embeddings: Float[Array, "goal goal_width"], key: Key[Array, ""]
) -> _Part:
    return _Part(
        network.goal_tables(goal_embeddings),
        log_reference(rollout.eligible, network.num_actions),
        rollout.goals,
        key,
        # Keys and values depend on the parameters, which the update before may have changed.
        restore_memory(network, rollout.hidden, rollout.age, rollout.calls),
    )


def _choose(
    network: ActorCritic, part: _Part, observation: Observation, memory: Memory, time: Int[Array, ""]
) -> Action:
    envs = jnp.arange(part.goals.shape[0], dtype=jnp.int32)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(part.key, time), envs)
    terms = part.tables.at(memory.conditioning(part.goals))
    return sample(network, evaluate_step(network, memory, observation, terms), part.reference, keys)


def _note(observation: Observation, memory: Memory, chosen: Action, outcome: Outcome) -> Experience:
    return Experience(
        observation,
        memory.age,
        memory.calls,
        chosen.choice,
        chosen.log_prob,
        chosen.value,
        chosen.hidden,
        outcome,
        chosen.memory.calls.used,
    )


def _conclude(
    network: ActorCritic, part: _Part, rollout: Rollout, carry: tuple, experience: Experience
) -> tuple[Rollout, Float[Array, " env"]]:
    state, observation, memory = carry
    terms = part.tables.at(memory.conditioning(part.goals))
    last_value = evaluate_step(network, memory, observation, terms).value
    hidden = jnp.concatenate([rollout.hidden, experience.hidden])[-network.memory :]
    following = rollout._replace(
        environment=state, observation=observation, hidden=hidden, age=memory.age, calls=memory.calls
    )
    return following, last_value
