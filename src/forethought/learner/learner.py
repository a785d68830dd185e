"""The learner: what it knows, how it starts, and one update."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import BatchedEnvironment
from forethought.learner.config import NetworkConfig, PPOConfig
from forethought.learner.network import ActorCritic, make_network
from forethought.learner.ppo import Batch, loss, make_batch, take
from forethought.learner.rollout import Experience, HostCollector, Rollout, collect, place, start, steps_on_host
from forethought.learner.subroutines import log_reference
from forethought.sharding import Spread


class LearnerState(NamedTuple):
    """All that a learner knows: a pytree of arrays."""

    network: ActorCritic
    optimiser: Any


class Update(NamedTuple):
    """What one update reports."""

    metrics: dict[str, Array]
    """Sums and counts by name, so that updates add up: counts of `steps`, `episodes`, `successes`, `deaths`,
    `timeouts`, `updates` and `minibatches`; sums over minibatches of `policy_loss`, `value_loss`, `entropy`,
    `reference_divergence`, `divergence`, `clipped` and `gradient_norm`; sum over updates of `first_ratio_error`, the
    largest distance of a probability ratio from 1 in the first minibatch. With calls also counts of `calls`,
    `steps_in_calls`, `episodes_with_call` and `successes_with_call`."""
    done: Bool[Array, "time env"]
    """Which steps ended an episode."""
    success: Bool[Array, "time env"]
    """Which steps reached the goal."""
    calls: Int[Array, " call"]
    """How often each goal was called; empty for a learner without calls."""


class Learner:
    """A goal-conditioned actor-critic trained by PPO in a batch of environments.

    Args:
        environment: Where to act.
        goal_embeddings: Vectors of all goals, in the order of the goals' numbers.
        network: Sizes of the network.
        ppo: Settings of the updates.
        subroutines: Whether the actor can call its own behaviour for other goals (C.4).
        host_loop: Whether the environments step outside compiled programs; by default where they live on the host
            and the network does not.
        spread: The devices to share the environments; by default one does it all.

    Raises:
        ValueError: The minibatches do not divide the environments, or the devices those of a minibatch, the embeddings
            are not a finite table, or there are to be calls and the environment has no action that does nothing.
    """

    def __init__(
        self,
        environment: BatchedEnvironment,
        goal_embeddings: Float[np.ndarray | Array, "goal goal_width"],
        network: NetworkConfig,
        ppo: PPOConfig,
        *,
        subroutines: bool = False,
        host_loop: bool | None = None,
        spread: Spread | None = None,
    ) -> None:
        if environment.num_envs % ppo.minibatches:
            raise ValueError(
                f"minibatches is {ppo.minibatches}, but must divide the number of environments, "
                f"which is {environment.num_envs}"
            )
        vectors = np.asarray(goal_embeddings, np.float32)
        if vectors.size == 0 or not np.isfinite(vectors).all():
            raise ValueError(f"goal embeddings of shape {vectors.shape} must be finite and not empty")
        if subroutines and environment.noop_action is None:
            raise ValueError("subroutines need an environment with an action that does nothing; noop_action is None")
        self.environment = environment
        self._spread = spread
        if spread is not None:
            spread.share(environment.num_envs, ppo.minibatches)
        self.goal_embeddings = self._copied(jnp.asarray(vectors))
        self.num_calls = vectors.shape[0] if subroutines else 0
        self.network_config = network
        self.ppo = ppo
        self._optimiser = optax.chain(
            optax.clip_by_global_norm(ppo.max_gradient_norm),
            optax.adam(ppo.learning_rate, eps=ppo.adam_epsilon),
        )
        self._init = jax.jit(self._make_state)
        if steps_on_host(environment) if host_loop is None else host_loop:
            self._host: HostCollector | None = HostCollector(environment, ppo.rollout_length, spread)
            self._collect: Callable[..., Any] = self._host
            self._learn: Callable[..., Any] = jax.jit(self._learn_from, donate_argnums=0)
            self._update: Callable[..., Any] = self._run_update
        else:
            self._host = None
            self._collect = partial(collect, environment, length=ppo.rollout_length, spread=spread)
            self._learn = self._learn_from
            self._update = jax.jit(self._run_update, donate_argnums=(0, 1))

    def init(self, key: Key[Array, ""]) -> LearnerState:
        """A learner that has seen nothing."""
        return self._copied(self._init(key))

    def network(self, state: LearnerState) -> ActorCritic:
        """The learner's network, as `act` takes it."""
        return state.network

    def begin(
        self,
        key: Key[Array, ""],
        goals: Int[Array | np.ndarray, " env"],
        eligible: Bool[Array | np.ndarray, " call"] | None = None,
    ) -> Rollout:
        """Reset all environments, each with its goal; nothing is remembered, and no call goes on.

        Args:
            key: Source of the environments' worlds.
            goals: Goal number of each environment.
            eligible: Which goals may be called until the next `begin`; by default none. A learner without calls
                takes it and does without.

        Raises:
            ValueError: There is not one goal per environment, a goal number is out of range, or there is not one
                flag per goal.
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
        flags = self.callable_goals(eligible)
        rollout = start(self.environment, self.network_config, key, jnp.asarray(numbers, jnp.int32), flags)
        return rollout if self._spread is None else place(rollout, self._spread, on_host=self._host is not None)

    def callable_goals(self, eligible: Bool[Array | np.ndarray, " goal"] | None) -> Bool[Array, " call"]:
        """The goals that the actor may call, out of those eligible: none without calls, or if not given.

        Raises:
            ValueError: There is not one flag per goal.
        """
        count = self.goal_embeddings.shape[0]
        if eligible is not None and np.shape(eligible) != (count,):
            raise ValueError(f"eligible has shape {np.shape(eligible)}, but there are {count} goals")
        if eligible is None or not self.num_calls:
            return jnp.zeros(self.num_calls, bool)
        return jnp.asarray(eligible, bool)

    def update(
        self, state: LearnerState, rollout: Rollout, key: Key[Array, ""]
    ) -> tuple[LearnerState, Rollout, Update]:
        """Act for a rollout and learn from it; one dispatch, after which `state` and `rollout` are used up.

        Args:
            state: The learner.
            rollout: Where the environments are.
            key: Source of the actions and the minibatches.
        """
        return self._update(state, rollout, self.goal_embeddings, self._copied(key))

    def update_purely(
        self,
        state: LearnerState,
        rollout: Rollout,
        goal_embeddings: Float[Array, "goal goal_width"],
        key: Key[Array, ""],
    ) -> tuple[LearnerState, Rollout, Update]:
        """`update` as a pure function, to be part of a larger program; the environments must step inside of it."""
        return self._run_update(state, rollout, goal_embeddings, key)

    @property
    def on_host(self) -> bool:
        """Whether the environments step on the host, outside compiled programs."""
        return self._host is not None

    def load(self) -> dict[str, float]:
        """How busy the host and the network's device were in the rollouts since the last call; see `HostCollector`.

        Empty where the environments step inside the compiled program.
        """
        return {} if self._host is None else self._host.load()

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
        return self._copied(jax.tree.unflatten(jax.tree.structure(template), restored))

    def _copied(self, tree: Any) -> Any:
        """The same on every device."""
        return tree if self._spread is None else self._spread.put(tree, self._spread.copies)

    def _make_state(self, key: Key[Array, ""]) -> LearnerState:
        environment = self.environment
        network = make_network(
            key,
            environment.observation_spec,
            environment.num_actions,
            self.goal_embeddings.shape[1],
            self.network_config,
            calls=self.num_calls,
            noop_action=environment.noop_action or 0,
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
        following, experience, last_value = self._collect(state.network, rollout, goal_embeddings, acting_key)
        state, update = self._learn(
            state, experience, rollout._replace(environment=None), last_value, goal_embeddings, shuffle_key
        )
        return state, following, update

    def _learn_from(
        self,
        state: LearnerState,
        experience: Experience,
        rollout: Rollout,
        last_value: Float[Array, " env"],
        goal_embeddings: Float[Array, "goal goal_width"],
        shuffle_key: Key[Array, ""],
    ) -> tuple[LearnerState, Update]:
        """Learn from a rollout; `rollout` is where it started."""
        config = self.ppo
        batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
        reference = log_reference(rollout.eligible, self.environment.num_actions)
        envs = self.environment.num_envs
        orders = [
            jax.random.permutation(jax.random.fold_in(shuffle_key, epoch), envs).reshape(
                config.minibatches, envs // config.minibatches
            )
            for epoch in range(config.epochs)
        ]

        def learn(state: LearnerState, part: Int[Array, " part"]) -> tuple[LearnerState, dict[str, Array]]:
            return self.learn(state, self._taken(batch, part), goal_embeddings, reference)

        state, parts = jax.lax.scan(learn, state, jnp.concatenate(orders))
        first_ratio_error = parts.pop("ratio_error")[0]
        metrics = {name: values.sum() for name, values in parts.items()} | _counts(experience)
        metrics["first_ratio_error"] = first_ratio_error
        metrics["minibatches"] = jnp.asarray(config.minibatches * config.epochs, jnp.int32)
        metrics["updates"] = jnp.asarray(1, jnp.int32)
        calls = jnp.zeros(self.num_calls, jnp.int32)
        if self.num_calls:
            metrics |= _call_counts(experience, self.environment.num_actions)
            # Actions go beyond the end, where nothing is counted.
            goal = experience.choice - self.environment.num_actions
            calls = calls.at[jnp.where(goal < 0, self.num_calls, goal)].add(1, mode="drop")
        update = Update(metrics, experience.done, experience.outcome.success, calls)
        # Every process needs them whole.
        return (state, update) if self._spread is None else self._spread.keep((state, update), self._spread.copies)

    def _taken(self, batch: Batch, part: Int[Array, " part"]) -> Batch:
        """The experience of some environments, dealt out to the devices anew."""
        taken = take(batch, part)
        if (spread := self._spread) is None:
            return taken
        return spread.keep(taken._replace(goals=None), spread.axis(2))._replace(
            goals=spread.keep(taken.goals, spread.axis())
        )

    def learn(
        self,
        state: LearnerState,
        batch: Batch,
        goal_embeddings: Float[Array, "goal goal_width"],
        reference: Float[Array, " choice"],
    ) -> tuple[LearnerState, dict[str, Array]]:
        """One step of the optimiser on one minibatch; pure."""
        slope = jax.value_and_grad(loss, has_aux=True)
        (_, means), gradient = slope(state.network, batch, goal_embeddings, reference, self.ppo, self._spread)
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


def _call_counts(experience: Experience, num_actions: int) -> dict[str, Array]:
    flags = {
        "calls": experience.choice >= num_actions,
        "steps_in_calls": experience.calls.inside | (experience.choice >= num_actions),
        "episodes_with_call": experience.done & experience.called,
        "successes_with_call": experience.outcome.success & experience.called,
    }
    return {name: flag.sum(dtype=jnp.int32) for name, flag in flags.items()}


def _leaves(tree: Any) -> list[tuple[tuple[str, ...], Any]]:
    """The leaves of a pytree with the names on the way to each."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(tuple(_name(entry) for entry in path), leaf) for path, leaf in found]


def _name(entry: Any) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    raise TypeError(f"no name for {entry!r}")
