"""Proximal policy optimisation (Schulman et al. 2017) over windows of a rollout (C.3)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from forethought.environment import Observation
from forethought.learner.config import PPOConfig
from forethought.learner.gae import advantages
from forethought.learner.network import ActorCritic, Conditioning
from forethought.learner.rollout import Experience
from forethought.learner.subroutines import CALL_STEPS, Calls, divergence, entropy, log_policy
from forethought.sharding import Spread, in_parts


class Batch(NamedTuple):
    """Experience of some environments, cut into windows."""

    observation: Observation
    """With axes [window time env]."""
    goals: Int[Array, " env"]
    memory: Float[Array, "layer window env memory width"]
    age: Int[Array, "window time env"]
    calls: Calls
    choice: Int[Array, "window time env"]
    log_prob: Float[Array, "window time env"]
    value: Float[Array, "window time env"]
    advantage: Float[Array, "window time env"]
    """Normalised over the decisions of the whole rollout that were made outside calls; the others' do not count."""
    target: Float[Array, "window time env"]
    """What the value should have been."""


def rewards_of(experience: Experience, config: PPOConfig) -> Float[Array, "time env"]:
    """1 for each success, with the switch on also the discounted value where time ran out."""
    outcome = experience.outcome
    rewards = outcome.success.astype(jnp.float32)
    if config.bootstrap_at_time_limit:
        ran_out = outcome.truncated & ~outcome.success & ~outcome.terminated
        rewards = rewards + config.discount * experience.value * ran_out
    return rewards


def make_batch(
    experience: Experience,
    goals: Int[Array, " env"],
    before: Float[Array, "memory layer env width"],
    last_value: Float[Array, " env"],
    config: PPOConfig,
) -> Batch:
    """Estimate advantages, normalise them, and cut a rollout into windows.

    Args:
        experience: The rollout.
        goals: The environments' goals.
        before: Inputs of each block at the steps before the rollout, the latest last.
        last_value: Value of the state after the last step.
        config: Settings.
    """
    raw = advantages(
        rewards_of(experience, config),
        experience.value,
        experience.done,
        last_value,
        config.discount,
        config.gae_lambda,
    )
    outside = ~experience.calls.inside
    mean = mean_over(outside, raw)
    deviation = jnp.sqrt(mean_over(outside, (raw - mean) ** 2))
    normalised = (raw - mean) / (deviation + 1e-8)
    length, slots = config.rollout_length, before.shape[0]
    hidden = jnp.concatenate([before, experience.hidden])
    starts = range(0, length, config.window)
    memory = jnp.stack([hidden[start : start + slots] for start in starts])

    def cut(x: Array) -> Array:
        return x.reshape(length // config.window, config.window, *x.shape[1:])

    return Batch(
        observation=jax.tree.map(cut, experience.observation),
        goals=goals,
        memory=jnp.transpose(memory, (2, 0, 3, 1, 4)),
        age=cut(experience.age),
        calls=jax.tree.map(cut, experience.calls),
        choice=cut(experience.choice),
        log_prob=cut(experience.log_prob),
        value=cut(experience.value),
        advantage=cut(normalised),
        target=cut(raw + experience.value),
    )


def mean_over(where: Bool[Array, "*shape"], values: Float[Array, "*shape"]) -> Float[Array, ""]:
    """Mean over some of the values, 0 if there are none."""
    return jnp.where(where, values, 0.0).sum() / jnp.maximum(where.sum(dtype=jnp.float32), 1)


def take(batch: Batch, envs: Int[Array, " part"]) -> Batch:
    """The experience of some environments."""

    def pick(x: Array) -> Array:
        return x[:, :, envs]

    return jax.tree.map(pick, batch._replace(goals=batch.goals[None, None]))._replace(goals=batch.goals[envs])


def loss(
    network: ActorCritic,
    batch: Batch,
    goal_embeddings: Float[Array, "goal goal_width"],
    reference: Float[Array, " choice"],
    config: PPOConfig,
    spread: Spread | None = None,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The loss on one minibatch, and means over its decisions by name.

    The actor learns from decisions outside calls, the critic from every step (C.4). The penalty on the divergence
    from the reference distribution is the entropy bonus, up to a constant, where nothing can be called. With `spread`
    each device evaluates the network on its own environments.
    """
    calls = batch.calls
    assigned = jnp.broadcast_to(batch.goals, batch.choice.shape)
    told = Conditioning(assigned, calls.active(assigned), calls.remaining.astype(jnp.float32) / CALL_STEPS)
    terms = network.goal_tables(goal_embeddings).at(told)
    window = network.window if spread is None else in_parts(network.window, spread, (2, 2, 2, 2), (2, 2))
    logits, value = window(batch.observation, terms, batch.memory, batch.age)
    log_probs = log_policy(logits, reference)
    log_prob = jnp.take_along_axis(log_probs, batch.choice[..., None], axis=-1)[..., 0]
    outside = ~calls.inside
    log_ratio = log_prob - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    policy_loss = -mean_over(outside, jnp.minimum(ratio * batch.advantage, clipped * batch.advantage))
    near = batch.value + jnp.clip(value - batch.value, -config.value_clip, config.value_clip)
    errors = jnp.maximum((value - batch.target) ** 2, (near - batch.target) ** 2)
    value_loss = 0.5 * errors.mean()
    penalty = mean_over(outside, divergence(log_probs, reference))
    total = policy_loss + config.value_coefficient * value_loss + config.entropy_coefficient * penalty
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": mean_over(outside, entropy(log_probs)),
        "reference_divergence": penalty,
        "divergence": mean_over(outside, ratio - 1 - log_ratio),
        "clipped": mean_over(outside, (jnp.abs(ratio - 1) > config.clip).astype(jnp.float32)),
        "ratio_error": jnp.abs(ratio - 1).max(),
    }
