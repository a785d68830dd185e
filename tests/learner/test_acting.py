import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.environment import Observation
from forethought.learner import act, empty_memory, forget
from forethought.learner.acting import evaluate_step, restore_memory
from forethought.learner.rollout import collect
from forethought.learner.subroutines import no_calls
from forethought.toy import ToyEnvironment

MEMORY = 4


@pytest.fixture(scope="module")
def setting(tiny):
    learner, state = tiny(ToyEnvironment(3, episode_limit=7))
    return learner, learner.network(state), jnp.asarray([0, 4, 7])


def _observations(steps, envs, seed=0):
    random = np.random.default_rng(seed)
    cells = np.stack([random.integers(0, 5, (steps, envs, 5, 5)), random.integers(0, 2, (steps, envs, 5, 5))], -1)
    features = random.normal(size=(steps, envs, 4))
    return Observation(jnp.asarray(cells, jnp.uint8), jnp.asarray(features, jnp.float32))


@jax.jit
def _act_all(network, terms, observations, done):
    """Values, logits and block inputs of acting step by step."""

    def step(memory, now):
        observation, ends = now
        result = evaluate_step(network, memory, observation, terms)
        return forget(result.memory, ends), (result.logits, result.value, result.hidden, memory.age)

    _, outputs = jax.lax.scan(step, empty_memory(network, done.shape[1]), (observations, done))
    return outputs


@eqx.filter_jit
def _windows(network, terms, observations, hidden, age, window):
    steps = age.shape[0]
    padded = jnp.concatenate([jnp.zeros((network.memory, *hidden.shape[1:])), hidden])
    memory = jnp.stack([padded[s : s + network.memory] for s in range(0, steps, window)])

    def cut(x):
        return x.reshape(steps // window, window, *x.shape[1:])

    logits, value = network.window(
        jax.tree.map(cut, observations), terms, jnp.transpose(memory, (2, 0, 3, 1, 4)), cut(age)
    )
    return logits.reshape(steps, *logits.shape[2:]), value.reshape(steps, -1)


@pytest.mark.parametrize("window", [1, 2, 4, 12, 24])
def test_windows_give_what_acting_gave_across_episode_ends(setting, window, goal_terms):
    _, network, goals = setting
    terms = goal_terms(network, goals)
    observations = _observations(24, 3)
    done = jnp.asarray(np.random.default_rng(1).random((24, 3)) < 0.12)
    logits, value, hidden, age = _act_all(network, terms, observations, done)
    again = _windows(network, terms, observations, hidden, age, window)
    assert jnp.abs(again[0] - logits).max() < 1e-5
    assert jnp.abs(again[1] - value).max() < 1e-5
    assert jnp.abs(logits).max() > 0.1


def test_nothing_before_an_episode_boundary_matters_after_it(setting, goal_terms):
    _, network, goals = setting
    terms = goal_terms(network, goals)
    first, other = _observations(10, 3, 0), _observations(10, 3, 1)
    done = jnp.zeros((10, 3), bool).at[4, 1].set(True)
    mixed = jax.tree.map(lambda a, b: a.at[:5].set(b[:5]), first, other)
    one = _act_all(network, terms, first, done)
    two = _act_all(network, terms, mixed, done)
    assert (one[0][5:, 1] == two[0][5:, 1]).all()
    assert (one[1][5:, 1] == two[1][5:, 1]).all()
    assert (one[0][5, [0, 2]] != two[0][5, [0, 2]]).any()


@pytest.mark.parametrize("memory", [MEMORY, 64])
def test_each_memory_slot_matters_and_none_beyond(tiny, memory, goal_terms):
    # One column of environments for each distance, each changed at that distance and nowhere else.
    distances = np.arange(1, memory + 4)
    envs, steps = len(distances) + 1, memory + 8
    learner, state = tiny(ToyEnvironment(envs), {"blocks": 1, "memory": memory, "heads": 1}, {"window": 1})
    network = learner.network(state)
    terms = goal_terms(network, jnp.zeros(envs, jnp.int32))
    observations = jax.tree.map(lambda x: jnp.repeat(x, envs, axis=1), _observations(steps, 1))
    changed = observations.features.at[steps - 1 - distances, 1 + np.arange(len(distances))].add(1.0)
    logits = _act_all(network, terms, observations._replace(features=changed), jnp.zeros((steps, envs), bool))[0][-1]
    differs = np.asarray((logits[1:] != logits[0]).any(axis=-1))
    np.testing.assert_array_equal(differs, distances <= memory)


def test_memory_restored_from_hidden_states_is_the_memory(setting, goal_terms):
    _, network, goals = setting
    terms = goal_terms(network, goals)
    observations = _observations(7, 3)
    done = jnp.zeros((7, 3), bool).at[4, 0].set(True)
    logits, _, hidden, age = _act_all(network, terms, observations, done)
    restored = restore_memory(network, hidden[6 - MEMORY : 6], age[6], no_calls(3))
    step = jax.jit(evaluate_step)(network, restored, jax.tree.map(lambda x: x[6], observations), terms)
    assert jnp.abs(step.logits - logits[6]).max() < 1e-5


def test_acting_depends_on_each_environments_own_key(setting):
    _, network, goals = setting
    observation = jax.tree.map(lambda x: x[0], _observations(1, 3))
    keys = jax.random.split(jax.random.key(3), 3)
    step = jax.jit(act)
    table = jnp.eye(9, 12)
    both = step(network, empty_memory(network, 3), observation, goals, table, keys)
    for env in range(3):
        alone = step(
            network,
            empty_memory(network, 1),
            jax.tree.map(lambda x, e=env: x[e : e + 1], observation),
            goals[env : env + 1],
            table,
            keys[env : env + 1],
        )
        assert alone.action[0] == both.action[env]
        assert jnp.abs(alone.value[0] - both.value[env]) < 1e-5
        assert jnp.abs(alone.log_prob[0] - both.log_prob[env]) < 1e-5


def test_rollout_continues_across_calls_and_updates_reproject(setting, goal_terms):
    learner, network, goals = setting
    table = learner.goal_embeddings
    rollout = learner.begin(jax.random.key(1), goals)
    run = jax.jit(lambda n, r, k, length: collect(learner.environment, n, r, table, k, length), static_argnums=3)
    key = jax.random.key(2)
    middle, first, value = run(network, rollout, key, 8)
    _, second, _ = run(network, middle, jax.random.key(3), 8)
    assert jnp.abs(second.value[0] - value).max() < 1e-5
    other = jax.tree.map(lambda x: x * 1.01, network)
    _, after, _ = run(other, middle, jax.random.key(3), 8)
    terms = goal_terms(other, goals, table)
    cut = jax.tree.map(lambda x: x[None], (after.observation, after.age))
    memory = jnp.transpose(first.hidden[None, -MEMORY:], (2, 0, 3, 1, 4))
    _, again = jax.jit(lambda n, o, t, m, a: n.window(o, t, m, a))(other, cut[0], terms, memory, cut[1])
    assert jnp.abs(again[0] - after.value).max() < 1e-5


def test_large_gate_bias_makes_blocks_the_identity(tiny):
    learner, state = tiny(ToyEnvironment(2), {"gate_bias": 60.0}, jitter=0.1)
    network = learner.network(state)
    x = jax.random.normal(jax.random.key(0), (2, 4, 16))
    visible = jnp.ones((2, 4, 8), bool)
    for block in network.blocks:
        assert (jax.jit(type(block).window)(block, x, jnp.zeros((2, 4, 16)), visible) == x).all()
