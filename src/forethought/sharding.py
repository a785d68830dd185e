"""One run over several devices and processes: which device holds which environments.

The environments are spread over the devices in order, an equal share each; the network is copied to all of them.
The numbers are those of one device up to rounding: random streams belong to environments, and a minibatch holds
the same environments wherever they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

Tree = TypeVar("Tree")

ENV = "env"
"""Name of the mesh's one axis."""


@dataclass(frozen=True)
class Spread:
    """The devices that share the environments of one run, of all its processes in order."""

    devices: tuple[Any, ...]

    @property
    def count(self) -> int:
        """Devices, over all processes."""
        return len(self.devices)

    @cached_property
    def mesh(self) -> Mesh:
        """The devices as a mesh with one axis."""
        return Mesh(np.array(self.devices), (ENV,), axis_types=(AxisType.Auto,))

    @property
    def local(self) -> tuple[Any, ...]:
        """The devices of this process."""
        return tuple(device for device in self.devices if device.process_index == jax.process_index())

    def share(self, num_envs: int, minibatches: int = 1) -> int:
        """Environments of each device.

        Raises:
            ValueError: The devices do not divide the environments of a minibatch.
        """
        if num_envs % (self.count * minibatches):
            of = f"the {num_envs // minibatches} environments of a minibatch" if minibatches > 1 else f"{num_envs}"
            raise ValueError(f"there are {self.count} devices, but their number must divide {of}")
        return num_envs // self.count

    def axis(self, axis: int = 0) -> NamedSharding:
        """An equal part of the axis on each device."""
        return NamedSharding(self.mesh, PartitionSpec(*[None] * axis, ENV))

    @property
    def copies(self) -> NamedSharding:
        """The whole on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def put(self, tree: Tree, sharding: NamedSharding) -> Tree:
        """Place arrays that every process has whole."""
        return jax.tree.map(lambda leaf: _put(leaf, sharding), tree)

    def put_state(self, state: Tree, num_envs: int) -> Tree:
        """Place a state of environments; what is spread already stays."""

        def put(leaf: Any) -> Any:
            if isinstance(leaf, Array) and leaf.sharding.device_set == set(self.devices) and self.count > 1:
                return leaf
            return _put(leaf, self._of_state(leaf, num_envs))

        return jax.tree.map(put, state)

    def keep(self, tree: Tree, sharding: NamedSharding) -> Tree:
        """Inside a compiled program: hold arrays to their places."""
        return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, sharding), tree)

    def keep_state(self, state: Tree, num_envs: int) -> Tree:
        """`keep` for a state of environments, in the places of `put_state`."""
        return jax.tree.map(lambda leaf: self.keep(leaf, self._of_state(leaf, num_envs)), state)

    def gather_local(self, rows: Sequence[np.ndarray]) -> Array:
        """An array spread along its first axis, of which each process gives the rows of its own devices."""
        return jax.make_array_from_process_local_data(self.axis(), np.concatenate(rows))

    def _of_state(self, leaf: Any, num_envs: int) -> NamedSharding:
        return self.axis() if leaf.ndim and leaf.shape[0] == num_envs else self.copies


def spread_over(local: Sequence[Any]) -> Spread | None:
    """Some devices of this process, together with as many of each other process; None if that is one device."""
    if len(local) == 1 and jax.process_count() == 1:
        return None
    backend = local[0].platform
    found: list[Any] = []
    for process in range(jax.process_count()):
        found += [device for device in jax.devices(backend) if device.process_index == process][: len(local)]
    spread = Spread(tuple(found))
    if jax.process_count() > 1:
        # The processes connect now, while they are in step: later one may compile for longer than the others wait.
        jax.block_until_ready(jax.jit(jnp.sum)(spread.put(np.zeros(spread.count, np.float32), spread.axis())))
    return spread


def local_rows(array: Array) -> np.ndarray:
    """The rows of an array that lie on this process's devices, in order; all of them in a program of one process."""
    shards = {shard.index[0].start or 0: shard.data for shard in array.addressable_shards}
    return np.concatenate([np.asarray(shards[start]) for start in sorted(shards)])


def in_parts(function: Any, spread: Spread, axes: Any, out_axes: Any) -> Any:
    """Apply a function to each device's environments apart, as one program.

    A reshape that merges the axis of the environments with others would mix those of different devices, and send
    them around. Here each device's environments have an axis of their own from the start.

    Args:
        function: Takes and returns pytrees of arrays with an axis of environments.
        spread: The devices.
        axes: The axis of the environments in each argument.
        out_axes: The same of the results.
    """

    def split(leaf: Array, axis: int) -> Array:
        shape = (*leaf.shape[:axis], spread.count, leaf.shape[axis] // spread.count, *leaf.shape[axis + 1 :])
        return spread.keep(jnp.moveaxis(leaf.reshape(shape), axis, 0), spread.axis())

    def join(leaf: Array, axis: int) -> Array:
        parts = jnp.moveaxis(leaf, 0, axis)
        return parts.reshape(*parts.shape[:axis], -1, *parts.shape[axis + 2 :])

    def apply(*arguments: Any) -> Any:
        given = [
            jax.tree.map(lambda leaf, axis=axis: split(leaf, axis), argument)
            for argument, axis in zip(arguments, axes, strict=True)
        ]
        results = jax.vmap(function, spmd_axis_name=ENV)(*given)
        return tuple(join(result, axis) for result, axis in zip(results, out_axes, strict=True))

    return apply


def _put(leaf: Any, sharding: NamedSharding) -> Array:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        words = _put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
    if jax.process_count() == 1:
        # A copy: a state that is donated must not share memory with what it was made of.
        return jax.device_put(leaf, sharding, may_alias=False)
    if isinstance(leaf, Array) and leaf.sharding == sharding:
        return leaf
    value = np.asarray(leaf)
    return jax.make_array_from_callback(value.shape, sharding, lambda part: value[part])
