"""The loop of a run: the curriculum picks goals, the learner trains on them, the curriculum hears of it.

An iteration starts with fresh worlds and an empty memory everywhere, and all its random numbers come from the
seed and the iteration's number. So the state between two iterations is the learner, the curriculum and two
counts; that is what a checkpoint holds, and a run that goes on from one does what it would have done.

The loop is over several runs that differ in their seed alone, of which there is one as a rule.
"""

import hashlib
import platform
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from forethought import checkpoint, processes
from forethought.config import RunConfig, load_config
from forethought.craftax.own_goals import digest
from forethought.curriculum import Curriculum, latest_per_environment
from forethought.devices import describe, first, select
from forethought.doctor import installed_version
from forethought.environment import BatchedEnvironment
from forethought.evaluation import EvaluationResult, Evaluator, pooled
from forethought.learner import Learner, LearnerState, Update
from forethought.learner.rollout import steps_on_host
from forethought.learner.seeds import OneLearner, SeededLearners
from forethought.learner.subroutines import ELIGIBLE_RATE
from forethought.parts import DeviceParts, Lanes
from forethought.progress import Reporter, SilentReporter, make_reporter
from forethought.rundir import CONFIG, RunDirectory, check_new
from forethought.sharding import Spread, spread_over
from forethought.sinks import check_sinks, open_sinks

if TYPE_CHECKING:
    from forethought.domains import Domain

INITIALISATION, WORLDS, UPDATES = range(3)
"""Streams of random numbers, each folded into the seed's key; evaluation has one more of its own."""

EPISODES_PER_ENVIRONMENT = 5
"""Finished episodes that each environment contributes to an iteration's success rates (paper, A.2)."""

SHOWN_GOALS = 3
_PACKAGES = (
    "forethought",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "equinox",
    "optax",
    "craftax",
    "craftax-native",
    "polars",
)


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
        meta = _meta(config, domain, describe(list(everywhere.devices if everywhere else used)), argv)
        devices_of_a_run = everywhere.count if everywhere and len(places) == 1 else 1
        meta |= {"backend": config.environment.backend, "devices": devices_of_a_run}

        def check() -> None:
            for seed, directory in (existing or {}).items():
                if directory is not None:
                    _check_unchanged(configs[seed], directory, meta)

        processes.on_first(check)
        spread = everywhere if len(places) == 1 else None
        learner = make_learner(config, make_environment(config, domain, spread), domain, spread)
        learners = OneLearner(learner) if len(places) == 1 else SeededLearners(learner, len(places), used)
        runs = {seed: _Run(configs[seed], domain, learner, reporter, everywhere) for seed in places}

        def open_directories() -> dict[int, RunDirectory]:
            opened = {}
            for seed, directory in (existing or {}).items():
                begun = meta | {"run_id": uuid.uuid4().hex}
                opened[seed] = directory or RunDirectory.create(places[seed][0], configs[seed].to_toml(), begun)
                stack.enter_context(opened[seed].locked())
            return opened

        directories = processes.on_first(open_directories) or {}
        with _signals(reporter) as stop:
            try:
                for seed, (path, resume) in places.items():
                    runs[seed].open(directories.get(seed) or _Elsewhere(path), meta if resume else None)
                    stack.callback(runs[seed].close)
                _Loop(list(runs.values()), learners, reporter, stop).go(meta["device"])
            finally:
                reporter.close()
        return {seed: run.result() for seed, run in runs.items()}


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


def eligible_goals(success_rate: np.ndarray) -> np.ndarray:
    """Which goals may be called, by their estimated success rates in training (paper, C.4)."""
    return success_rate >= ELIGIBLE_RATE


