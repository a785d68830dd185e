"""What a suite takes: runs, steps, and hours at a speed measured in runs that are there already."""

import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forethought.config import RunConfig
from forethought.experiments.sweep import Planned
from forethought.rundir import METRICS, RunDirectory


@dataclass(frozen=True)
class Cost:
    """What is left to do of some runs."""

    runs: int
    """Runs that are not done."""
    training_steps: int
    """Environment steps of training left."""
    evaluations: int
    """Evaluations left."""
    evaluation_steps: int
    """Environment steps of evaluation left, at most: every episode up to its limit."""
    training_hours: float | None
    """Hours of training; None where no speed is known."""
    most_hours: float | None
    """The same with evaluation, as if its steps took as long as those of training, which also learn."""


def cost_of(planned: Sequence[Planned], speeds: Mapping[str, float], jobs: int) -> Cost:
    """What is left to do.

    Args:
        planned: The runs.
        speeds: Environment steps a second of one run, by learner.
        jobs: Runs side by side.
    """
    left = [run for run in planned if not run.state.done]
    training = [(run.spec.learner, training_steps(run.spec.config, run.state.iteration)) for run in left]
    evaluation = [(run.spec.learner, evaluation_steps(run.spec.config, run.state.iteration)) for run in left]
    known = all(run.spec.learner in speeds for run in left)

    def hours(parts: Sequence[tuple[str, int]]) -> float | None:
        return sum(steps / speeds[learner] for learner, steps in parts) / jobs / 3600 if known else None

    return Cost(
        len(left),
        sum(steps for _, steps in training),
        sum(len(evaluations(run.spec.config, run.state.iteration)) for run in left),
        sum(steps for _, steps in evaluation),
        hours(training),
        hours(training + evaluation),
    )


def training_steps(config: RunConfig, done: int = 0) -> int:
    """Environment steps of training after `done` iterations."""
    return (config.iterations - done) * config.steps_per_iteration_total


def evaluation_steps(config: RunConfig, done: int = 0) -> int:
    """Environment steps of the evaluations from iteration `done` on, at most."""
    goals = len(config.evaluation.goals or config.tasks.goals) or _goals_of(config.tasks.domain)
    episodes = config.evaluation.episodes * goals
    return len(evaluations(config, done)) * episodes * config.environment.episode_limit


def evaluations(config: RunConfig, done: int = 0) -> tuple[int, ...]:
    """After which iterations a run is evaluated, from `done` on."""
    due = sorted({*range(0, config.iterations, config.evaluation.every), config.iterations})
    return tuple(iteration for iteration in due if iteration >= done)


def measured_speeds(out: str | Path, scale: str, planned: Sequence[Planned] = ()) -> dict[str, float]:
    """Environment steps a second of training, by learner: the median over the iterations of runs that are there.

    Args:
        out: Folder of the sweeps.
        scale: Of which scale; networks may differ between its suites.
        planned: The runs of a suite; with a learner that has been measured in them, no others count.
    """
    every: dict[str, list[Path]] = {}
    for folder in sorted(Path(out).glob(f"{scale}/*/*")):
        every.setdefault(folder.name, []).extend(path.parent for path in folder.rglob(METRICS))
    own: dict[str, list[Path]] = {}
    for run in planned:
        if run.state.begun:
            own.setdefault(run.spec.learner, []).append(run.path)
    speeds = {learner: _speeds(own.get(learner, ())) or _speeds(paths) for learner, paths in every.items()}
    return {learner: statistics.median(found) for learner, found in speeds.items() if found}


def _speeds(paths: Iterable[Path]) -> list[float]:
    tables = [RunDirectory(path).metrics() for path in paths]
    return [speed for table in tables if len(table) for speed in table["steps_per_second"]]


@functools.cache
def _goals_of(domain: str) -> int:
    from forethought.domains import DOMAINS

    return len(DOMAINS[domain](RunConfig()).tasks)
