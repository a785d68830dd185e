"""Collecting experience: all environments step together for a fixed number of steps."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.environment import BatchedEnvironment, Observation, Outcome
from forethought.learner.acting import Action, Memory, evaluate_step, forget, restore_memory, sample
from forethought.learner.config import NetworkConfig
from forethought.learner.network import ActorCritic, GoalTables
from forethought.learner.subroutines import Calls, log_reference, no_calls
from forethought.parts import DeviceParts, Lanes
from forethought.sharding import Spread, local_rows


class Rollout(NamedTuple):
    """Where all environments are between two updates."""

    environment: Any
    """State of the environments."""
    observation: Observation
    goals: Int[Array, " env"]
    hidden: Float[Array, "memory layer env width"]
    """Inputs of each block at the last steps, the latest last."""
    age: Int[Array, " env"]
    """Steps since the start of the episode, at most the memory's length."""
    calls: Calls
    """The subroutines in progress."""
    eligible: Bool[Array, " call"]
    """Which goals may be called; empty for a learner without calls."""


class Experience(NamedTuple):
    """What a rollout saw, and what the network made of it at the time; arrays have axes [time env]."""

    observation: Observation
    age: Int[Array, "time env"]
    calls: Calls
    """As they were when the choice was made."""
    choice: Int[Array, "time env"]
    """The action, or the environment's number of actions plus the goal called."""
    log_prob: Float[Array, "time env"]
    value: Float[Array, "time env"]
    hidden: Float[Array, "time layer env width"]
    outcome: Outcome
    called: Bool[Array, "time env"]
    """Whether the episode has seen a call, this step's included."""

    @property
    def done(self) -> Bool[Array, "time env"]:
        """Which steps ended an episode."""
        return self.outcome.success | self.outcome.terminated | self.outcome.truncated


def start(
    environment: BatchedEnvironment,
    config: NetworkConfig,
    key: Key[Array, ""],
    goals: Int[Array, " env"],
    eligible: Bool[Array, " call"],
) -> Rollout:
    """Reset all environments; nothing is remembered, and nobody is called."""
    goals = jnp.array(goals, jnp.int32)
    state, observation = environment.reset(key, goals)
    shape = (config.memory, config.blocks, environment.num_envs, config.width)
    return Rollout(
        state,
        observation,
        goals,
        jnp.zeros(shape, config.compute_dtype),
        jnp.zeros(environment.num_envs, jnp.int32),
        no_calls(environment.num_envs),
        jnp.array(eligible, bool),
    )


def place(rollout: Rollout, spread: Spread, *, on_host: bool = False) -> Rollout:
    """Put a rollout on the devices that share it, all but a state of environments on the host."""
    state = rollout.environment if on_host else spread.put_state(rollout.environment, rollout.age.shape[0])
    placed = along(
        rollout, lambda tree, axis: spread.put(tree, spread.axis(axis)), lambda tree: spread.put(tree, spread.copies)
    )
    return placed._replace(environment=state)


def keep(rollout: Rollout, spread: Spread, *, state: bool) -> Rollout:
    """Inside a compiled program: hold a rollout, with the environments' state or not, to the places of `place`."""
    kept = along(
        rollout, lambda tree, axis: spread.keep(tree, spread.axis(axis)), lambda tree: spread.keep(tree, spread.copies)
    )
    held = rollout.environment
    return kept._replace(environment=spread.keep_state(held, rollout.age.shape[0]) if state else held)


def along(rollout: Rollout, of_envs: Callable[[Any, int], Any], of_all: Callable[[Any], Any]) -> Rollout:
    """Apply a function to what has an axis of environments (given that axis), another to the rest.

    The state of the environments is left out.
    """
    return Rollout(
        environment=None,
        observation=of_envs(rollout.observation, 0),
        goals=of_envs(rollout.goals, 0),
        hidden=of_envs(rollout.hidden, 2),
        age=of_envs(rollout.age, 0),
        calls=of_envs(rollout.calls, 0),
        eligible=of_all(rollout.eligible),
    )