class _Run:
    """One run's parts: what it knows, and what it writes."""

    def __init__(
        self, config: RunConfig, domain: "Domain", learner: Learner, reporter: Reporter, spread: Spread | None = None
    ):
        self.config = config
        self.tasks = domain.tasks
        self.reporter = reporter
        self.learner = learner
        self.curriculum = Curriculum(
            self.tasks,
            connectivity=domain.connectivity,
            feasibility=domain.feasibility,
            interestingness=domain.interestingness,
            method=config.method,
            seed=config.seed,
            config=config.curriculum,
        )
        self.evaluator = Evaluator(
            self.learner,
            domain.make_environment,
            self.tasks.ids,
            goals=[self.tasks.index(goal) for goal in config.evaluation.goals] or None,
            episodes=config.evaluation.episodes,
            num_envs=config.evaluation.num_envs,
            seed=config.seed,
            chunk=config.evaluation.chunk,
            spread=spread,
        )
        self.fixed = {self.tasks.index(goal): count for goal, count in config.fixed_selections.items()}
        self.key = jax.random.key(config.seed)
        self.state = self.learner.init(jax.random.fold_in(self.key, INITIALISATION))
        self.iteration = 0
        self.steps = 0
        self.evaluation: EvaluationResult | None = None
        self.interrupted = False
        self._saved_at = 0

    def open(self, directory: "RunDirectory | _Elsewhere", continued: Mapping[str, Any] | None) -> None:
        """Take up what lies in the directory, if the run goes on (with the `meta` given), and write there from now."""
        self.directory = directory
        if continued is not None:
            self._restore()
            meta = directory.meta
            started = {"iteration": self.iteration, **_session(continued)}
            directory.write_meta(meta | {"continued": [*meta.get("continued", []), started]})
        config = self.config
        names = config.sinks if processes.is_first() else ()
        run_id = directory.meta.get("run_id", "")
        self._sinks = open_sinks(names, directory.path, config.model_dump(mode="json"), run_id)
        self._evaluated = processes.share(directory.evaluated())
        self._saved_at = self.iteration

    def close(self) -> None:
        """Let go of what is not the directory."""
        for sink in self._sinks:
            sink.close()

    def result(self) -> RunResult:
        """How it ended."""
        last = self.evaluation if self.iteration == self.config.iterations else None
        return RunResult(self.directory.path, self.iteration, self.steps, self.interrupted, last)

    @property
    def evaluated(self) -> bool:
        """Whether the agent has been evaluated as it is now."""
        return self.iteration in self._evaluated

    def evaluate(self, stop: "_Stop") -> EvaluationResult | None:
        """Evaluate the agent and record it; None if that was given up."""
        self.evaluation = self.evaluator.run(self.state, self.eligible, stop=lambda: stop.asked)
        if self.evaluation is not None:
            self.directory.record_evaluation(self.evaluation.columns(self.iteration, self.steps))
            self._evaluated.add(self.iteration)
        return self.evaluation

    def stream(self, number: int) -> Any:
        """The key of one of the iteration's streams of random numbers."""
        return jax.random.fold_in(jax.random.fold_in(self.key, number), self.iteration)

    def draw(self) -> np.ndarray:
        """Draw the iteration's goals: one of each environment."""
        self._record = self._beliefs()
        selected = self.curriculum.sample(self.config.tasks.goals_per_iteration, self.fixed)
        processes.require_same("draw of goals", selected.tolist())
        self._record["selections"] = np.bincount(selected, minlength=len(self.tasks))
        self._goals = np.repeat(selected, self.config.environment.envs_per_goal).astype(np.int32)
        self.evaluation = None
        return self._goals

    def conclude(
        self, state: LearnerState, updates: Sequence[Update], environment: Mapping[str, Any], started: float
    ) -> dict[str, Any]:
        """Take note of what has come of the iteration, and record it.

        Args:
            state: The learner after it.
            updates: Its updates, on the host.
            environment: What the environments counted.
            started: When it began.

        Returns:
            Its line of metrics.
        """
        config, curriculum, goals = self.config, self.curriculum, self._goals
        self.state = state
        _, environments = np.nonzero(ended := np.concatenate([update.done for update in updates]))
        outcomes = np.concatenate([update.success for update in updates])[ended].astype(np.float64)
        counted, means, counts = latest_per_environment(environments, outcomes, k=EPISODES_PER_ENVIRONMENT)
        curriculum.update(goals[counted], means, counts)
        self.iteration += 1
        self.steps += config.steps_per_iteration_total

        seconds = time.perf_counter() - started
        rates = curriculum.success_rate
        row = {
            "iteration": self.iteration,
            "steps": self.steps,
            "seconds": seconds,
            "steps_per_second": config.steps_per_iteration_total / seconds,
            "mean_success_rate": float(rates.mean()),
            "goals_above_third": int((rates > 1 / 3).sum()),
            "episodes": len(outcomes),
            "successes": int(outcomes.sum()),
        }
        for prefix, values in (
            ("learner", _learner_metrics([update.metrics for update in updates])),
            ("curriculum", curriculum.metrics()),
            ("environment", jax.device_get(environment)),
            ("host", self.learner.load()),
        ):
            row |= {f"{prefix}/{name}": float(value) for name, value in values.items()}
        size = len(self.tasks)
        self._record |= {
            "episodes": np.bincount(goals[counted], counts, size).astype(np.int64),
            "successes": np.bincount(goals[counted], means * counts, size),
            "calls": _calls_by_goal(updates, size),
        }
        self.directory.record_metrics(row)
        self.directory.record_curriculum(self.iteration, self._record)
        for sink in self._sinks:
            sink.log(self.steps, {k: v for k, v in row.items() if v is not None and np.isfinite(v)})
        return row

    @property
    def share(self) -> np.ndarray:
        """Each goal's share of the draws of the iteration before."""
        return self._record["effective_share"]

    @property
    def eligible(self) -> np.ndarray:
        """The goals that may be called now; a learner without calls does not look."""
        return eligible_goals(self.curriculum.success_rate)

    def _beliefs(self) -> dict[str, Any]:
        """What the next draw rests on."""
        curriculum = self.curriculum
        k = self.config.tasks.goals_per_iteration
        fixed = np.zeros(len(self.tasks))
        for goal, count in self.fixed.items():
            fixed[goal] = count
        probabilities = np.array(curriculum.probabilities)
        return {
            "task": self.tasks.ids,
            "probability": probabilities,
            "effective_share": (fixed + (k - fixed.sum()) * probabilities) / k,
            "success_rate": np.array(curriculum.success_rate),
            "learning_progress": np.array(curriculum.learning_progress),
            "downstream_potential": np.array(curriculum.downstream_potential),
            "feasibility": np.array(curriculum.feasibility),
        }

    def save(self) -> None:
        """Save the run as it is between two iterations, if that is not done."""
        directory = self.directory
        if isinstance(directory, _Elsewhere) or self._saved_at == self.iteration:
            return
        directory.flush()
        curriculum = self.curriculum.state_dict()
        arrays = {name: value for name, value in curriculum.items() if isinstance(value, np.ndarray)}
        scalars = {name: value for name, value in curriculum.items() if name not in arrays}
        checkpoint.save(
            directory.checkpoints,
            self.iteration,
            {"learner": self.learner.to_dict(self.state), "curriculum": arrays},
            {"steps": self.steps, "curriculum": scalars},
        )
        self._saved_at = self.iteration

    def _restore(self) -> None:
        directory = self.directory
        # All processes take the first one's word for what is in the directory.
        found = processes.on_first(
            lambda: checkpoint.load_latest(directory.path / "checkpoints", warn=self.reporter.message)
        )
        found = processes.share(found)
        if found is not None:
            self.state = self.learner.from_dict(found.arrays["learner"])
            self.curriculum.load_state_dict(found.arrays["curriculum"] | found.info["curriculum"])
            self.iteration, self.steps = found.iteration, found.info["steps"]
        directory.rewind(self.iteration)


