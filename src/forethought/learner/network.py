"""The goal-conditioned actor-critic: encoder, gated Transformer-XL and two heads (C.2)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from forethought.environment import Observation, ObservationSpec
from forethought.learner.config import NetworkConfig
from forethought.learner.encoder import Encoder, make_encoder
from forethought.learner.layers import ROOT_2, Linear, orthogonal
from forethought.learner.transformer import Block, make_block


class GoalTerms(NamedTuple):
    """What goals add to the three layers that see them: constant while the goals and the network are."""

    fuse: Float[Array, "env fuse"]
    actor: Float[Array, "env hidden_actor"]
    critic: Float[Array, "env hidden_critic"]


class Head(eqx.Module):
    """A perceptron over the transformer's output and the goal."""

    layers: tuple[Linear, ...]

    def __call__(
        self, x: Float[Array, "*batch width"], goal: Float[Array, "*#batch units"]
    ) -> Float[Array, "*batch out"]:
        """Evaluate; the result is float32.

        Args:
            x: The transformer's output.
            goal: What the goal adds to the first layer.
        """
        y = self.layers[0].first(x) + goal
        for layer in self.layers[1:]:
            y = layer(jax.nn.relu(y))
        return y.astype(jnp.float32)


class ActorCritic(eqx.Module):
    """The whole network; its leaves are float32 arrays."""

    encoder: Encoder
    fuse: Linear
    project: Linear
    blocks: tuple[Block, ...]
    actor: Head
    critic: Head
    memory: int = eqx.field(static=True)
    """Earlier steps that a step can attend to."""
    compute_dtype: str = eqx.field(static=True)

    def goal_terms(self, goals: Float[Array, "env goal_width"]) -> GoalTerms:
        """Apply the goal's part of each layer that sees it.

        Args:
            goals: Embedding of each environment's goal.
        """
        goals = goals.astype(self.compute_dtype)
        return GoalTerms(self.fuse.rest(goals), self.actor.layers[0].rest(goals), self.critic.layers[0].rest(goals))

    def encode(self, observation: Observation, goal: Float[Array, "#batch fuse"]) -> Float[Array, "batch width"]:
        """Turn observations (one batch axis) into inputs of the transformer.

        Args:
            observation: What the agent sees.
            goal: What the goal adds to the layer that joins both.
        """
        seen = self.encoder(observation, jnp.dtype(self.compute_dtype))
        return self.project(jax.nn.gelu(self.fuse.first(seen) + goal))

    def window(
        self,
        observation: Observation,
        terms: GoalTerms,
        memory: Float[Array, "layer window env memory width"],
        age: Int[Array, "window time env"],
    ) -> tuple[Float[Array, "window time env action"], Float[Array, "window time env"]]:
        """Evaluate windows of consecutive steps.

        Args:
            observation: With axes [window time env].
            terms: The goals' terms, of each environment.
            memory: Inputs of each block at the steps before each window, the latest last; constants.
            age: Steps since the start of the episode, 0 at its first step; larger values than the memory's
                length mean the same as it.

        Returns:
            Logits of the actions and values, float32.
        """
        windows, time, env = age.shape
        flat = jax.tree.map(lambda a: a.reshape(windows * time * env, *a.shape[3:]), observation)
        goal = jnp.broadcast_to(terms.fuse, (windows * time, *terms.fuse.shape))
        x = self.encode(flat, goal.reshape(windows * time * env, -1))
        batch, width = windows * env, x.shape[-1]
        x = x.reshape(windows, time, env, width).swapaxes(1, 2).reshape(batch, time, width)
        memory = jax.lax.stop_gradient(memory)
        place = jnp.arange(self.memory + time)
        distance = self.memory + jnp.arange(time)[:, None] - place
        reach = jnp.minimum(age.swapaxes(1, 2).reshape(batch, time, 1), self.memory)
        visible = (distance >= 0) & (distance <= reach)
        for layer, block in enumerate(self.blocks):
            x = block.window(x, memory[layer].reshape(batch, self.memory, width), visible)
        x = x.reshape(windows, env, time, width).swapaxes(1, 2)
        return self.actor(x, terms.actor), self.critic(x, terms.critic)[..., 0]


def make_network(
    key: Key[Array, ""],
    spec: ObservationSpec,
    num_actions: int,
    goal_width: int,
    config: NetworkConfig,
) -> ActorCritic:
    """Initialise a network.

    Args:
        key: Source of all initial weights.
        spec: Shapes and vocabularies of the observations.
        num_actions: Number of actions.
        goal_width: Width of the goal embeddings.
        config: Sizes.
    """
    keys = jax.random.split(key, config.blocks + 5)
    return ActorCritic(
        encoder=make_encoder(keys[0], spec, config),
        fuse=orthogonal(keys[1], config.observation_units + goal_width, config.fuse_units, ROOT_2),
        project=orthogonal(keys[2], config.fuse_units, config.width, ROOT_2),
        blocks=tuple(make_block(k, config.width, config.heads, config.feedforward, config.gate_bias) for k in keys[5:]),
        actor=_make_head(keys[3], config, goal_width, num_actions, 0.01),
        critic=_make_head(keys[4], config, goal_width, 1, 1.0),
        memory=config.memory,
        compute_dtype=config.compute_dtype,
    )


def _make_head(key: Key[Array, ""], config: NetworkConfig, goal_width: int, out: int, gain: float) -> Head:
    keys = jax.random.split(key, config.head_layers + 1)
    sizes = [config.width + goal_width] + [config.head_units] * config.head_layers + [out]
    gains = [ROOT_2] * config.head_layers + [gain]
    layers = zip(keys, sizes[:-1], sizes[1:], gains, strict=True)
    return Head(tuple(orthogonal(k, fan_in, fan_out, g) for k, fan_in, fan_out, g in layers))
