"""Made-up records of whole suites: the same on every machine, and of the shape that real ones have."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forethought.craftax.shipped import goals as shipped_goals
from forethought.experiments.figures import Study
from forethought.experiments.figures.dynamics import RELATED
from forethought.experiments.figures.study import goal_texts
from forethought.experiments.suites import RunSpec, Suite, load_suite
from forethought.experiments.suites.schema import UNIFORM
from forethought.rundir import CURRICULUM_COLUMNS, EVALUATION_COLUMNS, RunDirectory
from forethought.toy.goals import GOAL_IDS

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


SUITE = """
title = "a gem or nothing"
targets.tiny = ["gem", "stone"]

[scales.tiny]
about = "made up"
targets.preset = "toy"
uniform.preset = "toy"

[variants]
"L=1" = { curriculum.max_path_length = 1 }
"share=0.5" = { tasks.target_share = 0.5 }

[[blocks]]
over = "targets"
methods = ["alp", "alp+d+f"]
variants = ["", "share=0.5"]
seeds = [0, 1]

[[blocks]]
over = "targets"
methods = ["alp+d+f"]
variants = ["L=1"]
seeds = [0, 1]

[[blocks]]
over = "uniform"
methods = ["unif", "alp+d+f"]
seeds = [0, 1]
"""


@pytest.fixture
def made_up_sweep(tmp_path) -> tuple[Path, Path]:
    """A suite's file and a sweep's folder in which all its runs seem to be done but one."""
    file, out = tmp_path / "gems.toml", tmp_path / "runs"
    file.write_text(SUITE, encoding="utf-8")
    for spec in load_suite(file, "tiny").runs[:-1]:
        write_run(spec, out)
    return file, out


def write_run(spec: RunSpec, out: Path) -> None:
    """Write a run directory with made-up records of a run in the tiny domain."""
    meta = {"device": "cpu (2 cores)", "started": "2026-01-01T00:00:00Z", "git": {"commit": "0" * 40, "dirty": True}}
    run = RunDirectory.create(out / spec.directory, spec.config.to_toml(), meta)
    steps, end = spec.config.steps_per_iteration_total, spec.config.iterations
    pace = 0.2 + 0.1 * len(spec.method) + 0.1 * spec.seed
    for iteration in range(1, end + 1):
        run.record_metrics(
            {"iteration": iteration, "steps": iteration * steps, "seconds": 2.0, "steps_per_second": 8.0}
        )
        columns = dict.fromkeys([*CURRICULUM_COLUMNS][1:], [0.0] * len(GOAL_IDS)) | {
            "task": list(GOAL_IDS),
            "effective_share": [1 / len(GOAL_IDS)] * len(GOAL_IDS),
            **{name: [1] * len(GOAL_IDS) for name in ("selections", "episodes", "calls")},
        }
        run.record_curriculum(iteration, columns)
    run.flush()
    for iteration in range(0, end + 1, spec.config.evaluation.every):
        wins = [round(32 * min(pace * iteration / end / (1 + place / 4), 1.0)) for place in range(len(GOAL_IDS))]
        columns = {name: [0] * len(GOAL_IDS) for name in EVALUATION_COLUMNS} | {
            "iteration": [iteration] * len(GOAL_IDS),
            "steps": [iteration * steps] * len(GOAL_IDS),
            "goal": list(GOAL_IDS),
            "episodes": [32] * len(GOAL_IDS),
            "successes": wins,
            **{name: [win / 32 for win in wins] for name in ("success_rate", "wilson_low", "wilson_high")},
        }
        run.record_evaluation(columns)


SMALL = """
title = "small"
targets.tiny = ["gem"]

[scales.tiny]
about = "seconds"
one_core_each = true

[scales.tiny.targets]
preset = "toy"

[scales.tiny.targets.settings]
iterations = 60
curriculum = { warmup = 2 }
tasks = { goals_per_iteration = 4 }
environment = { envs_per_goal = 2, steps_per_iteration = 16, episode_limit = 8 }
ppo = { rollout_length = 8, window = 4, minibatches = 2 }
evaluation = { every = 30, episodes = 3, num_envs = 16, chunk = 8 }

[scales.tiny.targets.settings.network]
cell_embedding = 4
cell_features = 4
channels = 4
feature_units = 8
observation_units = 8
fuse_units = 8
width = 8
heads = 2
memory = 4
feedforward = 8
head_units = 8
head_layers = 1

[[blocks]]
over = "targets"
methods = ["alp", "unif", "perm"]
seeds = [0]
"""
"""A suite whose runs take seconds."""


@pytest.fixture
def suite_file(tmp_path) -> Path:
    """The file of a suite of three runs in the tiny domain, with the scale `tiny`."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path
