"""The learner: what it knows, how it starts, and one update."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import BatchedEnvironment
from forethought.learner.config import NetworkConfig, PPOConfig
from forethought.learner.network import ActorCritic, make_network
from forethought.learner.ppo import loss, make_batch, take
from forethought.learner.rollout import Experience, Rollout, collect, start


class LearnerState(NamedTuple):
    """All that a learner knows: a pytree of arrays."""

    network: ActorCritic
    optimiser: Any


class Update(NamedTuple):
    """What one update reports."""

    metrics: dict[str, Array]
    """Sums and counts by name, so that updates add up: counts of `steps`, `episodes`, `successes`, `deaths`,
    `timeouts`, `updates` and `minibatches`; sums over minibatches of `policy_loss`, `value_loss`, `entropy`,
    `divergence`, `clipped` and `gradient_norm`; sum over updates of `first_ratio_error`, the largest distance
    of a probability ratio from 1 in the first minibatch."""
    done: Bool[Array, "time env"]
    """Which steps ended an episode."""
    success: Bool[Array, "time env"]
    """Which steps reached the goal."""


class Learner:
    """A goal-conditioned actor-critic trained by PPO in a batch of environments.

    Args:
        environment: Where to act.
        goal_embeddings: Vectors of all goals, in the order of the goals' numbers.
        network: Sizes of the network.
        ppo: Settings of the updates.

    Raises:
        ValueError: The minibatches do not divide the environments, or the embeddings are not a finite table.
    """

    def __init__(
        self,
        environment: BatchedEnvironment,
        goal_embeddings: Float[np.ndarray | Array, "goal goal_width"],
        network: NetworkConfig,
        ppo: PPOConfig,
    ) -> None:
        if environment.num_envs % ppo.minibatches:
            raise ValueError(
                f"minibatches is {ppo.minibatches}, but must divide the number of environments, "
                f"which is {environment.num_envs}"
            )
        vectors = np.asarray(goal_embeddings, np.float32)
        if vectors.size == 0 or not np.isfinite(vectors).all():
            raise ValueError(f"goal embeddings of shape {vectors.shape} must be finite and not empty")
        self.environment = environment
        self.goal_embeddings = jnp.asarray(vectors)
        self.network_config = network
        self.ppo = ppo
        self._optimiser = optax.chain(
            optax.clip_by_global_norm(ppo.max_gradient_norm),
            optax.adam(ppo.learning_rate, eps=ppo.adam_epsilon),
        )
        self._init = jax.jit(self._make_state)
        self._update = jax.jit(self._run_update, donate_argnums=(0, 1))

    def init(self, key: Key[Array, ""]) -> LearnerState:
        """A learner that has seen nothing."""
        return self._init(key)

    def network(self, state: LearnerState) -> ActorCritic:
        """The learner's network, as `act` takes it."""
        return state.network

    def begin(self, key: Key[Array, ""], goals: Int[Array | np.ndarray, " env"]) -> Rollout:
        """Reset all environments, each with its goal, and remember nothing.

        Args:
            key: Source of the environments' worlds.
            goals: Goal number of each environment.

        Raises:
            ValueError: There is not one goal per environment, or a goal number is out of range.
        """
        numbers = np.asarray(goals)
        count = self.goal_embeddings.shape[0]
        if numbers.shape != (self.environment.num_envs,):
            raise ValueError(
                f"goals have shape {numbers.shape}, but there are {self.environment.num_envs} environments"
            )
        if ((numbers < 0) | (numbers >= count)).any():
            raise ValueError(f"goals lie in [{numbers.min()}, {numbers.max()}], allowed is [0, {count - 1}]")
        # Not compiled here: an environment makes its worlds on the host, and compiles what is worth it.
        return start(self.environment, self.network_config, key, jnp.asarray(numbers, jnp.int32))

    def update(
        self, state: LearnerState, rollout: Rollout, key: Key[Array, ""]
    ) -> tuple[LearnerState, Rollout, Update]:
        """Act for a rollout and learn from it; one dispatch, after which `state` and `rollout` are used up.

        Args:
            state: The learner.
            rollout: Where the environments are.
            key: Source of the actions and the minibatches.
        """
        return self._update(state, rollout, self.goal_embeddings, key)

    def to_dict(self, state: LearnerState) -> dict[str, Any]:
        """The learner's state as nested dictionaries of NumPy arrays, for checkpoints."""
        nested: dict[str, Any] = {}
        for names, leaf in _leaves(jax.device_get(state)):
            place = nested
            for name in names[:-1]:
                place = place.setdefault(name, {})
            place[names[-1]] = np.asarray(leaf)
        return nested

    def from_dict(self, nested: dict[str, Any]) -> LearnerState:
        """Restore what `to_dict` gave, exactly.

        Raises:
            KeyError: An array is missing.
            ValueError: An array has another shape or type than this learner's, or there are too many.
        """
        template = jax.eval_shape(self._make_state, jax.random.key(0))
        restored = []
        for names, expected in _leaves(template):
            place: Any = nested
            for name in names:
                if not isinstance(place, dict) or name not in place:
                    raise KeyError(f"the learner's state lacks {'/'.join(names)}")
                place = place[name]
            array = np.asarray(place)
            if array.shape != expected.shape or array.dtype != expected.dtype:
                raise ValueError(
                    f"{'/'.join(names)} is {array.dtype}{list(array.shape)}, "
                    f"but this learner's is {expected.dtype}{list(expected.shape)}"
                )
            # A copy of the learner's own, since updates donate it.
            restored.append(jnp.array(array))
        if len(restored) != len(jax.tree.leaves(nested)):
            raise ValueError(f"the state has {len(jax.tree.leaves(nested))} arrays, expected {len(restored)}")
        return jax.tree.unflatten(jax.tree.structure(template), restored)

    def _make_state(self, key: Key[Array, ""]) -> LearnerState:
        environment = self.environment
        network = make_network(
            key,
            environment.observation_spec,
            environment.num_actions,
            self.goal_embeddings.shape[1],
            self.network_config,
        )
        return LearnerState(network, self._optimiser.init(network))  # pyright: ignore[reportArgumentType]

    def _run_update(
        self,
        state: LearnerState,
        rollout: Rollout,
        goal_embeddings: Float[Array, "goal goal_width"],
        key: Key[Array, ""],
    ) -> tuple[LearnerState, Rollout, Update]:
        acting_key, shuffle_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        config = self.ppo
        following, experience, last_value = collect(
            self.environment, state.network, rollout, goal_embeddings, acting_key, config.rollout_length
        )
        batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
        envs = self.environment.num_envs
        orders = [
            jax.random.permutation(jax.random.fold_in(shuffle_key, epoch), envs).reshape(
                config.minibatches, envs // config.minibatches
            )
            for epoch in range(config.epochs)
        ]

        def learn(state: LearnerState, part: Int[Array, " part"]) -> tuple[LearnerState, dict[str, Array]]:
            return self.learn(state, take(batch, part), goal_embeddings)

        state, parts = jax.lax.scan(learn, state, jnp.concatenate(orders))
        first_ratio_error = parts.pop("ratio_error")[0]
        metrics = {name: values.sum() for name, values in parts.items()} | _counts(experience)
        metrics["first_ratio_error"] = first_ratio_error
        metrics["minibatches"] = jnp.asarray(config.minibatches * config.epochs, jnp.int32)
        metrics["updates"] = jnp.asarray(1, jnp.int32)
        return state, following, Update(metrics, experience.done, experience.outcome.success)

    def learn(
        self, state: LearnerState, batch: Any, goal_embeddings: Float[Array, "goal goal_width"]
    ) -> tuple[LearnerState, dict[str, Array]]:
        """One step of the optimiser on one minibatch; pure."""
        (_, means), gradient = jax.value_and_grad(loss, has_aux=True)(state.network, batch, goal_embeddings, self.ppo)
        change, optimiser = self._optimiser.update(gradient, state.optimiser)
        network = optax.apply_updates(state.network, change)  # pyright: ignore[reportArgumentType]
        means["gradient_norm"] = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradient)))
        return LearnerState(network, optimiser), means  # pyright: ignore[reportArgumentType]


def _counts(experience: Experience) -> dict[str, Array]:
    outcome = experience.outcome
    deaths = outcome.terminated & ~outcome.success
    timeouts = outcome.truncated & ~outcome.success & ~outcome.terminated
    flags = {"episodes": experience.done, "successes": outcome.success, "deaths": deaths, "timeouts": timeouts}
    counts = {name: flag.sum(dtype=jnp.int32) for name, flag in flags.items()}
    return counts | {"steps": jnp.asarray(outcome.success.size, jnp.int32)}


def _leaves(tree: Any) -> list[tuple[tuple[str, ...], Any]]:
    """The leaves of a pytree with the names on the way to each."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(tuple(_name(entry) for entry in path), leaf) for path, leaf in found]


def _name(entry: Any) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    raise TypeError(f"no name for {entry!r}")
