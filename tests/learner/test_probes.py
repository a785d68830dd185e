"""Tasks with known answers: each fails if one particular thing is broken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.learner import empty_memory
from forethought.learner.acting import evaluate_step, forget

NETWORK = {"blocks": 1, "convolutions": 0}
PPO = {"learning_rate": 3e-3, "discount": 0.9, "gae_lambda": 0.95, "rollout_length": 32, "window": 8}


def _train(tiny, environment, updates, network=None, ppo=None):
    learner, state = tiny(environment, network or NETWORK, PPO | (ppo or {}), jitter=0.0)
    goals = np.zeros(environment.num_envs, np.int64)
    rollout = learner.begin(jax.random.key(1), goals)
    episodes = successes = 0.0
    for number in range(updates):
        state, rollout, update = learner.update(state, rollout, jax.random.key(100 + number))
        if number >= updates - 5:
            episodes += float(update.metrics["episodes"])
            successes += float(update.metrics["successes"])
    return learner, state, successes / episodes


def _values(goal_terms, learner, state, environment, steps):
    """Values and signals along the first episodes."""
    network = learner.network(state)
    where, observation = jax.jit(environment.reset)(jax.random.key(9), None)
    memory = empty_memory(network, environment.num_envs)
    terms = goal_terms(network, jnp.zeros(environment.num_envs, jnp.int32), learner.goal_embeddings)
    step, move = jax.jit(evaluate_step), jax.jit(environment.step)
    values, signals = [], []
    for _ in range(steps):
        result = step(network, memory, observation, terms)
        values.append(np.asarray(result.value))
        signals.append(np.asarray(where.signal))
        where, observation, outcome = move(where, jnp.zeros(environment.num_envs, jnp.int32))
        memory = forget(result.memory, outcome.done)
    return np.asarray(values), np.asarray(signals)


def test_value_of_a_constant(tiny, probe, goal_terms):
    environment = probe(8, "constant")
    learner, state, _ = _train(tiny, environment, 40)
    assert np.abs(_values(goal_terms, learner, state, environment, 4)[0] - 1).max() < 0.1


def test_value_of_what_is_observed(tiny, probe, goal_terms):
    environment = probe(8, "observation")
    learner, state, _ = _train(tiny, environment, 60)
    values, signals = _values(goal_terms, learner, state, environment, 4)
    assert np.abs(values - signals).max() < 0.15


def test_discounted_value(tiny, probe, goal_terms):
    environment = probe(8, "constant", length=2)
    learner, state, _ = _train(tiny, environment, 60, ppo={"discount": 0.5})
    values, _ = _values(goal_terms, learner, state, environment, 4)
    assert np.abs(values - np.asarray([0.5, 1, 0.5, 1])[:, None]).max() < 0.12


def test_action_depends_on_observation(tiny, probe):
    _, _, success = _train(tiny, probe(8, "action"), 50)
    assert success > 0.9


@pytest.mark.parametrize(("memory", "length"), [(8, 6), (8, 12), (64, 80)])
def test_recall(tiny, probe, memory, length):
    """The signal shows only at the first step; beyond the memory's length both blocks are needed to reach it."""
    window = max(24, length)
    network = {"memory": memory, "gate_bias": 0.0, "convolutions": 0}
    ppo = {
        "rollout_length": 2 * window,
        "window": window,
        "minibatches": 4,
        "entropy_coefficient": 0.01,
        "gae_lambda": 1.0,
        "discount": 0.99,
    }
    _, _, success = _train(tiny, probe(64, "action", length, recall=True), 150, network, ppo)
    assert success > 0.85