def collect(
    environment: BatchedEnvironment,
    network: ActorCritic,
    rollout: Rollout,
    goal_embeddings: Float[Array, "goal goal_width"],
    key: Key[Array, ""],
    length: int,
    spread: Spread | None = None,
) -> tuple[Rollout, Experience, Float[Array, " env"]]:
    """Act for `length` steps.

    Args:
        environment: The environments.
        network: The policy; constant during the rollout.
        rollout: Where the environments are.
        goal_embeddings: Vectors of all goals.
        key: Source of the actions: those of step t and environment n come from folding in t, then n.
        length: Steps of each environment.
        spread: The devices that share the environments; by default one.

    Returns:
        Where the environments are now, the experience, and the value of the state after the last step.
    """
    part = _prepare(network, rollout, goal_embeddings, key)

    def step(carry: tuple, time: Int[Array, ""]) -> tuple[tuple, Experience]:
        state, observation, memory = carry
        chosen = _choose(network, part, observation, memory, time)
        state, following, outcome = environment.step(state, chosen.action)
        return (state, following, forget(chosen.memory, outcome.done)), _note(observation, memory, chosen, outcome)

    carry = (rollout.environment, rollout.observation, part.memory)
    carry, experience = jax.lax.scan(step, carry, jnp.arange(length, dtype=jnp.int32))
    following, last_value = _conclude(network, part, rollout, carry, experience)
    if spread is not None:
        following = keep(following, spread, state=not isinstance(environment, DeviceParts))
    return following, experience, last_value


