"""Tiny networks and environments with known answers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.environment import Assignment, Observation, Outcome
from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.learner.network import Conditioning
from forethought.spec import CellTable, ObservationSpec

TINY = {
    "cell_embedding": 4,
    "cell_features": 4,
    "convolutions": 1,
    "channels": 4,
    "feature_units": 8,
    "observation_units": 16,
    "fuse_units": 16,
    "width": 16,
    "blocks": 2,
    "heads": 2,
    "memory": 4,
    "feedforward": 16,
    "head_units": 16,
}


class ProbeState(NamedTuple):
    signal: jax.Array
    step: jax.Array
    count: jax.Array
    key: jax.Array


class Probe:
    """Episodes of a fixed length; success at their end is decided by a signal shown at their start or always.

    kind "constant": success always. "observation": success where the signal is 1. "action": success where the
    last action equals the signal. The signal is shown at the first step only if `recall`.
    """

    num_actions = 2
    noop_action = None
    observation_spec = ObservationSpec(1, 1, (CellTable("cell", 2),), 2)
    queue_capacity = 1

    def __init__(self, num_envs, kind, length=1, recall=False):
        self.num_envs, self.kind, self.length, self.recall = num_envs, kind, length, recall

    def reset(self, key, goals):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(self.num_envs, dtype=jnp.int32))
        zeros = jnp.zeros(self.num_envs, jnp.int32)
        state = ProbeState(self._draw(keys, zeros), zeros, jnp.copy(zeros), keys)
        return state, self._observe(state)

    def begin(self, keys, goals):
        raise NotImplementedError

    def enqueue(self, state, keys, goals):
        raise NotImplementedError

    def _draw(self, keys, count):
        return jax.vmap(lambda k, c: jax.random.bernoulli(jax.random.fold_in(k, c)))(keys, count).astype(jnp.int32)

    def _observe(self, state):
        shown = (state.step == 0) | (not self.recall)
        last = state.step == self.length - 1
        features = jnp.stack([jnp.where(shown, 2.0 * state.signal - 1, 0.0), last], axis=1)
        return Observation(jnp.zeros((self.num_envs, 1, 1, 1), jnp.uint8), features.astype(jnp.float32))

    def step(self, state, actions):
        last = state.step == self.length - 1
        good = {
            "constant": jnp.ones(self.num_envs, bool),
            "observation": state.signal == 1,
            "action": actions == state.signal,
        }[self.kind]
        never = jnp.zeros(self.num_envs, bool)
        count = state.count + last
        state = ProbeState(
            jnp.where(last, self._draw(state.key, count), state.signal),
            jnp.where(last, 0, state.step + 1).astype(jnp.int32),
            count.astype(jnp.int32),
            state.key,
        )
        return state, self._observe(state), Outcome(last & good, last & ~good, never)

    def assignment(self, state):
        return Assignment(jnp.zeros_like(state.step), state.key, state.step, state.step >= 0)

    def metrics(self, state):
        return {}


@pytest.fixture(scope="session")
def goal_terms():
    """What goals add to a network, outside calls; goals are numbers of the table's rows."""

    def terms(network, goals, table=None):
        table = jnp.eye(9, 12) if table is None else table
        goals = jnp.asarray(goals)
        return network.goal_tables(table).at(Conditioning(goals, goals, jnp.zeros(goals.shape, jnp.float32)))

    return terms


@pytest.fixture(scope="session")
def tiny():
    """Make a tiny learner in an environment, with every parameter moved off its initial value."""

    def make(environment, network=None, ppo=None, *, jitter=0.3, **options):
        learner = Learner(
            environment,
            np.eye(9, 12, dtype=np.float32),
            NetworkConfig(**(TINY | (network or {}))),
            PPOConfig(
                **({"rollout_length": 16, "window": 4, "minibatches": 2 - environment.num_envs % 2} | (ppo or {}))
            ),
            **options,
        )
        state = learner.init(jax.random.key(0))
        leaves, tree = jax.tree.flatten(state.network)
        random = np.random.default_rng(0)
        moved = [jnp.asarray(leaf + jitter * random.normal(size=leaf.shape).astype(np.float32)) for leaf in leaves]
        return learner, state._replace(network=jax.tree.unflatten(tree, moved))

    return make


@pytest.fixture(scope="session")
def probe():
    return Probe
