"""`forethought sweep`: all runs of an experiment."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input

if TYPE_CHECKING:
    from forethought.experiments.suites import Suite
    from forethought.experiments.sweep import Planned

INTERRUPTED = 85
"""Exit code of a sweep that was told to stop; the same command goes on with it."""

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]


def command(arguments: Sequence[str]) -> int:
    """Run `forethought sweep`."""
    from forethought.cli.parsing import call

    return call(sweep, arguments, "forethought sweep")


def sweep(
    suite: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")],
    scale: str = "laptop",
    out: str = "runs",
    jobs: int | None = None,
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    only: Names = (),
    groups: Names = (),
    learners: Names = (),
    variants: Names = (),
    seeds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="SEED ...")] = (),
    env: Literal["auto", "engine", "jax"] = "auto",
    steps_per_second: float | None = None,
) -> int:
    """Train all runs of an experiment on this machine: skips what is done, goes on with what was cut off.

    The suites are targets, uniform, sensitivity, smoothing, screening and tuning, or a TOML file like theirs.
    Ctrl-C lets the runs save and stops (exit code 85); the same command goes on. A run that fails stops no other.

    Args:
        suite: Name of a suite, or a TOML file.
        scale: paper (as published), gpu-hour (a run is meant for an hour of a data-centre GPU) or laptop (minutes).
        out: Folder for the runs.
        jobs: Runs side by side, on cores of their own; default: at scale laptop one a core, else one.
        dry_run: List the runs, their steps and an estimate of the hours, and stop.
        only: Methods, with spaces or commas between them; default: all.
        groups: Targets, or uniform; default: all.
        learners: primitive, subroutines; default: all of the suite.
        variants: Such as L=1, or main for the suite's main configuration; default: all.
        seeds: Default: all.
        env: What plays Craftax: engine, jax, or auto for what the suite's runs began with, else the engine if it is
            installed.
        steps_per_second: Speed of one run for the estimate; default: as measured in runs that are there.
    """
    from forethought.experiments.suites import load_suite
    from forethought.experiments.sweep import plan, share_cores, usable_cores
    from forethought.experiments.sweep import sweep as run_all

    with bad_input():
        chosen = select(load_suite(suite, scale), only, groups, learners, variants, seeds)
        jobs = jobs if jobs is not None else (len(usable_cores()) if chosen.one_core_each else 1)
        share_cores(jobs, chosen.one_core_each)
        planned = plan(chosen, out, env)
    if dry_run:
        with bad_input():
            print(listing(chosen, planned))
            print(estimate(planned, chosen, out, jobs, steps_per_second))
        return 0
    with bad_input():
        result = run_all(
            planned,
            jobs=jobs,
            one_core_each=chosen.one_core_each,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    print(f"{result.done} of {len(planned)} runs done")
    for failure in result.failures:
        print(f"failed: {failure.path}: {failure.reason}\n        log: {failure.log}", file=sys.stderr)
    if result.left:
        print(f"{result.left} runs left; the same command goes on with them", file=sys.stderr)
        return INTERRUPTED
    return 1 if result.failures else 0


def select(
    suite: "Suite",
    methods: Sequence[str],
    groups: Sequence[str],
    learners: Sequence[str],
    variants: Sequence[str],
    seeds: Sequence[int],
) -> "Suite":
    """Some of a suite's runs, by names as they are typed."""
    return suite.select(
        methods=_names(methods),
        groups=_names(groups),
        learners=_names(learners),
        variants=["" if name == "main" else name for name in _names(variants)],
        seeds=seeds,
    )


def listing(suite: "Suite", planned: "Sequence[Planned]") -> str:
    """One line a run: where it lies, its steps, how far it is."""
    from forethought.experiments.cost import training_steps

    width = max(len(str(run.path)) for run in planned)
    lines = [f"suite {suite.name} at scale {suite.scale}: {suite.title}", suite.about]
    for run in planned:
        config, state = run.spec.config, run.state
        far = "done" if state.done else f"{state.iteration} of {config.iterations} iterations" if state.begun else "new"
        lines.append(f"{run.path!s:{width}}  {_count(training_steps(config)):>6} steps  {far}")
    return "\n".join(lines)


def estimate(planned: "Sequence[Planned]", suite: "Suite", out: str, jobs: int, steps_per_second: float | None) -> str:
    """What is left to do, and how long it takes."""
    from forethought.experiments.cost import cost_of, measured_speeds

    if steps_per_second is not None and not steps_per_second > 0:
        raise UsageError(f"--steps-per-second: {steps_per_second:g} given; allowed is a number above 0")
    learners = {run.spec.learner for run in planned}
    if steps_per_second is None:
        speeds = measured_speeds(out, suite.scale)
        source = f"measured at this scale in {out}"
    else:
        speeds, source = dict.fromkeys(learners, steps_per_second), "as given"
    cost = cost_of(planned, speeds, jobs)
    first = (
        f"{len(planned)} runs, {cost.runs} not done: {_count(cost.training_steps)} steps of training "
        f"and at most {_count(cost.evaluation_steps)} of evaluation left"
    )
    if cost.training_hours is None or cost.most_hours is None:
        return f"{first}\nhours: unknown; no run has been measured at this scale in {out} (or give --steps-per-second)"
    shown = ", ".join(f"{learner} {_count(speed)}" for learner, speed in sorted(speeds.items()) if learner in learners)
    return (
        f"{first}\nhours: {cost.training_hours:.1f} of training, at most {cost.most_hours:.1f} with evaluation, "
        f"{jobs} at a time (steps/s of a run {source}: {shown})"
    )


def _names(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in word.split(",") if part]


def _count(number: int | float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
