import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.environment import Observation, Outcome
from forethought.learner import PPOConfig
from forethought.learner.gae import advantages
from forethought.learner.ppo import rewards_of
from forethought.learner.rollout import Experience
from forethought.learner.subroutines import Calls


def _reference(rewards, values, done, last_value, discount, lam):
    """Sums of discounted temporal differences, written out in float64."""
    steps, envs = rewards.shape
    result = np.zeros((steps, envs))
    for env in range(envs):
        for start in range(steps):
            weight = 1.0
            for t in range(start, steps):
                following = last_value[env] if t == steps - 1 else values[t + 1, env]
                following = 0.0 if done[t, env] else following
                result[start, env] += weight * (rewards[t, env] + discount * following - values[t, env])
                if done[t, env]:
                    break
                weight *= discount * lam
    return result


def _experience(values, success, terminated, truncated):
    filler = jnp.zeros(values.shape, jnp.int32)
    return Experience(
        Observation(jnp.zeros((*values.shape, 1, 1, 1), jnp.uint8), jnp.zeros((*values.shape, 1))),
        filler,
        Calls(filler, filler, filler > 0),
        filler,
        jnp.zeros(values.shape),
        jnp.asarray(values, jnp.float32),
        jnp.zeros((values.shape[0], 1, values.shape[1], 1)),
        Outcome(*(jnp.asarray(x) for x in (success, terminated, truncated))),
        filler > 0,
    )


@pytest.mark.parametrize("bootstrap", [False, True])
def test_against_a_float64_loop(bootstrap):
    """Environments: success, death, time limit, success on the last step, no end at all, end at the very end."""
    steps, envs = 12, 6
    random = np.random.default_rng(0)
    values, last_value = random.normal(size=(steps, envs)), random.normal(size=envs)
    success, terminated, truncated = (np.zeros((steps, envs), bool) for _ in range(3))
    success[3, 0] = terminated[5, 1] = truncated[6, 2] = True
    success[6, 3] = truncated[6, 3] = True
    success[11, 5] = True
    config = PPOConfig(bootstrap_at_time_limit=bootstrap, discount=0.9)
    experience = _experience(values, success, terminated, truncated)
    rewards = success.astype(float)
    if bootstrap:
        rewards[6, 2] += 0.9 * values[6, 2]
    given = np.asarray(rewards_of(experience, config))
    np.testing.assert_allclose(given, rewards, atol=1e-6)
    result = jax.jit(advantages, static_argnums=(4, 5))(
        jnp.asarray(rewards, jnp.float32),
        jnp.asarray(values, jnp.float32),
        experience.done,
        jnp.asarray(last_value, jnp.float32),
        0.9,
        0.8,
    )
    done = success | terminated | truncated
    np.testing.assert_allclose(result, _reference(rewards, values, done, last_value, 0.9, 0.8), atol=1e-5)
