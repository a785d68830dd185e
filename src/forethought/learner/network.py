"""The goal-conditioned actor-critic: encoder, gated Transformer-XL and two heads (C.2)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from forethought.environment import Observation
from forethought.learner.config import NetworkConfig
from forethought.learner.encoder import Encoder, make_encoder
from forethought.learner.layers import ROOT_2, Linear, orthogonal
from forethought.learner.transformer import Block, make_block
from forethought.spec import ObservationSpec


class Conditioning(NamedTuple):
    """Which goals the network is told of, at one step or several."""

    assigned: Int[Array, "*steps env"]
    """The episode's goal."""
    active: Int[Array, "*steps env"]
    """The goal that the actor pursues: the assigned one, or the one called."""
    remaining: Float[Array, "*steps env"]
    """Share of a call's time that is left, 0 outside calls."""


class GoalTerms(NamedTuple):
    """What the goals of some steps add to the layers that see them."""

    fuse: Float[Array, "*steps env fuse"] | None
    actor: Float[Array, "*steps env hidden_actor"]
    critic: Float[Array, "*steps env hidden_critic"]


class GoalTables(NamedTuple):
    """What each goal adds to the layers that see it: constant while the network is."""

    fuse: Float[Array, "goal fuse"] | None
    actor: Float[Array, "goal hidden_actor"]
    critic: Float[Array, "goal hidden_critic"]
    """Of the assigned goal."""
    called: Float[Array, "goal hidden_critic"] | None
    """Of the active goal, for the critic."""
    time: Float[Array, " hidden_critic"] | None
    """Of the time left."""

    def at(self, conditioning: Conditioning) -> GoalTerms:
        """The terms of given steps."""
        critic = self.critic[conditioning.assigned]
        if self.called is not None and self.time is not None:
            left = conditioning.remaining[..., None].astype(self.time.dtype)
            critic = critic + self.called[conditioning.active] + left * self.time
        fuse = None if self.fuse is None else self.fuse[conditioning.assigned]
        return GoalTerms(fuse, self.actor[conditioning.active], critic)


class Head(eqx.Module):
    """A perceptron over the transformer's output and the goal."""

    layers: tuple[Linear, ...]

    @property
    def out(self) -> int:
        """Number of outputs."""
        return self.layers[-1].weight.shape[1]

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
    fuse: Linear | None
    """Joins observation and goal; absent in a network that calls, whose memory is free of goals."""
    project: Linear
    blocks: tuple[Block, ...]
    actor: Head
    critic: Head
    memory: int = eqx.field(static=True)
    """Earlier steps that a step can attend to."""
    compute_dtype: str = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    """Actions of the environment; the actor's other outputs call a goal each."""
    noop_action: int = eqx.field(static=True)
    """What the environment executes when a goal is called."""

    def goal_tables(self, goals: Float[Array, "goal goal_width"]) -> GoalTables:
        """Apply the goals' part of each layer that sees them.

        Args:
            goals: Embeddings of all goals.
        """
        goals = goals.astype(self.compute_dtype)
        actor, critic = self.actor.layers[0], self.critic.layers[0]
        if self.fuse is not None:
            return GoalTables(self.fuse.rest(goals), actor.rest(goals), critic.rest(goals), None, None)
        # The critic's input: the transformer's output, the active goal, the assigned goal, the time left.
        width = goals.shape[1]
        of_goals = critic.weight[-2 * width - 1 : -1].astype(goals.dtype)
        assert critic.bias is not None
        return GoalTables(
            None,
            actor.rest(goals),
            goals @ of_goals[width:] + critic.bias.astype(goals.dtype),
            goals @ of_goals[:width],
            critic.weight[-1].astype(goals.dtype),
        )

    def encode(self, observation: Observation, goal: Float[Array, "#batch fuse"] | None) -> Float[Array, "batch width"]:
        """Turn observations (one batch axis) into inputs of the transformer.

        Args:
            observation: What the agent sees.
            goal: What the goal adds to the layer that joins both, in a network that has it.
        """
        seen = self.encoder(observation, jnp.dtype(self.compute_dtype))
        if self.fuse is None or goal is None:
            return self.project(seen)
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
            terms: The goals' terms, of each environment, or of each step of each environment.
            memory: Inputs of each block at the steps before each window, the latest last; constants.
            age: Steps since the start of the episode, 0 at its first step; larger values than the memory's
                length mean the same as it.

        Returns:
            Logits of the actions and values, float32.
        """
        windows, time, env = age.shape
        flat = jax.tree.map(lambda a: a.reshape(windows * time * env, *a.shape[3:]), observation)
        goal = terms.fuse
        if goal is not None:
            goal = jnp.broadcast_to(goal, (*age.shape, goal.shape[-1])).reshape(windows * time * env, -1)
        x = self.encode(flat, goal)
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
    *,
    calls: int = 0,
    noop_action: int = 0,
) -> ActorCritic:
    """Initialise a network: without calls the one restricted to the environment's actions, else the one that calls.

    Args:
        key: Source of all initial weights.
        spec: Shapes and vocabularies of the observations.
        num_actions: Number of the environment's actions.
        goal_width: Width of the goal embeddings.
        config: Sizes.
        calls: Number of goals that can be called.
        noop_action: What the environment executes when a goal is called.
    """
    keys = jax.random.split(key, config.blocks + 5)
    units = config.observation_units
    fuse = None if calls else orthogonal(keys[1], units + goal_width, config.fuse_units, ROOT_2)
    seen = goal_width if not calls else 2 * goal_width + 1
    return ActorCritic(
        encoder=make_encoder(keys[0], spec, config),
        fuse=fuse,
        project=orthogonal(keys[2], config.fuse_units if fuse is not None else units, config.width, ROOT_2),
        blocks=tuple(make_block(k, config.width, config.heads, config.feedforward, config.gate_bias) for k in keys[5:]),
        actor=_make_head(keys[3], config, goal_width, num_actions + calls, 0.01),
        critic=_make_head(keys[4], config, seen, 1, 1.0),
        memory=config.memory,
        compute_dtype=config.compute_dtype,
        num_actions=num_actions,
        noop_action=noop_action,
    )


def _make_head(key: Key[Array, ""], config: NetworkConfig, seen: int, out: int, gain: float) -> Head:
    keys = jax.random.split(key, config.head_layers + 1)
    sizes = [config.width + seen] + [config.head_units] * config.head_layers + [out]
    gains = [ROOT_2] * config.head_layers + [gain]
    layers = zip(keys, sizes[:-1], sizes[1:], gains, strict=True)
    return Head(tuple(orthogonal(k, fan_in, fan_out, g) for k, fan_in, fan_out, g in layers))
