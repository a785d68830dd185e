"""A corridor in pure JAX: each door opens to one of three keys, and a wrong key leads back to the start."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from forethought import FeasibilityEvidence, LearningConnectivity, Task, TaskSet
from forethought.domains import DomainParts
from forethought.environment import Assignment, Observation, Outcome
from forethought.spec import CellTable, ObservationSpec

DOORS = 4
TASKS = TaskSet([Task(f"door-{n + 1}", f"Go through door {n + 1}.") for n in range(DOORS)])
KEYS = jnp.array([2, 0, 1, 2])


def domain(config):
    """What `forethought train --tasks.domain corridor_domain:domain` asks for."""
    chain = np.eye(DOORS, k=1)
    return DomainParts(
        tasks=TASKS,
        environment=lambda num_envs, goals, settings, **more: Corridors(
            num_envs, goals, settings.episode_limit, **more
        ),
        connectivity=LearningConnectivity.from_weights(TASKS.ids, chain),
        feasibility=FeasibilityEvidence.from_weights(TASKS.ids, chain, np.eye(DOORS)[0]),
    )


class State(NamedTuple):
    """All corridors: where each agent is, its episode, and the episodes that wait."""

    place: jax.Array
    goal: jax.Array
    key: jax.Array
    step: jax.Array
    active: jax.Array
    training: jax.Array
    queue_key: jax.Array
    queue_goal: jax.Array
    head: jax.Array
    tail: jax.Array


class Corridors:
    """Many corridors that step together; implements `forethought.environment.BatchedEnvironment`."""

    num_actions = 3
    noop_action = None
    observation_spec = ObservationSpec(1, DOORS, (CellTable("agent", 2),), 1)

    def __init__(self, num_envs, goals, episode_limit, queue_capacity=64):
        self.num_envs, self.episode_limit, self.queue_capacity = num_envs, episode_limit, queue_capacity
        self._doors = jnp.array([TASKS.index(goal) for goal in goals])

    def reset(self, key, goals):
        """Start every environment, for training."""
        return self._start(jax.random.split(key, self.num_envs), goals, training=True)

    def begin(self, keys, goals):
        """Start one given episode in every environment, for evaluation."""
        return self._start(keys, goals, training=False)

    def enqueue(self, state, keys, goals):
        """Append episodes to the queue."""
        slots = (state.tail + jnp.arange(len(goals))) % self.queue_capacity
        return state._replace(
            queue_key=state.queue_key.at[slots].set(keys),
            queue_goal=state.queue_goal.at[slots].set(goals.astype(jnp.int32)),
            tail=state.tail + len(goals),
        )

    def step(self, state, actions):
        """Try a key everywhere; what is done begins anew, or takes the next episode of the queue."""
        place = jnp.where(actions == KEYS[jnp.minimum(state.place, DOORS - 1)], state.place + 1, 0)
        success = (place > self._doors[state.goal]) & state.active
        step = state.step + 1
        outcome = Outcome(success, jnp.zeros_like(success), (step >= self.episode_limit) & state.active)
        done = outcome.done
        turn = state.head + jnp.cumsum(done, dtype=jnp.int32) - 1
        queued = done & ~state.training & (turn < state.tail)
        slot = turn % self.queue_capacity
        state = state._replace(
            place=jnp.where(done, 0, place),
            goal=jnp.where(queued, state.queue_goal[slot], state.goal),
            key=jnp.where(queued, state.queue_key[slot], state.key),
            step=jnp.where(done, 0, step),
            active=state.active & (~done | state.training | queued),
            head=state.head + queued.sum(dtype=jnp.int32),
        )
        return state, self._observe(state), outcome

    def assignment(self, state):
        """The episode that each environment is in."""
        return Assignment(state.goal, state.key, state.step, state.active)

    def metrics(self, state):
        """Nothing to add to what is recorded anyway."""
        return {}

    def _start(self, keys, goals, training):
        # Each array is an array of its own, since compiled loops give them up one by one.
        state = State(
            place=jnp.zeros(self.num_envs, jnp.int32),
            goal=jnp.array(goals, jnp.int32),
            key=jnp.copy(keys),
            step=jnp.zeros(self.num_envs, jnp.int32),
            active=jnp.ones(self.num_envs, bool),
            training=jnp.array(training),
            queue_key=jnp.broadcast_to(keys[0], (self.queue_capacity,)),
            queue_goal=jnp.zeros(self.queue_capacity, jnp.int32),
            head=jnp.zeros((), jnp.int32),
            tail=jnp.zeros((), jnp.int32),
        )
        return state, self._observe(state)

    def _observe(self, state):
        here = jnp.arange(DOORS) == state.place[:, None]
        time = state.step[:, None] / self.episode_limit
        return Observation(here.astype(jnp.uint8)[:, None, :, None], time.astype(jnp.float32))