class _Loop:
    """The loop over runs that are level with each other, or over those behind until they are."""

    def __init__(self, runs: Sequence[_Run], learners: OneLearner | SeededLearners, reporter: Reporter, stop: "_Stop"):
        self.runs = runs
        self.learners = learners
        self.alone = OneLearner(learners.learner)
        self.reporter = reporter
        self.stop = stop
        self.config = runs[0].config

    def go(self, device: str) -> None:
        """Train to the last iteration or until told to stop."""
        config, reporter = self.config, self.reporter
        reporter.start(config.iterations, min(run.iteration for run in self.runs), device)
        if len(self.runs) > 1:
            reporter.message(f"seeds {', '.join(str(run.config.seed) for run in self.runs)} side by side")
        saved_time = time.monotonic()
        first_evaluation, compiled = True, False
        while True:
            iteration = min(run.iteration for run in self.runs)
            runs = [run for run in self.runs if run.iteration == iteration]
            last = iteration == config.iterations
            due = last or iteration % config.evaluation.every == 0
            asked = processes.any_says(self.stop.asked)
            if due and not asked and not all(run.evaluated for run in runs):
                reporter.message(f"evaluating ...{_compiling(first_evaluation)}")
                first_evaluation = False
                results = []
                for run in runs:
                    if not run.evaluated and (result := run.evaluate(self.stop)) is not None:
                        results.append(result)
                if all(run.evaluated for run in runs):
                    reporter.evaluation(iteration, pooled(results))
                asked = processes.any_says(self.stop.asked)
            if last or asked:
                break
            if not compiled:
                reporter.message(f"training ...{_compiling(True)}")
                compiled = True
            rows = self._iterate(runs)
            share = np.mean([run.share for run in runs], axis=0)
            reporter.iteration(_together(rows), _top(runs[0].tasks.ids, share))
            minutes = (time.monotonic() - saved_time) / 60
            if minutes >= config.checkpoint_minutes or iteration + 1 == config.iterations:
                for run in runs:
                    run.save()
                saved_time = time.monotonic()
        for run in self.runs:
            run.save()
            run.interrupted = asked and (run.iteration < config.iterations or not run.evaluated)
        if any(run.interrupted for run in self.runs):
            iteration = min(run.iteration for run in self.runs)
            saved = f"saved after iteration {iteration}" if iteration else "stopped at the start"
            again = "the same command" if len(self.runs) > 1 else f"forethought train {self.runs[0].directory.path}"
            reporter.message(f"{saved}; continue with: {again}")

    def _iterate(self, runs: Sequence[_Run]) -> list[dict[str, Any]]:
        """One curriculum iteration of all runs, or of some one by one; returns their lines of metrics."""
        if len(runs) < len(self.runs):
            return [row for run in runs for row in self._advance([run], self.alone)]
        return self._advance(runs, self.learners)

    def _advance(self, runs: Sequence[_Run], learners: OneLearner | SeededLearners) -> list[dict[str, Any]]:
        started = time.perf_counter()
        goals = [run.draw() for run in runs]
        state = learners.together([run.state for run in runs])
        rollout = learners.begin([run.stream(WORLDS) for run in runs], goals, [run.eligible for run in runs])
        keys = [run.stream(UPDATES) for run in runs]
        reports: list[list[Update]] = []
        waiting = None
        for number in range(self.config.updates_per_iteration):
            folded = [jax.random.fold_in(key, number) for key in keys]
            state, rollout, update = learners.update(state, rollout, folded)
            # The device works on this update while the host waits for the one before it.
            if waiting is not None:
                reports.append(_fetch(learners, waiting))
            waiting = update
        reports.append(_fetch(learners, waiting))

        rows = []
        for place, run in enumerate(runs):
            counted = learners.learner.environment.metrics(learners.of_seed(rollout.environment, place))
            updates = [report[place] for report in reports]
            rows.append(run.conclude(learners.of_seed(state, place), updates, counted, started))
        return rows


