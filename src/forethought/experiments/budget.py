"""What whole suites take on a device: hours and money, from steps a second that were measured on it."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forethought.config import ConfigError, RunConfig, load_config
from forethought.experiments.cost import Cost, cost_of
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import Planned, plan
from forethought.rundir import CONFIG, RunDirectory


@dataclass(frozen=True)
class Speed:
    """How fast one run trains."""

    steps_per_second: float
    """Environment steps of training: the median over iterations, the first of which also compiles, left out."""
    source: str
    """On what it was measured, in words."""


@dataclass(frozen=True)
class Part:
    """A suite of a budget."""

    suite: str
    runs: int
    """Runs of the suite."""
    counted: tuple[Planned, ...]
    """Those that no suite above has."""
    cost: Cost
    """What is left to do of these; hours are those of a device."""


def budget(
    names: Sequence[str],
    scale: str,
    out: str | Path,
    speeds: Mapping[str, Speed],
    evaluation_seconds: float | None = None,
    runs_per_device: int = 1,
) -> tuple[Part, ...]:
    """What is left to do of suites; a run that several of them have is counted in the first.

    Args:
        names: Suites, or TOML files.
        scale: How large the runs are.
        out: Folder of the sweeps; what is done there is not counted.
        speeds: Speed of one run, by learner.
        evaluation_seconds: How long an evaluation takes; None: as long as its steps would take in training.
        runs_per_device: Runs side by side on a device when these were measured.

    Raises:
        ConfigError: If there is no such suite or scale, or the folder holds other runs.
    """
    rates = {learner: speed.steps_per_second for learner, speed in speeds.items()}
    parts, seen = [], set()
    for name in names:
        planned = plan(load_suite(name, scale), out)
        counted = tuple(run for run in planned if run.path not in seen)
        seen |= {run.path for run in counted}
        cost = cost_of(counted, rates, runs_per_device)
        if evaluation_seconds is not None and cost.training_hours is not None:
            evaluating = cost.evaluations * evaluation_seconds / 3600 / runs_per_device
            cost = replace(cost, most_hours=cost.training_hours + evaluating)
        parts.append(Part(Path(name).stem, len(planned), counted, cost))
    return tuple(parts)


def speed_of(run_dir: str | Path) -> tuple[RunConfig, Speed]:
    """How fast a run was, which may be of a few iterations only.

    Raises:
        ConfigError: If it has not finished an iteration, or several devices shared it.
        ValueError: If no run lies there.
    """
    run = RunDirectory(run_dir)
    rates = [row["steps_per_second"] for row in run.metrics().iter_rows(named=True)]
    if not rates:
        raise ConfigError(f"{run.path}: no iteration is done, so its speed is not known")
    sessions = [run.meta, *run.meta.get("continued", [])]
    if (devices := max(session.get("devices", 1) for session in sessions)) > 1:
        raise ConfigError(
            f"{run.path}: {devices} devices shared this run, but hours are those of one; measure it on one"
        )
    device, iterations = run.meta.get("device", "a device that it does not name"), len(rates)
    source = f"{run.path}: {device}, {iterations} iteration{'s' if iterations > 1 else ''}"
    if iterations == 1:
        source += ", with the time of compiling"
    return load_config(run.path / CONFIG), Speed(statistics.median(rates[1:] or rates), source)


def measured_on(run_dirs: Sequence[str | Path], names: Sequence[str], scale: str) -> dict[str, Speed]:
    """The speeds of runs, by learner, that compute an iteration as the runs of these suites do.

    Raises:
        ConfigError: If two runs are of one learner, or a run has another network, number of environments or
            updates of another shape; the message names the first setting that differs.
    """
    wanted = {}
    for name in names:
        for spec in load_suite(name, scale).runs:
            if not spec.variant:
                wanted.setdefault(spec.learner, spec.config)
    speeds: dict[str, Speed] = {}
    for path in run_dirs:
        config, speed = speed_of(path)
        if config.learner in speeds:
            raise ConfigError(f"{path}: a second run of learner {config.learner!r}; one of each says how fast it is")
        if config.learner in wanted:
            _check_alike(path, config, wanted[config.learner], scale)
        speeds[config.learner] = speed
    return speeds


def _check_alike(path: str | Path, config: RunConfig, wanted: RunConfig, scale: str) -> None:
    theirs, ours = (
        {"environments": each.num_envs}
        | {f"network.{name}": value for name, value in each.network.model_dump().items()}
        | {f"ppo.{name}": getattr(each.ppo, name) for name in ("rollout_length", "minibatches", "epochs", "window")}
        for each in (config, wanted)
    )
    for name, value in theirs.items():
        if value != ours[name]:
            raise ConfigError(
                f"{path}: {name} is {value!r} there and {ours[name]!r} at scale {scale}, so its speed says nothing here"
            )