class HostCollector:
    """`collect` for environments that step on the host while the network computes on another device.

    One compiled program chooses the actions of a step; the environments step outside of it. Nothing calls back
    from a compiled program. `forethought.parts.Lanes` are environments in lanes: while one lane steps, the network
    acts for the other.

    Args:
        environment: The environments; `step` works on arrays of the host.
        length: Steps of each environment.
        spread: The devices that the network is on; by default one.
    """

    def __init__(self, environment: BatchedEnvironment, length: int, spread: Spread | None = None) -> None:
        self._environment = environment
        self._length = length
        self._spread = spread
        numbers = environment.numbers if isinstance(environment, Lanes) else (np.arange(environment.num_envs),)
        self._numbers = [jnp.asarray(lane, jnp.int32) for lane in numbers]
        if spread is not None:
            self._numbers = [spread.put(lane, spread.axis()) for lane in self._numbers]
        self._clock = _Clock()
        self._host = jax.local_devices(backend="cpu")[0]
        self._step: Callable[..., Any] = jax.jit(environment.step, donate_argnums=0)
        self._split = jax.jit(self._split_lanes)
        self._prepare = jax.jit(_prepare)
        self._choose = jax.jit(_choose)
        self._note: Callable[..., Any] = jax.jit(
            lambda observation, memory, chosen, outcome: (
                forget(chosen.memory, outcome.done),
                _note(observation, memory, chosen, outcome),
            )
        )
        self._conclude: Callable[..., Any] = jax.jit(self._conclude_lanes)
        self._stack = jax.jit(lambda steps: jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps))

    def __call__(
        self,
        network: ActorCritic,
        rollout: Rollout,
        goal_embeddings: Float[Array, "goal goal_width"],
        key: Key[Array, ""],
    ) -> tuple[Rollout, Experience, Float[Array, " env"]]:
        """Act for a rollout; arguments and results as those of `collect`."""
        in_lanes = isinstance(self._environment, Lanes)
        states = list(rollout.environment) if in_lanes else [rollout.environment]
        lanes = self._split(rollout._replace(environment=None))
        self._device = next(iter(rollout.age.devices()))
        self._clock.start()
        parts: list[_Part] = []
        now: list[Any] = []
        chosen: list[Action] = []
        steps: list[list[Experience]] = []
        for lane, numbers in zip(lanes, self._numbers, strict=True):
            part = self._prepare(network, lane, goal_embeddings, key, numbers)
            parts.append(part)
            now.append((lane.observation, part.memory))
            chosen.append(self._act(network, part, now[-1], 0))
            steps.append([])
        for time in range(self._length):
            for lane, part in enumerate(parts):
                decided = chosen[lane]
                actions = self._to_host(decided.action)
                with self._clock.stepping(), jax.default_device(self._host):
                    moved = jax.block_until_ready(self._step(states[lane], actions))
                states[lane] = moved[0]
                following, outcome = self._to_device(moved[1:])
                memory, noted = self._note(*now[lane], decided, outcome)
                now[lane] = (following, memory)
                steps[lane].append(noted)
                if time + 1 < self._length:
                    chosen[lane] = self._act(network, part, now[lane], time + 1)
        stacked = [self._stack(lane) for lane in steps]
        rest = rollout._replace(environment=None)
        ended, experience, last_value = self._conclude(network, parts, rest, now, stacked)
        self._clock.stop()
        return ended._replace(environment=tuple(states) if in_lanes else states[0]), experience, last_value

    def load(self) -> dict[str, float]:
        """How busy each side was in the rollouts since the last call, as shares of their time.

        `stepping_share` is the host's: environments were stepping. `acting_share` is the device's: it was choosing
        actions. The larger is what the rollout waits for; both near 1 is a perfect overlap.
        """
        return self._clock.shares()

    def _act(self, network: ActorCritic, part: "_Part", now: tuple[Observation, Memory], time: int) -> Action:
        chosen = self._choose(network, part, *now, jnp.asarray(time, jnp.int32))
        self._clock.acting_until(chosen.action)
        return chosen

    def _to_host(self, actions: Int[Array, " env"]) -> Array:
        if self._spread is None:
            return jax.device_put(actions, self._host)
        return jax.device_put(local_rows(actions), self._host)

    def _to_device(self, tree: Any) -> Any:
        if (spread := self._spread) is None:
            return jax.device_put(tree, self._device)
        return jax.tree.map(lambda leaf: spread.gather_local([np.asarray(leaf)]), tree)

    def _split_lanes(self, rollout: Rollout) -> tuple[Rollout, ...]:
        """The rollouts of each lane: of every device's environments the first half, and the second."""
        count, devices = len(self._numbers), 1 if self._spread is None else self._spread.count
        if count == 1:
            return (rollout,)

        def lane(number: int) -> Callable[[Any, int], Any]:
            def pick(leaf: Array, axis: int) -> Array:
                shape = leaf.shape
                parts = leaf.reshape(*shape[:axis], devices, count, -1, *shape[axis + 1 :]).take(number, axis + 1)
                return parts.reshape(*shape[:axis], shape[axis] // count, *shape[axis + 1 :])

            return lambda tree, axis: jax.tree.map(lambda leaf: pick(leaf, axis), tree)

        return tuple(along(rollout, lane(number), lambda flags: flags) for number in range(count))

    def _conclude_lanes(
        self, network: ActorCritic, parts: list["_Part"], rollout: Rollout, now: list[Any], experience: list[Experience]
    ) -> tuple[Rollout, Experience, Float[Array, " env"]]:
        devices = 1 if self._spread is None else self._spread.count

        def join(lanes: list[Any], axis: int) -> Any:
            """Put the environments of all lanes in their order again."""
            if len(lanes) == 1:
                return lanes[0]

            def together(*leaves: Array) -> Array:
                shape = leaves[0].shape
                apart = [leaf.reshape(*shape[:axis], devices, -1, *shape[axis + 1 :]) for leaf in leaves]
                return jnp.stack(apart, axis + 1).reshape(*shape[:axis], -1, *shape[axis + 1 :])

            return jax.tree.map(together, *lanes)

        values = [
            _last_value(network, part, observation, memory)
            for part, (observation, memory) in zip(parts, now, strict=True)
        ]
        rows = [item._replace(hidden=None) for item in experience]
        whole = join(rows, 1)._replace(hidden=join([item.hidden for item in experience], 2))
        observation = join([observation for observation, _ in now], 0)
        age = join([memory.age for _, memory in now], 0)
        calls = join([memory.calls for _, memory in now], 0)
        following = _following(network, rollout, None, observation, age, calls, whole)
        if self._spread is not None:
            following = keep(following, self._spread, state=False)
        return following, whole, join(values, 0)


class _Clock:
    """When the host steps and the device acts, in rollouts where they take turns or overlap."""

    def __init__(self) -> None:
        self._watcher: ThreadPoolExecutor | None = None
        self._acting: list[tuple[float, Future]] = []
        self._seconds = {"rollout": 0.0, "stepping": 0.0, "acting": 0.0}

    def start(self) -> None:
        self._watcher = ThreadPoolExecutor(1)
        self._started = perf_counter()

    def acting_until(self, result: Array) -> None:
        """Note that the device acts from now on until this is there."""
        assert self._watcher is not None
        self._acting.append((perf_counter(), self._watcher.submit(_when_ready, result)))

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Note that the host steps meanwhile."""
        started = perf_counter()
        yield
        self._seconds["stepping"] += perf_counter() - started

    def stop(self) -> None:
        assert self._watcher is not None
        self._watcher.shutdown()
        self._seconds["rollout"] += perf_counter() - self._started
        before = 0.0
        for started, future in self._acting:
            ready = future.result()
            self._seconds["acting"] += max(0.0, ready - max(started, before))
            before = max(before, ready)
        self._acting.clear()

    def shares(self) -> dict[str, float]:
        total = self._seconds["rollout"]
        shares = {f"{side}_share": self._seconds[side] / total if total else 0.0 for side in ("stepping", "acting")}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        return shares


def _when_ready(result: Array) -> float:
    jax.block_until_ready(result)
    return perf_counter()


def steps_on_host(environment: BatchedEnvironment) -> bool:
    """Whether the environments live on the host while the default device is another."""
    (default,) = jnp.zeros(()).devices()
    return getattr(environment, "on_host", False) and default.platform != "cpu"


class _Part(NamedTuple):
    """What stays the same during a rollout, and the memory at its start."""

    tables: GoalTables
    reference: Float[Array, " choice"]
    goals: Int[Array, " env"]
    key: Key[Array, ""]
    memory: Memory
    numbers: Int[Array, " env"] | None
    """The environments' numbers in the run; None if they are all there."""


def _prepare(
    network: ActorCritic,
    rollout: Rollout,
    goal_embeddings: Float[Array, "goal goal_width"],
    key: Key[Array, ""],
    numbers: Int[Array, " env"] | None = None,
) -> _Part:
    return _Part(
        network.goal_tables(goal_embeddings),
        log_reference(rollout.eligible, network.num_actions),
        rollout.goals,
        key,
        # Keys and values depend on the parameters, which the update before may have changed.
        restore_memory(network, rollout.hidden, rollout.age, rollout.calls),
        numbers,
    )


def _choose(
    network: ActorCritic, part: _Part, observation: Observation, memory: Memory, time: Int[Array, ""]
) -> Action:
    envs = jnp.arange(part.goals.shape[0], dtype=jnp.int32) if part.numbers is None else part.numbers
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(part.key, time), envs)
    terms = part.tables.at(memory.conditioning(part.goals))
    return sample(network, evaluate_step(network, memory, observation, terms), part.reference, keys)