class _Elsewhere:
    """The run directory for processes other than the first, which write nothing."""

    def __init__(self, path: Path):
        self.path = path
        self.meta: dict[str, Any] = {}

    def write_meta(self, meta: Mapping[str, Any]) -> None:
        pass

    def evaluated(self) -> set[int]:
        return set()

    def record_metrics(self, row: Mapping[str, Any]) -> None:
        pass

    def record_curriculum(self, iteration: int, columns: Any) -> None:
        pass

    def record_evaluation(self, columns: Any) -> None:
        pass

    def rewind(self, iteration: int) -> None:
        pass


def _compiling(first: bool) -> str:
    """What to say before a program runs for the first time, lest the wait looks like a fault."""
    return " (compiling first: on a CPU about 40 s for Craftax, cached for the next time)" if first else ""


def _fetch(learners: OneLearner | SeededLearners, update: Any) -> list[Update]:
    """Bring one update to the host, letting signals through while the device computes."""
    pause = 1e-4
    while not (update.done.is_ready() and update.success.is_ready()):
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return learners.reports(update)


def _calls_by_goal(updates: Sequence[Update], goals: int) -> np.ndarray:
    """How often each goal was called; zeros for a learner without calls."""
    total = np.zeros(goals, np.int64)
    for update in updates:
        total[: update.calls.shape[0]] += update.calls
    return total


