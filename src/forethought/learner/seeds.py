"""Learners that differ in their seed alone, as one program: seeds are a leading axis, spread over devices."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int, Key

from forethought.learner.learner import Learner, LearnerState, Update
from forethought.learner.rollout import Rollout

SEED = "seed"


class SeededLearners:
    """Several learners of one make that learn side by side and send each other nothing.

    Every array of a state, a rollout or an update has the seeds as its first axis; each device has the same number
    of them and takes them one after the other. A seed's numbers are those of `Learner` by itself, up to rounding.

    Args:
        learner: Of which make; its environments step inside the compiled program.
        seeds: How many.
        devices: Where; their number divides that of the seeds.

    Raises:
        ValueError: The devices do not divide the seeds, or the environments step on the host.
    """

    def __init__(self, learner: Learner, seeds: int, devices: Sequence[Any]) -> None:
        if seeds < 1 or not devices or seeds % len(devices):
            raise ValueError(
                f"there are {len(devices)} devices, but their number must divide that of the {seeds} seeds"
            )
        if learner.on_host:
            raise ValueError(
                "seeds side by side need environments that step on the devices of the network, "
                "but these step on the host (the fast engine does, beside a GPU)"
            )
        self.learner = learner
        self.seeds = seeds
        self.in_turn = seeds // len(devices)
        """How many share the time of a device."""
        mesh = Mesh(np.array(devices), (SEED,), axis_types=(AxisType.Auto,))
        self._spread = NamedSharding(mesh, PartitionSpec(SEED))
        self._devices = tuple(devices)
        self._embeddings = jax.device_put(learner.goal_embeddings, NamedSharding(mesh, PartitionSpec()))
        by_seed = PartitionSpec(SEED)
        # Nothing is sent, so that there is nothing to check of what varies between devices.
        update = jax.shard_map(
            self._update_here,
            mesh=mesh,
            in_specs=(by_seed, by_seed, PartitionSpec(), by_seed),
            out_specs=by_seed,
            check_vma=False,
        )
        self._update = jax.jit(update, donate_argnums=(0, 1))

    def init(self, keys: Sequence[Key[Array, ""]] | Key[Array, " seed"]) -> LearnerState:
        """Learners that have seen nothing, from a key each."""
        return self.together([self.learner.init(key) for key in keys])

    def begin(
        self,
        keys: Sequence[Key[Array, ""]] | Key[Array, " seed"],
        goals: Sequence[np.ndarray] | Int[Array | np.ndarray, "seed env"],
        eligible: Sequence[np.ndarray] | Bool[Array | np.ndarray, "seed call"] | None = None,
    ) -> Rollout:
        """Reset all environments of all seeds; arguments as those of `Learner.begin`, for each seed.

        Raises:
            ValueError: As `Learner.begin` does.
        """
        flags = [None] * self.seeds if eligible is None else eligible
        return self.together(
            [self.learner.begin(key, goal, flag) for key, goal, flag in zip(keys, goals, flags, strict=True)]
        )

    def update(
        self, state: LearnerState, rollout: Rollout, keys: Sequence[Key[Array, ""]] | Key[Array, " seed"]
    ) -> tuple[LearnerState, Rollout, Update]:
        """Act for a rollout and learn from it, for each seed with its key; `state` and `rollout` are used up."""
        return self._update(state, rollout, self._embeddings, jax.device_put(jnp.stack([*keys]), self._spread))

    def together(self, parts: Sequence[Any]) -> Any:
        """The states or rollouts of all seeds, as `Learner` has them, with the seeds as a first axis: a copy."""
        share = self.seeds // len(self._devices)

        def join(*leaves: Array) -> Array:
            if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
                words = join(*(jax.random.key_data(leaf) for leaf in leaves))
                return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaves[0]))
            # With a type of its own, or what an update gives back would look new, and be compiled for anew.
            here = [
                jnp.stack(jax.device_put(list(leaves[place * share : (place + 1) * share]), device)).astype(
                    leaves[0].dtype
                )
                for place, device in enumerate(self._devices)
            ]
            shape = (self.seeds, *leaves[0].shape)
            return jax.make_array_from_single_device_arrays(shape, self._spread, here)

        return jax.tree.map(join, *parts)

    def of_seed(self, tree: Any, number: int) -> Any:
        """One seed's part of a state, a rollout or an update, on its device, as `Learner` has it."""
        share = self.seeds // len(self._devices)
        device = self._devices[number // share]

        def part(leaf: Array) -> Array:
            (here,) = (shard.data for shard in leaf.addressable_shards if shard.device == device)
            return here[number % share]

        return jax.tree.map(part, tree)

    def reports(self, update: Update) -> list[Update]:
        """Each seed's part of an update, on the host."""
        whole = jax.device_get(update)
        return [jax.tree.map(lambda leaf, number=number: leaf[number], whole) for number in range(self.seeds)]

    def _update_here(self, state: Any, rollout: Any, embeddings: Array, keys: Array) -> Any:
        def update(given: tuple[Any, Any, Array]) -> Any:
            return self.learner.update_purely(given[0], given[1], embeddings, given[2])

        if self.seeds > len(self._devices):
            return jax.lax.map(update, (state, rollout, keys))
        one = jax.tree.map(lambda leaf: leaf[0], (state, rollout, keys))
        return jax.tree.map(lambda leaf: leaf[None], update(one))


class OneLearner:
    """A learner by itself, with the methods of `SeededLearners` and no further axis."""

    in_turn = 1
    """How many share the time of a device."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def begin(self, keys: Sequence[Array], goals: Sequence[np.ndarray], eligible: Sequence[np.ndarray]) -> Rollout:
        """`Learner.begin`."""
        return self.learner.begin(keys[0], goals[0], eligible[0])

    def update(
        self, state: LearnerState, rollout: Rollout, keys: Sequence[Array]
    ) -> tuple[LearnerState, Rollout, Update]:
        """`Learner.update`."""
        return self.learner.update(state, rollout, keys[0])

    def together(self, parts: Sequence[Any]) -> Any:
        """The one there is: no copy."""
        return parts[0]

    def of_seed(self, tree: Any, number: int) -> Any:
        """All of it."""
        return tree

    def reports(self, update: Update) -> list[Update]:
        """The update, on the host."""
        return [jax.device_get(update)]
