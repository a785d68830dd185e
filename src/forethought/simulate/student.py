"""What a synthetic student is: a learner that can be trained, and for the oracles a known model of how."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float

from forethought.tasks import TaskSet

State: TypeAlias = tuple[int | float, ...]
"""Everything that decides how a student responds to further training (the paper's policy pi_i)."""


@runtime_checkable
class Student(Protocol):
    """A learner that can be trained on one task at a time."""

    @property
    def tasks(self) -> TaskSet:
        """The tasks it can be trained on."""
        ...

    @property
    def competence(self) -> Float[np.ndarray, " task"]:
        """True current performance P(m), in [0, 1]; a curriculum does not see it."""
        ...

    def train(self, task: int, rng: np.random.Generator) -> float:
        """Train once on the task at this index and return the outcome observed, in [0, 1]."""
        ...


@runtime_checkable
class KnownStudent(Student, Protocol):
    """A student whose response to training is known beforehand, as the oracles need it."""

    @property
    def state(self) -> State:
        """The current state; two students in the same state behave alike."""
        ...

    def competence_of(self, state: State) -> Float[np.ndarray, " task"]:
        """The performance P(m; state) of every task, in [0, 1]."""
        ...

    def transitions(self, state: State, task: int) -> Sequence[tuple[float, State]]:
        """The states that one unit of training on `task` can lead to, with probabilities that sum to 1."""
        ...


def checked_index(task: int, count: int) -> int:
    """Return `task` as a plain int; IndexError unless 0 <= task < count."""
    index = int(task)
    if not 0 <= index < count:
        raise IndexError(f"task index {task} is outside 0..{count - 1}")
    return index
