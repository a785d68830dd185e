"""Calling learned behaviour: actions that hand over to another goal for a while (C.4 of the paper).

Beside the environment's own actions the actor may call a goal. The call itself takes one step, in which the
environment's no-op is executed; for the next `CALL_STEPS` steps the actor pursues the called goal. A call made
meanwhile changes the goal and not the deadline. The end of the episode ends the call.

A learner without calls is the same with no goal to call.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

CALL_STEPS = 32
"""Steps that a call lasts, after the step in which it is made."""

CALL_SHARE = 1 / (CALL_STEPS + 2)
"""Share of all calls together in the reference distribution: with it, actions outside calls and calls that run
their full length take the same time on average."""

ELIGIBLE_RATE = 1 / 3
"""Success rate from which on a goal may be called."""

_IMPOSSIBLE = -1e30


class Calls(NamedTuple):
    """Who is called in each environment."""

    goal: Int[Array, "*steps env"]
    """The goal called last; meaningless while nothing remains."""
    remaining: Int[Array, "*steps env"]
    """Steps until the actor returns to the episode's own goal, 0 outside calls."""
    used: Bool[Array, "*steps env"]
    """Whether the episode has seen a call."""

    @property
    def inside(self) -> Bool[Array, "*steps env"]:
        """Whether a call is in progress."""
        return self.remaining > 0

    def active(self, assigned: Int[Array, "*#steps env"]) -> Int[Array, "*steps env"]:
        """The goal that the actor pursues, given the episodes' own goals."""
        return jnp.where(self.inside, self.goal, assigned)


def no_calls(num_envs: int) -> Calls:
    """The state at the start of episodes."""
    zeros = jnp.zeros(num_envs, jnp.int32)
    return Calls(zeros, jnp.copy(zeros), jnp.zeros(num_envs, bool))


def follow(calls: Calls, action: Int[Array, " env"], num_actions: int) -> Calls:
    """The state after a step within an episode.

    Args:
        calls: The state during the step.
        action: What was chosen: below `num_actions` an action of the environment, else a call.
        num_actions: Actions of the environment.
    """
    is_call = action >= num_actions
    fresh = jnp.where(is_call, CALL_STEPS, 0)
    return Calls(
        jnp.where(is_call, action - num_actions, calls.goal).astype(jnp.int32),
        jnp.where(calls.inside, calls.remaining - 1, fresh).astype(jnp.int32),
        calls.used | is_call,
    )


def hang_up(calls: Calls, done: Bool[Array, " env"]) -> Calls:
    """Forget the calls of the episodes that are done."""
    return Calls(calls.goal, jnp.where(done, 0, calls.remaining), calls.used & ~done)


def log_reference(eligible: Bool[Array, " goal"], num_actions: int) -> Float[Array, " choice"]:
    """Logarithm of the reference distribution mu over actions and calls; minus infinity where a call is ruled out.

    Calls to eligible goals share `CALL_SHARE` equally, the environment's actions the rest; with no eligible goal
    they share everything.

    Args:
        eligible: Which goals may be called; empty for a learner without calls.
        num_actions: Actions of the environment.
    """
    count = eligible.sum(dtype=jnp.float32)
    calls = jnp.where(count > 0, CALL_SHARE, 0.0)
    each_action = jnp.full(num_actions, jnp.log1p(-calls) - jnp.log(jnp.float32(num_actions)))
    each_call = jnp.where(eligible, jnp.log(CALL_SHARE) - jnp.log(jnp.maximum(count, 1)), -jnp.inf)
    return jnp.concatenate([each_action, each_call])


def log_policy(
    logits: Float[Array, "*batch choice"], reference: Float[Array, " choice"]
) -> Float[Array, "*batch choice"]:
    """Logarithm of the policy, proportional to mu(a) exp(logit(a)).

    What mu rules out gets a probability of exactly 0 and passes no gradient on; its logarithm is finite.
    """
    possible = jnp.isfinite(reference)
    return jax.nn.log_softmax(jnp.where(possible, logits + jnp.where(possible, reference, 0.0), _IMPOSSIBLE))


def divergence(log_probs: Float[Array, "*batch choice"], reference: Float[Array, " choice"]) -> Float[Array, "*batch"]:
    """KL divergence of the policy from mu, in nats; with mu uniform, the logarithm of its size minus the entropy."""
    possible = jnp.isfinite(reference)
    gain = jnp.where(possible, log_probs - jnp.where(possible, reference, 0.0), 0.0)
    return (jnp.exp(log_probs) * gain).sum(-1)


def entropy(log_probs: Float[Array, "*batch choice"]) -> Float[Array, "*batch"]:
    """Entropy of the policy, in nats."""
    probability = jnp.exp(log_probs)
    return -jnp.where(probability > 0, probability * log_probs, 0.0).sum(-1)
