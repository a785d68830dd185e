"""Generalised advantage estimation (Schulman et al. 2016)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def advantages(
    rewards: Float[Array, "time env"],
    values: Float[Array, "time env"],
    done: Bool[Array, "time env"],
    last_value: Float[Array, " env"],
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time env"]:
    """Estimate the advantage of each step's action, in float32.

    Args:
        rewards: Reward of each step.
        values: Value estimate of the state that each step started from.
        done: Whether each step ended an episode; nothing of later steps counts then.
        last_value: Value estimate of the state after the last step.
        discount: Discount factor of one step, in [0, 1].
        gae_lambda: Decay of the estimation, in [0, 1].
    """

    def backwards(carry: tuple[Array, Array], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        following, next_value = carry
        reward, value, goes_on = step
        advantage = reward + goes_on * discount * (next_value + gae_lambda * following) - value
        return (advantage, value), advantage

    rewards, values = rewards.astype(jnp.float32), values.astype(jnp.float32)
    last_value = last_value.astype(jnp.float32)
    goes_on = 1.0 - done.astype(jnp.float32)
    start = (jnp.zeros_like(last_value), last_value)
    # delta_t + discount * lambda * A_{t+1}, with delta_t = r_t + discount * V_{t+1} - V_t
    _, result = jax.lax.scan(backwards, start, (rewards, values, goes_on), reverse=True)
    return result
