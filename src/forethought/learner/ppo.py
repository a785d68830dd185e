"""Proximal policy optimisation (Schulman et al. 2017) over windows of a rollout (C.3)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from forethought.environment import Observation
from forethought.learner.config import PPOConfig
from forethought.learner.gae import advantages
from forethought.learner.network import ActorCritic
from forethought.learner.rollout import Experience


class Batch(NamedTuple):
    """Experience of some environments, cut into windows."""

    observation: Observation
    """With axes [window time env]."""
    goals: Int[Array, " env"]
    memory: Float[Array, "layer window env memory width"]
    age: Int[Array, "window time env"]
    action: Int[Array, "window time env"]
    log_prob: Float[Array, "window time env"]
    value: Float[Array, "window time env"]
    advantage: Float[Array, "window time env"]
    """Normalised over the whole rollout."""
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
    normalised = (raw - raw.mean()) / (raw.std() + 1e-8)
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
        action=cut(experience.action),
        log_prob=cut(experience.log_prob),
        value=cut(experience.value),
        advantage=cut(normalised),
        target=cut(raw + experience.value),
    )


def take(batch: Batch, envs: Int[Array, " part"]) -> Batch:
    """The experience of some environments."""

    def pick(x: Array) -> Array:
        return x[:, :, envs]

    return jax.tree.map(pick, batch._replace(goals=batch.goals[None, None]))._replace(goals=batch.goals[envs])


def loss(
    network: ActorCritic,
    batch: Batch,
    goal_embeddings: Float[Array, "goal goal_width"],
    config: PPOConfig,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The loss on one minibatch, and means over its decisions by name."""
    terms = network.goal_terms(goal_embeddings[batch.goals])
    logits, value = network.window(batch.observation, terms, batch.memory, batch.age)
    log_probs = jax.nn.log_softmax(logits)
    log_prob = jnp.take_along_axis(log_probs, batch.action[..., None], axis=-1)[..., 0]
    log_ratio = log_prob - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    policy_loss = -jnp.minimum(ratio * batch.advantage, clipped * batch.advantage).mean()
    near = batch.value + jnp.clip(value - batch.value, -config.value_clip, config.value_clip)
    errors = jnp.maximum((value - batch.target) ** 2, (near - batch.target) ** 2)
    value_loss = 0.5 * errors.mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
    total = policy_loss + config.value_coefficient * value_loss - config.entropy_coefficient * entropy
    return total, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "divergence": (ratio - 1 - log_ratio).mean(),
        "clipped": (jnp.abs(ratio - 1) > config.clip).mean(dtype=jnp.float32),
        "ratio_error": jnp.abs(ratio - 1).max(),
    }
