"""The loop of a run: the curriculum picks goals, the learner trains on them, the curriculum hears of it.

An iteration starts with fresh worlds and an empty memory everywhere, and all its random numbers come from the
seed and the iteration's number. So the state between two iterations is the learner, the curriculum and two
counts; that is what a checkpoint holds, and a run that goes on from one does what it would have done.
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
from forethought.evaluation import EvaluationResult, Evaluator
from forethought.learner import Learner
from forethought.learner.rollout import steps_on_host
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
    path = Path(run_dir)
    existing = processes.on_first(lambda: RunDirectory(path) if resume else check_new(path))
    check_sinks(config.sinks)
    used = first(select(config.device), devices)
    spread = spread_over(used)
    if not processes.is_first():
        reporter = SilentReporter()
    reporter = reporter or make_reporter()
    with jax.default_device(used[0]), ExitStack() as stack:
        from forethought.domains import choose_backend, load_domain

        config = choose_backend(config)
        domain = load_domain(config)
        meta = _meta(config, domain, describe(list(spread.devices if spread else used)), argv)
        meta |= {"backend": config.environment.backend}
        processes.on_first(lambda: None if existing is None else _check_unchanged(config, existing, meta))
        run = _Run(config, domain, reporter, spread)

        def open_directory() -> RunDirectory:
            directory = existing or RunDirectory.create(path, config.to_toml(), meta)
            stack.enter_context(directory.locked())
            return directory

        directory = processes.on_first(open_directory) or _Elsewhere(path)
        with _signals(reporter) as stop:
            try:
                return run.go(directory, stop, meta["device"], continued=meta if resume else None)
            finally:
                reporter.close()


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
    """One run's parts, and the loop over them."""

    def __init__(self, config: RunConfig, domain: "Domain", reporter: Reporter, spread: Spread | None = None):
        self.config = config
        self.tasks = domain.tasks
        self.reporter = reporter
        self.environment = make_environment(config, domain, spread)
        self.learner = make_learner(config, self.environment, domain, spread)
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

    def go(
        self, directory: "RunDirectory | _Elsewhere", stop: "_Stop", device: str, continued: Mapping[str, Any] | None
    ) -> RunResult:
        """Train to the last iteration or until `stop`."""
        config, reporter = self.config, self.reporter
        if continued is not None:
            self._restore(directory)
            meta = directory.meta
            started = {"iteration": self.iteration, **_session(continued)}
            directory.write_meta(meta | {"continued": [*meta.get("continued", []), started]})
        reporter.start(config.iterations, self.iteration, device)
        names = config.sinks if processes.is_first() else ()
        sinks = open_sinks(names, directory.path, config.model_dump(mode="json"), directory.meta.get("run_id", ""))
        evaluation = None
        evaluated = processes.share(directory.evaluated())
        saved_at, saved_time = self.iteration, time.monotonic()
        compiled = False
        try:
            while True:
                last = self.iteration == config.iterations
                due = last or self.iteration % config.evaluation.every == 0
                asked = processes.any_says(stop.asked)
                if due and self.iteration not in evaluated and not asked:
                    reporter.message(f"evaluating ...{_compiling(evaluation is None)}")
                    evaluation = self.evaluator.run(self.state, self.eligible, stop=lambda: stop.asked)
                    if evaluation is not None:
                        directory.record_evaluation(evaluation.columns(self.iteration, self.steps))
                        evaluated.add(self.iteration)
                        reporter.evaluation(self.iteration, evaluation)
                    asked = processes.any_says(stop.asked)
                if last or asked:
                    break
                if not compiled:
                    reporter.message(f"training ...{_compiling(True)}")
                    compiled = True
                row, curriculum = self._iterate()
                directory.record_metrics(row)
                directory.record_curriculum(self.iteration, curriculum)
                for sink in sinks:
                    sink.log(self.steps, {k: v for k, v in row.items() if v is not None and np.isfinite(v)})
                reporter.iteration(row, _top(self.tasks.ids, curriculum["effective_share"]))
                minutes = (time.monotonic() - saved_time) / 60
                if minutes >= config.checkpoint_minutes or self.iteration == config.iterations:
                    self._save(directory)
                    saved_at, saved_time = self.iteration, time.monotonic()
            if saved_at != self.iteration:
                self._save(directory)
        finally:
            for sink in sinks:
                sink.close()
        interrupted = asked and (self.iteration < config.iterations or self.iteration not in evaluated)
        if interrupted:
            saved = f"saved after iteration {self.iteration}" if self.iteration else "stopped at the start"
            reporter.message(f"{saved}; continue with: forethought train {directory.path}")
        return RunResult(directory.path, self.iteration, self.steps, interrupted, evaluation if last else None)

    def _iterate(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """One curriculum iteration; returns its line of metrics and its rows of the curriculum's record."""
        started = time.perf_counter()
        config, curriculum = self.config, self.curriculum
        record = self._beliefs()
        selected = curriculum.sample(config.tasks.goals_per_iteration, self.fixed)
        processes.require_same("draw of goals", selected.tolist())
        goals = np.repeat(selected, config.environment.envs_per_goal).astype(np.int32)

        fold = jax.random.fold_in
        rollout = self.learner.begin(fold(fold(self.key, WORLDS), self.iteration), goals, self.eligible)
        update_key = fold(fold(self.key, UPDATES), self.iteration)
        updates, done, success = [], [], []
        for number in range(config.updates_per_iteration):
            self.state, rollout, update = self.learner.update(self.state, rollout, fold(update_key, number))
            # The device works on this update while the host waits for the one before it.
            if updates:
                _fetch(updates[-1], done, success)
            updates.append(update)
        _fetch(updates[-1], done, success)

        _, environments = np.nonzero(ended := np.concatenate(done))
        outcomes = np.concatenate(success)[ended].astype(np.float64)
        counted, means, counts = latest_per_environment(environments, outcomes, k=EPISODES_PER_ENVIRONMENT)
        curriculum.update(goals[counted], means, counts)
        self.iteration += 1
        self.steps += config.steps_per_iteration_total

        seconds = time.perf_counter() - started
        rates = curriculum.success_rate
        environment_metrics = jax.device_get(self.environment.metrics(rollout.environment))
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
            ("learner", _learner_metrics([jax.device_get(update.metrics) for update in updates])),
            ("curriculum", curriculum.metrics()),
            ("environment", environment_metrics),
            ("host", self.learner.load()),
        ):
            row |= {f"{prefix}/{name}": float(value) for name, value in values.items()}
        size = len(self.tasks)
        record |= {
            "selections": np.bincount(selected, minlength=size),
            "episodes": np.bincount(goals[counted], counts, size).astype(np.int64),
            "successes": np.bincount(goals[counted], means * counts, size),
            "calls": _calls_by_goal(updates, size),
        }
        return row, record

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

    def _save(self, directory: "RunDirectory | _Elsewhere") -> None:
        if isinstance(directory, _Elsewhere):
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

    def _restore(self, directory: "RunDirectory | _Elsewhere") -> None:
        # All processes take the first one's word for what is in the directory.
        found = processes.on_first(lambda: self._load(directory))
        found = processes.share(found)
        if found is not None:
            self.state = self.learner.from_dict(found.arrays["learner"])
            self.curriculum.load_state_dict(found.arrays["curriculum"] | found.info["curriculum"])
            self.iteration, self.steps = found.iteration, found.info["steps"]
        directory.rewind(self.iteration)

    def _load(self, directory: "RunDirectory | _Elsewhere") -> checkpoint.Checkpoint | None:
        return checkpoint.load_latest(directory.path / "checkpoints", warn=self.reporter.message)


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


def _fetch(update: Any, done: list[np.ndarray], success: list[np.ndarray]) -> None:
    """Bring one update's outcomes to the host, letting signals through while the device computes."""
    pause = 1e-4
    while not (update.done.is_ready() and update.success.is_ready()):
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    done.append(np.asarray(update.done))
    success.append(np.asarray(update.success))


def _calls_by_goal(updates: Sequence[Any], goals: int) -> np.ndarray:
    """How often each goal was called; zeros for a learner without calls."""
    total = np.zeros(goals, np.int64)
    for update in updates:
        total[: update.calls.shape[0]] += np.asarray(update.calls)
    return total


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
    return {name: meta[name] for name in ("argv", "started", "device", "host", "versions", "git")}


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