def _together(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is shown of the same iteration of several runs."""
    totals = {name: sum(row[name] for row in rows) for name in ("steps", "steps_per_second")}
    means = {name: sum(row[name] for row in rows) / len(rows) for name in ("mean_success_rate", "goals_above_third")}
    return dict(rows[0]) if len(rows) == 1 else dict(rows[0]) | totals | means


def _learner_metrics(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """One iteration's counts, and its means over what each sum runs over."""
    totals = {name: float(sum(np.float64(part[name]) for part in parts)) for name in parts[0]}
    counts = {name for name, value in parts[0].items() if np.issubdtype(np.asarray(value).dtype, np.integer)}
    over = {"first_ratio_error": "updates"}
    return {
        name: total if name in counts else total / totals[over.get(name, "minibatches")]
        for name, total in totals.items()
    }


def _top(ids: tuple[str, ...], shares: np.ndarray) -> list[tuple[str, float]]:
    order = np.argsort(-shares, kind="stable")[:SHOWN_GOALS]
    return [(ids[index], float(shares[index])) for index in order]


class _Stop:
    """Whether a signal has asked the run to end."""

    asked = False


@contextmanager
def _signals(reporter: Reporter) -> Iterator[_Stop]:
    """Turn the signals that ask a process to end into a flag, as long as this lasts."""
    stop = _Stop()

    def ask(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        reporter.message(f"{signal.Signals(number).name}: saving at the end of this iteration{again}")

    previous: dict[int, Any] = {}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        try:
            previous[number] = signal.signal(number, ask)
        except ValueError:  # Only the main thread may, and a run in another one is not a process to be asked to end.
            break
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _meta(config: RunConfig, domain: "Domain", device: str, argv: Sequence[str] | None) -> dict[str, Any]:
    """The content of `meta.json` for a run that begins now."""
    own = config.tasks.own_goals
    return {
        "run_id": uuid.uuid4().hex,
        "argv": list(sys.argv if argv is None else argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": device,
        "host": platform.node(),
        "versions": {"python": platform.python_version()} | {name: installed_version(name) for name in _PACKAGES},
        "git": _git(),
        "hashes": {
            "goals": domain.tasks.digest,
            "connectivity": _graph_digest(domain.connectivity),
            "feasibility": _graph_digest(domain.feasibility),
            "embeddings": hashlib.sha256(np.ascontiguousarray(domain.goal_embeddings).tobytes()).hexdigest(),
        }
        | ({} if domain.interestingness is None else {"interestingness": _graph_digest(domain.interestingness)})
        | ({} if own is None else {"own_goals": digest(own)}),
    }


def _session(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: meta[name] for name in ("argv", "started", "device", "devices", "host", "versions", "git")}


def _check_unchanged(config: RunConfig, directory: RunDirectory, meta: Mapping[str, Any]) -> None:
    # By value: a run that began before a setting existed has its default.
    if config != load_config(directory.path / CONFIG):
        raise ValueError(f"the configuration is not the one in {directory.path}; a run goes on with its own")
    before, now = directory.meta["hashes"], meta["hashes"]
    if changed := [name for name in before if before[name] != now.get(name)]:
        raise ValueError(f"{', '.join(changed)} changed since {directory.path} began; it cannot go on")


def _git() -> dict[str, Any] | None:
    """Commit of the checkout that the package runs from; None if it runs from no checkout."""

    def ask(*command: str) -> str:
        return subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *command],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        # A package installed below somebody else's checkout is not of that checkout.
        ask("ls-files", "--error-unmatch", Path(__file__).name)
        return {
            "commit": ask("rev-parse", "HEAD"),
            "dirty": bool(ask("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _graph_digest(graph: Any) -> str | None:
    """Hash of a graph's ids and weights; None without a graph."""
    if graph is None:
        return None
    digest = hashlib.sha256("\0".join(graph.ids).encode())
    weights = graph.weights
    for array in (weights.indptr.astype(np.int64), weights.indices.astype(np.int64), weights.data):
        digest.update(np.ascontiguousarray(array).tobytes())
    if hasattr(graph, "from_scratch"):
        digest.update(np.ascontiguousarray(graph.from_scratch).tobytes())
    return digest.hexdigest()
