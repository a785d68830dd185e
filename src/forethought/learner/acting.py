"""Acting one step at a time: the same function for training, evaluation and play."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import Observation
from forethought.learner.network import ActorCritic, Conditioning, GoalTerms
from forethought.learner.subroutines import CALL_STEPS, Calls, follow, hang_up, log_policy, log_reference, no_calls


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
    calls: Calls
    """The subroutine in progress."""

    def conditioning(self, goals: Int[Array, " env"]) -> Conditioning:
        """What the network is told of goals at the next step, given the episodes' own."""
        left = self.calls.remaining.astype(jnp.float32) / CALL_STEPS
        return Conditioning(goals, self.calls.active(goals), left)


class Action(NamedTuple):
    """One step's choice."""

    action: Int[Array, " env"]
    """For the environment."""
    choice: Int[Array, " env"]
    """What was chosen: the action, or `num_actions` plus the goal that was called."""
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
    eligible: Bool[Array, " call"] | None = None,
) -> Action:
    """Sample an action in each environment.

    Args:
        network: The actor-critic.
        memory: What it remembers: `empty_memory` at first, later the memory returned, through `forget`.
        observation: What each environment shows.
        goals: Each environment's goal, a row of `goal_embeddings`.
        goal_embeddings: Vectors of all goals.
        keys: One key per environment, used for nothing else.
        eligible: Which goals a network with calls may call; none if not given.
    """
    terms = network.goal_tables(goal_embeddings).at(memory.conditioning(goals))
    if eligible is None:
        eligible = jnp.zeros(network.actor.out - network.num_actions, bool)
    reference = log_reference(eligible, network.num_actions)
    return sample(network, evaluate_step(network, memory, observation, terms), reference, keys)


def empty_memory(network: ActorCritic, num_envs: int) -> Memory:
    """The memory at the start of the first episodes."""
    width = network.project.weight.shape[1]
    hidden = jnp.zeros((network.memory, len(network.blocks), num_envs, width), network.compute_dtype)
    return restore_memory(network, hidden, jnp.zeros(num_envs, jnp.int32), no_calls(num_envs))


def forget(memory: Memory, done: Bool[Array, " env"]) -> Memory:
    """Start a new episode where the last step ended one."""
    return memory._replace(age=jnp.where(done, 0, memory.age), calls=hang_up(memory.calls, done))


def restore_memory(
    network: ActorCritic, hidden: Float[Array, "memory layer env width"], age: Int[Array, " env"], calls: Calls
) -> Memory:
    """Project the remembered inputs of each block anew, as after a change of the parameters.

    Args:
        network: The actor-critic.
        hidden: Inputs of each block at the last steps, the latest last.
        age: Steps since the start of the episode.
        calls: The subroutine in progress.
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
        calls,
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


def sample(network: ActorCritic, step: Step, reference: Float[Array, " choice"], keys: Key[Array, " env"]) -> Action:
    """Draw each environment's choice with its own key, and take note of calls.

    Args:
        network: The actor-critic.
        step: Its outputs.
        reference: `log_reference` of the goals that may be called.
        keys: One key per environment.
    """
    log_probs = log_policy(step.logits, reference)
    choice = jax.vmap(jax.random.categorical)(keys, log_probs).astype(jnp.int32)
    log_prob = jnp.take_along_axis(log_probs, choice[:, None], axis=1)[:, 0]
    action = jnp.where(choice < network.num_actions, choice, network.noop_action).astype(jnp.int32)
    memory = step.memory._replace(calls=follow(step.memory.calls, choice, network.num_actions))
    return Action(action, choice, log_prob, step.value, memory, step.hidden)
