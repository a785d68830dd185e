"""Drive a curriculum against a synthetic student and keep what the student could do over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from forethought.simulate.student import Student
from forethought.tasks import TaskSet


@runtime_checkable
class Chooser(Protocol):
    """The part of `Curriculum` that a drive uses; anything with these two methods will do."""

    def sample(self, k: int) -> Int[np.ndarray, " k"]:
        """Choose k task indices."""
        ...

    def update(self, task_indices: Int[np.ndarray, " draw"], successes: Float[np.ndarray, " draw"]) -> None:
        """Take in the outcomes observed, each in [0, 1]."""
        ...


@dataclass(frozen=True)
class Record:
    """True competence over a drive; point 0 lies before the first decision."""

    tasks: TaskSet
    """The student's tasks."""
    episodes: Int[np.ndarray, " point"]
    """Training episodes done so far at each point."""
    competence: Float[np.ndarray, "point task"]
    """True performance of every task at each point, in [0, 1]."""
    draws: Int[np.ndarray, " task"]
    """How often each task was trained on in the whole drive."""

    def at(self, episodes: int) -> Float[np.ndarray, " task"]:
        """Competence of every task at the last point not after `episodes`.

        Raises:
            ValueError: `episodes` is negative or beyond the end of the drive.
        """
        if not 0 <= episodes <= self.episodes[-1]:
            raise ValueError(f"{episodes} episodes lie outside the drive; allowed is 0 to {self.episodes[-1]}")
        return self.competence[np.searchsorted(self.episodes, episodes, side="right") - 1]

    def mastered_at(self, task: str | int, threshold: float = 0.75) -> int | None:
        """Episodes done when the task's competence was first seen above `threshold`; None if it never was."""
        index = self.tasks.index(task) if isinstance(task, str) else task
        above = np.flatnonzero(self.competence[:, index] > threshold)
        return int(self.episodes[above[0]]) if above.size else None


def run(
    student: Student,
    curriculum: Chooser,
    decisions: int,
    tasks_per_decision: int = 64,
    *,
    seed: int | np.random.SeedSequence = 0,
    every: int = 1,
) -> Record:
    """Let the curriculum decide what the student is trained on; the student is changed in place.

    Each decision draws `tasks_per_decision` tasks, trains the student on them one after another, and hands
    the outcomes back in one `update`.

    Args:
        student: Who is trained.
        curriculum: Who decides, as a rule a `Curriculum` over `student.tasks`.
        decisions: How many decisions to make.
        tasks_per_decision: Draws (training episodes) in each.
        seed: Seed of the student's own randomness; the curriculum has one of its own.
        every: Decisions between recorded points; the last one is always recorded.

    Raises:
        ValueError: A count below 1 (`decisions`: below 0).
    """
    for name, value, least in (
        ("decisions", decisions, 0),
        ("tasks_per_decision", tasks_per_decision, 1),
        ("every", every, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; allowed is {least} or more")
    rng = np.random.default_rng(seed)
    episodes, competence = [0], [student.competence]
    draws = np.zeros(len(student.tasks), dtype=np.int64)
    for decision in range(1, decisions + 1):
        chosen = curriculum.sample(tasks_per_decision)
        outcomes = _train(student, chosen.tolist(), rng)
        curriculum.update(chosen, outcomes)
        draws += np.bincount(chosen, minlength=len(draws))
        if decision % every == 0 or decision == decisions:
            episodes.append(decision * tasks_per_decision)
            competence.append(student.competence)
    return Record(student.tasks, np.array(episodes, dtype=np.int64), np.stack(competence), draws)


def _train(student: Student, chosen: Sequence[int], rng: np.random.Generator) -> Float[np.ndarray, " draw"]:
    return np.array([student.train(task, rng) for task in chosen], dtype=np.float64)
