"""One run: its curriculum, its learner's state and its evaluator, and what they write into its directory.

An iteration starts with fresh worlds and an empty memory everywhere, and all its random numbers come from the
seed and the iteration's number. So the state between two iterations is the learner, the curriculum and two
counts; that is what a checkpoint holds, and a run that goes on from one does what it would have done.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from forethought import checkpoint, processes, provenance
from forethought.config import RunConfig
from forethought.curriculum import Curriculum, latest_per_environment
from forethought.evaluation import EvaluationResult, Evaluator
from forethought.learner import Learner, LearnerState, Update
from forethought.learner.subroutines import ELIGIBLE_RATE
from forethought.progress import Reporter
from forethought.rundir import RunDirectory
from forethought.sharding import Spread
from forethought.signals import Stop
from forethought.sinks import open_sinks

if TYPE_CHECKING:
    from forethought.domains import Domain

INITIALISATION, WORLDS, UPDATES = range(3)
"""Streams of random numbers, each folded into the seed's key; evaluation has one more of its own."""

EPISODES_PER_ENVIRONMENT = 5
"""Finished episodes that each environment contributes to an iteration's success rates (paper, A.2)."""


class Run:
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

    def open(self, path: Path, directory: RunDirectory | None, continued: Mapping[str, Any] | None) -> None:
        """Take up what lies in the directory, if the run goes on, and write there from now.

        Args:
            path: Where the run lies.
            directory: The directory there; None for processes other than the first.
            continued: The `meta` of now, if the run goes on.
        """
        self.directory = directory or _Elsewhere(path)
        if continued is not None:
            self._restore()
            meta = self.directory.meta
            started = {"iteration": self.iteration, **provenance.session(continued)}
            self.directory.write_meta(meta | {"continued": [*meta.get("continued", []), started]})
        config = self.config
        names = config.sinks if processes.is_first() else ()
        run_id = self.directory.meta.get("run_id", "")
        self._sinks = open_sinks(names, self.directory.path, config.model_dump(mode="json"), run_id)
        self._evaluated = processes.share(self.directory.evaluated())
        self._saved_at = self.iteration

    def close(self) -> None:
        """Let go of what is not the directory."""
        for sink in self._sinks:
            sink.close()

    @property
    def evaluated(self) -> bool:
        """Whether the agent has been evaluated as it is now."""
        return self.iteration in self._evaluated

    def evaluate(self, stop: Stop) -> EvaluationResult | None:
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
        self, state: LearnerState, updates: Sequence[Update], environment: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        """Take note of what has come of the iteration, and record it.

        Args:
            state: The learner after it.
            updates: Its updates, on the host.
            environment: What the environments counted.
            seconds: What it took of a device's time.

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


def eligible_goals(success_rate: np.ndarray) -> np.ndarray:
    """Which goals may be called, by their estimated success rates in training (paper, C.4)."""
    return success_rate >= ELIGIBLE_RATE


def _calls_by_goal(updates: Sequence[Update], goals: int) -> np.ndarray:
    """How often each goal was called; zeros for a learner without calls."""
    total = np.zeros(goals, np.int64)
    for update in updates:
        total[: update.calls.shape[0]] += update.calls
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
