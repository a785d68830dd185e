"""Training: from a configuration to a run directory, for one seed or for several side by side."""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from forethought import processes, provenance
from forethought.config import RunConfig
from forethought.devices import describe, first, select
from forethought.environment import BatchedEnvironment
from forethought.evaluation import EvaluationResult
from forethought.learner import Learner
from forethought.learner.rollout import steps_on_host
from forethought.learner.seeds import OneLearner, SeededLearners
from forethought.loop import Loop
from forethought.parts import DeviceParts, Lanes
from forethought.progress import Reporter, SilentReporter, make_reporter
from forethought.run import Run
from forethought.rundir import RunDirectory, check_new
from forethought.sharding import Spread, spread_over
from forethought.signals import stop_on_signals
from forethought.sinks import check_sinks

if TYPE_CHECKING:
    from forethought.domains import Domain


@dataclass(frozen=True)
class RunResult:
    """How `train` ended."""

    path: Path
    iteration: int
    """Iterations done."""
    steps: int
    """Environment steps taken, over all environments."""
    interrupted: bool
    """A signal ended the run early; it is saved and can be continued."""
    evaluation: EvaluationResult | None
    """The evaluation after the last iteration, if this call made it."""


def train(
    config: RunConfig,
    run_dir: str | Path,
    *,
    resume: bool = False,
    reporter: Reporter | None = None,
    argv: Sequence[str] | None = None,
    devices: int = 1,
) -> RunResult:
    """Train one agent and leave a run directory behind.

    SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 save the run at the end of the iteration and return; a second SIGINT
    raises KeyboardInterrupt at once, which loses the iterations since the last checkpoint and nothing else.

    Args:
        config: The run; when resuming, the one in the directory.
        run_dir: Where; must not exist, unless resuming.
        resume: Continue the run that lies there from its last whole checkpoint.
        reporter: Shows the course of the run; the default suits stderr.
        argv: The command line, for the record.
        devices: Devices of each process that share the run; what it computes does not depend on it, up to rounding.
            All processes that `processes.join` brought together must call; the first one writes and reports.

    Raises:
        ValueError: One line: a bad or busy run directory, a missing device or package, goals or graphs that
            have changed since the run began.
    """
    return _train(config, {config.seed: (Path(run_dir), resume)}, reporter, argv, devices)[config.seed]


def train_seeds(
    config: RunConfig,
    run_dirs: Mapping[int, str | Path],
    *,
    reporter: Reporter | None = None,
    argv: Sequence[str] | None = None,
    devices: int = 1,
) -> dict[int, RunResult]:
    """Train agents that differ in their seed alone, side by side: each leaves a run directory as `train` does.

    Each device trains an equal share of the seeds. The learners are one program, which computes what `train`
    computes, up to rounding. Runs that are behind the others go on by themselves until all are level.

    Args:
        config: The runs, but for the seed.
        run_dirs: Where, by seed; what lies there already goes on.
        reporter: Shows the course of the runs, as one: means over seeds, and sums of steps and episodes.
        argv: The command line, for the record.
        devices: Devices that share the seeds; their number must divide that of the seeds.

    Returns:
        How each ended, by seed.

    Raises:
        ValueError: As `train` does; or the environments step on the host, or there are several processes.
    """
    if jax.process_count() > 1:
        raise ValueError("seeds side by side are trained by one process")
    places = {seed: Path(path) for seed, path in run_dirs.items()}
    return _train(config, {seed: (path, path.exists()) for seed, path in places.items()}, reporter, argv, devices)


def _train(
    config: RunConfig,
    places: Mapping[int, tuple[Path, bool]],
    reporter: Reporter | None,
    argv: Sequence[str] | None,
    devices: int,
) -> dict[int, RunResult]:
    """Train the runs of some seeds; for each, where it lies and whether it goes on."""
    existing = processes.on_first(
        lambda: {seed: RunDirectory(path) if resume else check_new(path) for seed, (path, resume) in places.items()}
    )
    check_sinks(config.sinks)
    used = first(select(config.device), devices)
    everywhere = spread_over(used)
    if not processes.is_first():
        reporter = SilentReporter()
    reporter = reporter or make_reporter()
    with jax.default_device(used[0]), ExitStack() as stack:
        from forethought.domains import choose_backend, load_domain

        config = choose_backend(config)
        configs = {seed: config.model_copy(update={"seed": seed}) for seed in places}
        domain = load_domain(config)
        spread = everywhere if len(places) == 1 else None
        device = describe(list(everywhere.devices if everywhere else used))
        meta = provenance.record(config, domain, device, spread.count if spread else 1, argv)

        def check() -> None:
            for seed, directory in (existing or {}).items():
                if directory is not None:
                    provenance.check_unchanged(configs[seed], directory, meta)

        processes.on_first(check)
        learner = make_learner(config, make_environment(config, domain, spread), domain, spread)
        learners = OneLearner(learner) if len(places) == 1 else SeededLearners(learner, len(places), used)
        runs = {seed: Run(configs[seed], domain, learner, reporter, everywhere) for seed in places}

        def open_directories() -> dict[int, RunDirectory]:
            opened = {}
            for seed, directory in (existing or {}).items():
                begun = {"run_id": uuid.uuid4().hex} | meta
                opened[seed] = directory or RunDirectory.create(places[seed][0], configs[seed].to_toml(), begun)
                stack.enter_context(opened[seed].locked())
            return opened

        directories = processes.on_first(open_directories) or {}
        with stop_on_signals(reporter) as stop, ExitStack() as closing:
            try:
                for seed, (path, resume) in places.items():
                    runs[seed].open(path, directories.get(seed), meta if resume else None)
                    closing.callback(runs[seed].close)
                Loop(list(runs.values()), learners, reporter, stop).go(device)
            finally:
                reporter.close()
        return {seed: _result(run) for seed, run in runs.items()}


def _result(run: Run) -> RunResult:
    last = run.evaluation if run.iteration == run.config.iterations else None
    return RunResult(run.directory.path, run.iteration, run.steps, run.interrupted, last)


def make_environment(config: RunConfig, domain: "Domain", spread: Spread | None) -> BatchedEnvironment:
    """The environments to train in: all in one batch, or in parts if the fast engine is to serve several devices."""
    if config.environment.backend != "engine":
        return domain.make_environment(config.num_envs)

    def part(num_envs: int) -> Any:
        return domain.make_environment(num_envs)

    if steps_on_host(part(1)):
        return Lanes(part, config.num_envs, spread)
    return part(config.num_envs) if spread is None else DeviceParts(part, config.num_envs, spread)


def make_learner(
    config: RunConfig, environment: BatchedEnvironment, domain: "Domain", spread: Spread | None = None
) -> Learner:
    """The learner that a configuration asks for."""
    return Learner(
        environment,
        domain.goal_embeddings,
        config.network,
        config.ppo,
        subroutines=config.learner == "subroutines",
        spread=spread,
    )
