"""Made-up records of whole suites: the same on every machine, and of the shape that real ones have."""

import zlib
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from forethought.craftax.shipped import goals as shipped_goals
from forethought.experiments.figures import Study
from forethought.experiments.figures.dynamics import RELATED
from forethought.experiments.figures.study import goal_texts
from forethought.experiments.suites import RunSpec, Suite, load_suite
from forethought.experiments.suites.schema import UNIFORM

SPEED = {
    "unif": 0.15,
    "target": 0.0,
    "i-diff": 0.2,
    "alp": 0.35,
    "alp+f": 0.45,
    "alp+d": 0.8,
    "alp+d+f": 1.0,
    "perm": 0.5,
}
"""How fast the made-up agents learn."""

SOME_GOALS = sorted({*RELATED, *(goal for goals in RELATED.values() for goal in goals)}, key=shipped_goals().ids.index)


def synthetic_evaluations(suite: Suite) -> pl.DataFrame:
    """What `forethought.experiments.results.evaluations` gives for a finished suite."""
    return pl.concat([_evaluations(run) for run in suite.runs])


def synthetic_record(run: RunSpec) -> pl.DataFrame:
    """What a finished run's `RunDirectory.curriculum` gives, in the columns that figures read."""
    goals = goals_of(run)
    iterations = np.arange(1, run.config.iterations + 1)
    rates = _rates(run, goals, iterations / run.config.iterations)
    weight = rates * (1 - rates) * SPEED[run.method] + 0.02
    if run.group in goals:
        weight[:, goals.index(run.group)] += 0.1
    share = weight / weight.sum(axis=1, keepdims=True)
    return pl.DataFrame(
        {
            "iteration": np.repeat(iterations, len(goals)),
            "task": goals * len(iterations),
            "probability": share.ravel(),
            "effective_share": share.ravel(),
            "success_rate": rates.ravel(),
        }
    )


def goals_of(run: RunSpec) -> list[str]:
    """The goals that a made-up run knows: those of its configuration, or of the benchmark; few where one counts."""
    goals = list(run.config.tasks.goals)
    if goals:
        return goals
    return list(shipped_goals().ids) if run.group == UNIFORM else SOME_GOALS


def _evaluations(run: RunSpec) -> pl.DataFrame:
    goals, episodes = list(run.config.evaluation.goals) or goals_of(run), run.config.evaluation.episodes
    every, end = run.config.evaluation.every, run.config.iterations
    iterations = np.unique([*range(0, end, every), end])
    rates = _rates(run, goals, iterations / run.config.iterations)
    rng = np.random.default_rng(zlib.crc32(f"{run.directory} evaluations".encode()))
    successes = rng.binomial(episodes, rates)
    return pl.DataFrame(
        {
            "iteration": np.repeat(iterations, len(goals)),
            "steps": np.repeat(iterations * run.config.steps_per_iteration_total, len(goals)),
            "goal": goals * len(iterations),
            "episodes": episodes,
            "successes": successes.ravel(),
            "success_rate": (successes / episodes).ravel(),
        }
    ).select(
        *(pl.lit(getattr(run, name)).alias(name) for name in ("group", "method", "learner", "variant")),
        pl.lit(run.seed, pl.Int64).alias("seed"),
        pl.all(),
    )


def _rates(run: RunSpec, goals: list[str], time: np.ndarray) -> np.ndarray:
    """Success over time (0 to 1): goals that come later in the list are learned later, or never."""
    rng = np.random.default_rng(zlib.crc32(run.directory.encode()))
    pace = SPEED[run.method] * rng.uniform(0.7, 1.3) * (1.4 if run.learner == "subroutines" else 1.0)
    onset = np.array([0.15 + 0.9 * zlib.crc32(goal.encode()) / 2**32 for goal in goals])
    return 0.95 / (1 + np.exp(-12 * (time[:, None] * (0.4 + pace) - onset))) * (pace > 0)


def synthetic_study(name: str, scale: str = "paper", keep: Callable[[RunSpec], bool] = lambda run: True) -> Study:
    """A study with made-up records of the runs that are kept."""
    suite = load_suite(name, scale)
    kept = [run for run in suite.runs if keep(run)]
    evaluations = pl.concat([_evaluations(suite.runs[0]).clear(), *map(_evaluations, kept)])
    return Study(
        suite, evaluations, synthetic_record, f"forethought sweep {name} --scale {scale} --out runs", goal_texts(suite)
    )


@pytest.fixture(scope="session")
def studies() -> Callable[..., Study]:
    """`studies(name, scale)`: a study of a finished suite; each is made once."""
    made: dict[tuple[str, str], Study] = {}

    def study(name: str, scale: str = "paper") -> Study:
        if (name, scale) not in made:
            made[name, scale] = synthetic_study(name, scale)
        return made[name, scale]

    return study
