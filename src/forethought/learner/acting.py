"""Acting one step at a time: the same function for training, evaluation and play."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import Observation
from forethought.learner.network import ActorCritic, GoalTerms


class Memory(NamedTuple):
    """What a network remembers of each environment, as keys and values in a ring of `memory + 1` slots.

    All environments step together, so that they share the ring's turn. The content is valid for the
    parameters that it was made with.
    """

    keys: tuple[Float[Array, "env heads slot head_width"], ...]
    """Of each block."""
    values: tuple[Float[Array, "env heads slot head_width"], ...]
    positions: tuple[Float[Array, "slot heads head_width"], ...]
    """Projected codes of the distances 0 to `memory`."""
    slot: Int[Array, ""]
    """The slot of the next step."""
    age: Int[Array, " env"]
    """Steps since the start of the episode, at most `memory`."""


class Action(NamedTuple):
    """One step's choice."""

    action: Int[Array, " env"]
    log_prob: Float[Array, " env"]
    value: Float[Array, " env"]
    memory: Memory
    hidden: Float[Array, "layer env width"]
    """Input of each block at this step, from which training restores the memory."""


class Step(NamedTuple):
    """One step's outputs of the network."""

    logits: Float[Array, "env action"]
    value: Float[Array, " env"]
    memory: Memory
    hidden: Float[Array, "layer env width"]


def act(
    network: ActorCritic,
    memory: Memory,
    observation: Observation,
    goals: Int[Array, " env"],
    goal_embeddings: Float[Array, "goal goal_width"],
    keys: Key[Array, " env"],
) -> Action:
    """Sample an action in each environment.

    Args:
        network: The actor-critic.
        memory: What it remembers: `empty_memory` at first, later the memory returned, through `forget`.
        observation: What each environment shows.
        goals: Each environment's goal, a row of `goal_embeddings`.
        goal_embeddings: Vectors of all goals.
        keys: One key per environment, used for nothing else.
    """
    terms = network.goal_terms(goal_embeddings[goals])
    return sample(evaluate_step(network, memory, observation, terms), keys)


def empty_memory(network: ActorCritic, num_envs: int) -> Memory:
    """The memory at the start of the first episodes."""
    width = network.project.weight.shape[1]
    hidden = jnp.zeros((network.memory, len(network.blocks), num_envs, width), network.compute_dtype)
    return restore_memory(network, hidden, jnp.zeros(num_envs, jnp.int32))


def forget(memory: Memory, done: Bool[Array, " env"]) -> Memory:
    """Start a new episode where the last step ended one."""
    return memory._replace(age=jnp.where(done, 0, memory.age))


def restore_memory(
    network: ActorCritic, hidden: Float[Array, "memory layer env width"], age: Int[Array, " env"]
) -> Memory:
    """Project the remembered inputs of each block anew, as after a change of the parameters.

    Args:
        network: The actor-critic.
        hidden: Inputs of each block at the last steps, the latest last.
        age: Steps since the start of the episode.
    """
    dtype = jnp.dtype(network.compute_dtype)
    keys, values, positions = [], [], []
    for layer, block in enumerate(network.blocks):
        key, value = block.keys_values(hidden[:, layer].swapaxes(0, 1).astype(dtype))
        pad = ((0, 0), (0, 0), (0, 1), (0, 0))
        keys.append(jnp.pad(key, pad))
        values.append(jnp.pad(value, pad))
        positions.append(block.positions(network.memory).astype(dtype))
    return Memory(
        tuple(keys),
        tuple(values),
        tuple(positions),
        jnp.asarray(network.memory, jnp.int32),
        jnp.minimum(age, network.memory).astype(jnp.int32),
    )


def evaluate_step(network: ActorCritic, memory: Memory, observation: Observation, terms: GoalTerms) -> Step:
    """Evaluate the network on one step of each environment."""
    slots = network.memory + 1
    distance = (memory.slot - jnp.arange(slots, dtype=jnp.int32)) % slots
    visible = distance <= memory.age[:, None]
    x = network.encode(observation, terms.fuse)
    all_keys, all_values, hidden = [], [], []
    for layer, block in enumerate(network.blocks):
        hidden.append(x)
        x, keys, values = block.step(
            x,
            memory.keys[layer],
            memory.values[layer],
            memory.positions[layer][distance],
            memory.slot,
            visible,
        )
        all_keys.append(keys)
        all_values.append(values)
    following = memory._replace(
        keys=tuple(all_keys),
        values=tuple(all_values),
        slot=(memory.slot + 1) % slots,
        age=jnp.minimum(memory.age + 1, network.memory),
    )
    value = network.critic(x, terms.critic)[..., 0]
    return Step(network.actor(x, terms.actor), value, following, jnp.stack(hidden))


def sample(step: Step, keys: Key[Array, " env"]) -> Action:
    """Draw each environment's action with its own key."""
    action = jax.vmap(jax.random.categorical)(keys, step.logits).astype(jnp.int32)
    log_probs = jax.nn.log_softmax(step.logits)
    log_prob = jnp.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]
    return Action(action, log_prob, step.value, step.memory, step.hidden)