def _note(observation: Observation, memory: Memory, chosen: Action, outcome: Outcome) -> Experience:
    return Experience(
        observation,
        memory.age,
        memory.calls,
        chosen.choice,
        chosen.log_prob,
        chosen.value,
        chosen.hidden,
        outcome,
        chosen.memory.calls.used,
    )


def _conclude(
    network: ActorCritic, part: _Part, rollout: Rollout, carry: tuple, experience: Experience
) -> tuple[Rollout, Float[Array, " env"]]:
    state, observation, memory = carry
    last_value = _last_value(network, part, observation, memory)
    return _following(network, rollout, state, observation, memory.age, memory.calls, experience), last_value


def _last_value(network: ActorCritic, part: _Part, observation: Observation, memory: Memory) -> Float[Array, " env"]:
    terms = part.tables.at(memory.conditioning(part.goals))
    return evaluate_step(network, memory, observation, terms).value


def _following(
    network: ActorCritic,
    rollout: Rollout,
    state: Any,
    observation: Observation,
    age: Int[Array, " env"],
    calls: Calls,
    experience: Experience,
) -> Rollout:
    hidden = jnp.concatenate([rollout.hidden, experience.hidden])[-network.memory :]
    return rollout._replace(environment=state, observation=observation, hidden=hidden, age=age, calls=calls)
