"""`forethought sweep`: all runs of an experiment."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input
from forethought.cli.sweep_budget import count

if TYPE_CHECKING:
    from forethought.experiments.status import RunStatus
    from forethought.experiments.suites import Suite
    from forethought.experiments.sweep import Planned, SweepResult

INTERRUPTED = 85
"""Exit code of a sweep that was told to stop; the same command goes on with it."""

HELP = """usage: forethought sweep [run] SUITE ...    train all runs of an experiment
       forethought sweep status SUITE ...   how far they are, from their folder alone
       forethought sweep budget SUITE ...   hours and money that suites take

  forethought sweep targets                                     on this machine
  forethought sweep run targets --engine ray --runs-per-gpu 4   on this machine's GPUs, or on a Ray cluster
  forethought sweep run targets --engine slurm --hours 4        as a job array of Slurm
  forethought sweep status targets

  forethought sweep run --help     all about one of them
"""

Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]
Seeds = Annotated[tuple[int, ...], tyro.conf.arg(metavar="SEED ...")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def command(arguments: Sequence[str]) -> int:
    """Run `forethought sweep`."""
    from forethought.cli.parsing import call

    first = arguments[0] if arguments else ""
    if first in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if first == "budget":
        from forethought.cli.sweep_budget import budget

        return call(budget, arguments[1:], "forethought sweep budget")
    if first in _PARTS:
        return call(_PARTS[first], arguments[1:], f"forethought sweep {first}")
    return call(run, arguments, "forethought sweep")


def run(
    suite: Name,
    scale: str = "laptop",
    out: str = "runs",
    engine: Literal["inline", "ray", "slurm"] = "inline",
    jobs: int | None = None,
    dry_run: Flag = False,
    only: Names = (),
    groups: Names = (),
    learners: Names = (),
    variants: Names = (),
    seeds: Seeds = (),
    env: Literal["auto", "engine", "jax"] = "auto",
    steps_per_second: float | None = None,
    cores: int | None = None,
    runs_per_gpu: int | None = None,
    address: str = "local",
    retries: int = 3,
    hours: float = 4.0,
    sbatch: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = (),
) -> int:
    """Train all runs of an experiment: skips what is done, goes on with what was cut off.

    The suites are targets, uniform, sensitivity, smoothing, screening and tuning, or a TOML file like theirs.
    Ctrl-C lets the runs save and stops (exit code 85); the same command goes on. A run that fails stops no other.
    Several of these commands, on one machine or on many that share the folder, never work on one run at a time.

    Args:
        suite: Name of a suite, or a TOML file.
        scale: paper (as published), gpu-hour (a run is meant for an hour of a data-centre GPU) or laptop (minutes).
        out: Folder for the runs.
        engine: inline (processes on this machine), ray (this machine's GPUs, or a cluster) or slurm (a job array, which
            this command submits and leaves to Slurm).
        jobs: Runs side by side. Default: inline, at scale laptop one a core, else one; ray and slurm, as many as fit.
        dry_run: List the runs, their steps and an estimate of the hours, and stop.
        only: Methods, with spaces or commas between them; default: all.
        groups: Targets, or uniform; default: all.
        learners: primitive, subroutines; default: all of the suite.
        variants: Such as L=1, or main for the suite's main configuration; default: all.
        seeds: Default: all.
        env: What plays Craftax: engine, jax, or auto for what the suite's runs began with, else the engine if it is
            installed.
        steps_per_second: Speed of one run for the estimate; default: as measured in runs that are there.
        cores: ray, slurm: cores of a run; default: 1 at scale laptop, else 4.
        runs_per_gpu: ray: runs that share a GPU, 0 for none; default: 1 if there are GPUs and the runs may use one.
            slurm: 1 for a GPU each, 0 for none; default: 1 unless the runs ask for the CPU.
        address: ray: local for this machine alone; auto or HOST:PORT for a cluster that is there.
        retries: ray: how often a run is tried again whose process or machine was lost.
        hours: slurm: time limit of a job; a longer run goes on in the same job, put back in the queue.
        sbatch: slurm: more options of sbatch, such as partition=gpu account=me.
    """
    from forethought.experiments.engines import inline
    from forethought.experiments.suites import load_suite
    from forethought.experiments.sweep import plan, usable_cores

    with bad_input():
        chosen = select(load_suite(suite, scale), only, groups, learners, variants, seeds)
        if engine == "inline":
            jobs = jobs if jobs is not None else (len(usable_cores()) if chosen.one_core_each else 1)
            inline.share_cores(jobs, chosen.one_core_each)
        options = _options(sbatch)
        planned = plan(chosen, out, env)
    if dry_run:
        with bad_input():
            left = estimate(planned, chosen, out, jobs or 1, steps_per_second)
            print(f"{listing(chosen, planned)}\n{left}")
        return 0

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    cores = cores if cores is not None else _default_cores(chosen, engine)
    with bad_input():
        if engine == "slurm":
            from forethought.experiments.engines import slurm

            share = runs_per_gpu if runs_per_gpu is not None else int(_may_use_gpu(planned))
            settings = slurm.SlurmOptions(jobs, cores, share, hours, sbatch=options)
            number, submitted = slurm.submit(planned, out, settings)
            return _submitted(number, submitted, len(planned), suite, scale, out)
        if engine == "ray":
            from forethought.experiments.engines import ray

            result = ray.sweep(planned, ray.RayOptions(address, jobs, cores, runs_per_gpu, retries), say)
        else:
            result = inline.sweep(planned, jobs=jobs or 1, one_core_each=chosen.one_core_each, say=say)
    return _ended(result, len(planned))


def status(
    suite: Name,
    scale: str = "laptop",
    out: str = "runs",
    only: Names = (),
    groups: Names = (),
    learners: Names = (),
    variants: Names = (),
    seeds: Seeds = (),
) -> int:
    """Say how far an experiment's runs are: reads their folder, whatever runs them, and changes nothing.

    Args:
        suite: Name of a suite, or a TOML file.
        scale: As in `sweep run`.
        out: Folder of the runs.
        only: Methods, with spaces or commas between them; default: all.
        groups: Targets, or uniform; default: all.
        learners: primitive, subroutines; default: all of the suite.
        variants: Such as L=1, or main for the suite's main configuration; default: all.
        seeds: Default: all.
    """
    from forethought.experiments.status import counts
    from forethought.experiments.status import status as look
    from forethought.experiments.suites import load_suite
    from forethought.experiments.sweep import plan

    with bad_input():
        chosen = select(load_suite(suite, scale), only, groups, learners, variants, seeds)
        found = look(plan(chosen, out))
    width = max(len(str(run.planned.path)) for run in found)
    for run in found:
        print(f"{run.planned.path!s:{width}}  {_described(run)}")
    print(f"{len(found)} runs: " + ", ".join(f"{many} {condition}" for condition, many in counts(found).items()))
    return 0


_PARTS = {"run": run, "status": status}


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
        lines.append(f"{run.path!s:{width}}  {count(training_steps(config)):>6} steps  {far}")
    return "\n".join(lines)


def estimate(planned: "Sequence[Planned]", suite: "Suite", out: str, jobs: int, steps_per_second: float | None) -> str:
    """What is left to do, and how long it takes."""
    from forethought.experiments.cost import cost_of, measured_speeds

    if steps_per_second is not None and not steps_per_second > 0:
        raise UsageError(f"--steps-per-second: {steps_per_second:g} given; allowed is a number above 0")
    learners = {run.spec.learner for run in planned}
    if steps_per_second is None:
        speeds = measured_speeds(out, suite.scale, planned)
        source = f"measured at this scale in {out}"
    else:
        speeds, source = dict.fromkeys(learners, steps_per_second), "as given"
    cost = cost_of(planned, speeds, jobs)
    first = (
        f"{len(planned)} runs, {cost.runs} not done: {count(cost.training_steps)} steps of training "
        f"and at most {count(cost.evaluation_steps)} of evaluation left"
    )
    if cost.training_hours is None or cost.most_hours is None:
        unknown = " and ".join(sorted({run.spec.learner for run in planned if not run.state.done} - speeds.keys()))
        return (
            f"{first}\nhours: unknown; no run with {unknown} has been measured at this scale in {out} "
            "(or give --steps-per-second)"
        )
    shown = ", ".join(f"{learner} {count(speed)}" for learner, speed in sorted(speeds.items()) if learner in learners)
    return (
        f"{first}\nhours: {cost.training_hours:.1f} of training, at most {cost.most_hours:.1f} with evaluation, "
        f"{jobs} at a time (steps/s of a run {source}: {shown})"
    )


def _ended(result: "SweepResult", runs: int) -> int:
    """What is said at the end, and the exit code."""
    print(f"{result.done} of {runs} runs done")
    for failure in result.failures:
        print(f"failed: {failure.path}: {failure.reason}\n        log: {failure.log}", file=sys.stderr)
    if result.elsewhere:
        print(f"{result.elsewhere} runs are in use by other processes", file=sys.stderr)
    if result.left:
        print(f"{result.left} runs left; the same command goes on with them", file=sys.stderr)
    if result.left or (result.elsewhere and not result.failures):
        return INTERRUPTED
    return 1 if result.failures else 0


def _submitted(number: str | None, submitted: int, runs: int, suite: str, scale: str, out: str) -> int:
    from forethought.experiments.engines.slurm import FOLDER

    if number is None:
        print(f"nothing to submit: all {runs} runs are done or in use")
        return 0
    print(
        f"{submitted} of {runs} runs submitted as job array {number}; scripts and outputs in {out}/{FOLDER}\n"
        f"how far they are: forethought sweep status {suite} --scale {scale} --out {out}"
    )
    return 0


def _described(run: "RunStatus") -> str:
    iterations = run.planned.spec.config.iterations
    far = f"{run.condition}, {run.iteration} of {iterations} iterations"
    if run.condition in ("done", "new"):
        return run.condition
    if run.condition == "at work":
        speed = f", {count(run.steps_per_second)} steps/s" if run.steps_per_second else ""
        return f"{far}{speed}: {run.claim}"
    gone = f": gone is {run.claim}" if run.claim else ""
    words = f"; last words: {run.last_words}" if run.last_words else ""
    return f"{run.condition if run.condition == 'waiting' else far}{gone}{words}"


def _default_cores(suite: "Suite", engine: str) -> int:
    from forethought.experiments.sweep import usable_cores

    wanted = 1 if suite.one_core_each else 4
    return min(wanted, len(usable_cores())) if engine == "ray" else wanted


def _may_use_gpu(planned: "Sequence[Planned]") -> bool:
    return any(run.spec.config.device != "cpu" for run in planned)


def _options(words: Sequence[str]) -> dict[str, str]:
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.strip("-") or not equals:
            raise UsageError(f"--sbatch: {word!r} given; allowed is NAME=VALUE, such as partition=gpu")
        options[name.strip("-")] = value
    return options


def _names(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in word.split(",") if part]
