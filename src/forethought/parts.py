"""Environments of the CPU in parts that step apart: one part a device, or lanes that take turns with the network.

Both are for training, where one environment does not touch another. Whichever part an environment is in, it plays
what it would play in one batch: its worlds come from its own number in the run.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int, Key

from forethought.environment import BatchedEnvironment, Observation, Outcome
from forethought.sharding import ENV, Spread

LANES = 2
"""With two, one half of the environments steps while the network acts for the other."""


class Part(BatchedEnvironment, Protocol):
    """An environment that can be one of several."""

    def reset_each(self, keys: Key[Array, " env"], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """`reset` with a key for each environment; `reset(key, goals)` gives them `split(key, num_envs)`."""
        ...


class _Parts:
    """What a batch in parts has in common with its parts."""

    def __init__(self, part: Part, num_envs: int):
        self.num_envs = num_envs
        self.part = part
        self.num_actions = part.num_actions
        self.noop_action = part.noop_action
        self.observation_spec = part.observation_spec
        self.queue_capacity = part.queue_capacity

    def begin(self, keys: Key[Array, " env"], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """Not in parts: evaluations play in an environment of their own."""
        raise NotImplementedError("environments in parts are for training")

    enqueue: Any = begin
    assignment: Any = begin


class DeviceParts(_Parts):
    """One part on each CPU device, inside the compiled program; the state is spread over the devices.

    Args:
        make_part: `make_part(num_envs)` gives an environment whose state is a pytree of arrays with a first axis.
        num_envs: Environments of all parts.
        spread: The devices.
    """

    def __init__(self, make_part: Callable[[int], Part], num_envs: int, spread: Spread):
        super().__init__(make_part(spread.share(num_envs)), num_envs)
        self._spread = spread
        whole = PartitionSpec(ENV)
        self.step = jax.shard_map(self.part.step, mesh=spread.mesh, in_specs=(whole, whole), out_specs=whole)
        self._total = jax.jit(
            jax.shard_map(
                lambda state: jax.lax.psum(self.part.metrics(state), ENV),
                mesh=spread.mesh,
                in_specs=whole,
                out_specs=PartitionSpec(),
            )
        )

    def reset(self, key: Key[Array, ""], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """Start every environment in a fresh world with the goal given, for training."""
        keys, size = jax.random.split(key, self.num_envs), self.part.num_envs
        started = []
        for number, device in enumerate(self._spread.devices):
            if device in self._spread.local:
                own = slice(number * size, (number + 1) * size)
                started.append(jax.device_put(self.part.reset_each(keys[own], goals[own]), device))
        return jax.tree.map(self._join, *started)

    def metrics(self, state: Any) -> dict[str, Float[Array, ""]]:
        """The parts' sums and counts, added up."""
        return self._total(state)

    def _join(self, *parts: Array) -> Array:
        shape = (self._spread.count * parts[0].shape[0], *parts[0].shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self._spread.axis(), list(parts))


class Lanes(_Parts):
    """This process's environments on the host, in two lanes; the state is a tuple of the lanes'.

    A lane has the same share of every device's environments.

    Args:
        make_part: `make_part(num_envs)` gives an environment that steps on the host.
        num_envs: Environments of all processes.
        spread: The devices that the network is on; None for one.
    """

    on_host = True

    def __init__(self, make_part: Callable[[int], Part], num_envs: int, spread: Spread | None = None):
        devices = 1 if spread is None else spread.count
        share = num_envs if spread is None else spread.share(num_envs)
        self.lanes = LANES if share % LANES == 0 else 1
        numbers = np.arange(num_envs, dtype=np.int32).reshape(devices, self.lanes, share // self.lanes)
        self.numbers = tuple(numbers[:, lane].reshape(-1) for lane in range(self.lanes))
        """The environments of each lane, of all processes."""
        mine = range(devices) if spread is None else [spread.devices.index(device) for device in spread.local]
        self._own = tuple(numbers[mine, lane].reshape(-1) for lane in range(self.lanes))
        super().__init__(make_part(len(self._own[0])), num_envs)
        self._spread = spread

    def reset(self, key: Key[Array, ""], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """Start every environment in a fresh world with the goal given, for training."""
        keys, goals = jax.random.split(key, self.num_envs), jnp.asarray(goals)
        started = [self.part.reset_each(keys[own], goals[own]) for own in self._own]
        order = np.argsort(np.concatenate(self._own))

        def join(*lanes: Array) -> Array:
            rows = np.concatenate([np.asarray(lane) for lane in lanes])[order]
            return jnp.asarray(rows) if self._spread is None else self._spread.gather_local([rows])

        observation = jax.tree.map(join, *(observation for _, observation in started))
        return tuple(state for state, _ in started), observation

    def step(self, state: Any, actions: Int[Array, " env"]) -> tuple[Any, Observation, Outcome]:
        """Advance one lane: its state and its actions."""
        return self.part.step(state, actions)

    def metrics(self, state: Any) -> dict[str, Float[Array, ""]]:
        """The lanes' sums and counts, added up over all processes."""
        return total_over_processes([self.part.metrics(lane) for lane in state])


def total_over_processes(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Numbers by name, added up over this process's parts and over processes."""
    from jax.experimental.multihost_utils import process_allgather

    total = {name: np.float32(sum(float(part[name]) for part in parts)) for name in parts[0]}
    if jax.process_count() == 1:
        return total
    return {name: np.asarray(values).sum(0) for name, values in process_allgather(total).items()}
