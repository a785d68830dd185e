"""The protocol of a batched goal environment: all that a learner and an evaluation need to know of one.

The calling sequence in training: `reset`, then `step` for as long as the goals stay the same. Finished
environments restart themselves, each in a fresh world, with the goal they had.

The calling sequence in evaluation: `begin` with one episode per environment, then alternate `enqueue` and a
few `step`s. A finished environment takes over the next queued episode (its world *and* its goal), the one that
finished first the one queued first; with the queue empty it idles.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from forethought.spec import ObservationSpec


class Observation(NamedTuple):
    """What the agent sees; ids, never one-hot vectors."""

    cells: UInt8[Array, "*env height width channel"]
    features: Float[Array, "*env feature"]


class Outcome(NamedTuple):
    """How one step ended, judged on the transition before any restart. An idle environment reports all false."""

    success: Bool[Array, " env"]
    """The goal was reached by this step (also if the same step terminated or ran into the limit)."""
    terminated: Bool[Array, " env"]
    """The domain itself ended the episode (death, for one)."""
    truncated: Bool[Array, " env"]
    """The episode reached its step limit."""

    @property
    def done(self) -> Bool[Array, " env"]:
        """The episode is over."""
        return self.success | self.terminated | self.truncated


class Assignment(NamedTuple):
    """The episode that each environment is in."""

    goal: Int[Array, " env"]
    key: Key[Array, " env"]
    """The key of the episode; its world comes from `jax.random.fold_in(key, 0)`."""
    step: Int[Array, " env"]
    """Steps taken in this episode so far."""
    active: Bool[Array, " env"]
    """False once an environment has finished and found the queue empty."""


@runtime_checkable
class BatchedEnvironment(Protocol):
    """Many environments that step together; every method is pure, `step` and `assignment` may run inside `jax.jit`.

    The state is a pytree of arrays, opaque to callers. A reward is not part of it: it is 1 on success, else 0.
    """

    @property
    def num_envs(self) -> int:
        """Environments that step together."""
        ...

    @property
    def num_actions(self) -> int:
        """Actions are the integers below this number."""
        ...

    @property
    def noop_action(self) -> int | None:
        """The action that does nothing, which a learner executes when it calls a subroutine; None if there is none."""
        ...

    @property
    def observation_spec(self) -> ObservationSpec:
        """Shapes and vocabularies of the observations."""
        ...

    def reset(self, key: Key[Array, ""], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """Start every environment in a fresh world with the goal given, for training."""
        ...

    def begin(self, keys: Key[Array, " env"], goals: Int[Array, " env"]) -> tuple[Any, Observation]:
        """Start one given episode in every environment, with an empty queue, for evaluation."""
        ...

    def enqueue(self, state: Any, keys: Key[Array, " episode"], goals: Int[Array, " episode"]) -> Any:
        """Append episodes to the queue; at most `queue_capacity` less those still waiting (the caller counts)."""
        ...

    @property
    def queue_capacity(self) -> int:
        """Episodes that the queue holds."""
        ...

    def step(self, state: Any, actions: Int[Array, " env"]) -> tuple[Any, Observation, Outcome]:
        """Advance every environment by one step; done ones restart, so their observation is the next episode's."""
        ...

    def assignment(self, state: Any) -> Assignment:
        """The episode that each environment is in."""
        ...

    def metrics(self, state: Any) -> dict[str, Float[Array, ""]]:
        """Sums and counts of this domain since the last `reset` or `begin`, by name (worlds reused, for one)."""
        ...
