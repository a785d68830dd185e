"""Collecting experience: all environments step together for a fixed number of steps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import BatchedEnvironment, Observation, Outcome
from forethought.learner.acting import evaluate_step, forget, restore_memory, sample
from forethought.learner.config import NetworkConfig
from forethought.learner.network import ActorCritic


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


class Experience(NamedTuple):
    """What a rollout saw, and what the network made of it at the time."""

    observation: Observation
    age: Int[Array, "time env"]
    action: Int[Array, "time env"]
    log_prob: Float[Array, "time env"]
    value: Float[Array, "time env"]
    hidden: Float[Array, "time layer env width"]
    outcome: Outcome
    """With axes [time env]."""

    @property
    def done(self) -> Bool[Array, "time env"]:
        """Which steps ended an episode."""
        return self.outcome.success | self.outcome.terminated | self.outcome.truncated


def start(
    environment: BatchedEnvironment, config: NetworkConfig, key: Key[Array, ""], goals: Int[Array, " env"]
) -> Rollout:
    """Reset all environments; nothing is remembered."""
    goals = jnp.array(goals, jnp.int32)
    state, observation = environment.reset(key, goals)
    shape = (config.memory, config.blocks, environment.num_envs, config.width)
    return Rollout(
        state,
        observation,
        goals,
        jnp.zeros(shape, config.compute_dtype),
        jnp.zeros(environment.num_envs, jnp.int32),
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
    terms = network.goal_terms(goal_embeddings[rollout.goals])
    envs = jnp.arange(environment.num_envs, dtype=jnp.int32)

    def step(carry: tuple, time: Int[Array, ""]) -> tuple[tuple, Experience]:
        state, observation, memory = carry
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(key, time), envs)
        chosen = sample(evaluate_step(network, memory, observation, terms), keys)
        state, following, outcome = environment.step(state, chosen.action)
        experience = Experience(
            observation, memory.age, chosen.action, chosen.log_prob, chosen.value, chosen.hidden, outcome
        )
        return (state, following, forget(chosen.memory, outcome.done)), experience

    # Keys and values depend on the parameters, which the update before may have changed.
    memory = restore_memory(network, rollout.hidden, rollout.age)
    carry = (rollout.environment, rollout.observation, memory)
    times = jnp.arange(length, dtype=jnp.int32)
    (state, observation, memory), experience = jax.lax.scan(step, carry, times)
    last_value = evaluate_step(network, memory, observation, terms).value
    hidden = jnp.concatenate([rollout.hidden, experience.hidden])[-network.memory :]
    following = Rollout(state, observation, rollout.goals, hidden, memory.age)
    return following, experience, last_value
