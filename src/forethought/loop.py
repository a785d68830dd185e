"""The loop of a run: the curriculum picks goals, the learner trains on them, the curriculum hears of it.

The loop is over several runs that differ in their seed alone, of which there is one as a rule.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from forethought import processes
from forethought.evaluation import pooled
from forethought.learner import Update
from forethought.learner.seeds import OneLearner, SeededLearners
from forethought.progress import Reporter
from forethought.run import UPDATES, WORLDS, Run
from forethought.signals import Stop

SHOWN_GOALS = 3


class Loop:
    """The loop over runs that are level with each other, or over those behind until they are."""

    def __init__(self, runs: Sequence[Run], learners: OneLearner | SeededLearners, reporter: Reporter, stop: Stop):
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
            started = time.perf_counter()
            rows = self._iterate(runs)
            seconds = time.perf_counter() - started
            share = np.mean([run.share for run in runs], axis=0)
            shown = _together(rows, config.steps_per_iteration_total, seconds)
            reporter.iteration(shown, _top(runs[0].tasks.ids, share))
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

    def _iterate(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        """One curriculum iteration of all runs, or of some one by one; returns their lines of metrics."""
        if len(runs) < len(self.runs):
            return [row for run in runs for row in self._advance([run], self.alone)]
        return self._advance(runs, self.learners)

    def _advance(self, runs: Sequence[Run], learners: OneLearner | SeededLearners) -> list[dict[str, Any]]:
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

        seconds = (time.perf_counter() - started) / learners.in_turn
        rows = []
        for place, run in enumerate(runs):
            counted = learners.learner.environment.metrics(learners.of_seed(rollout.environment, place))
            updates = [report[place] for report in reports]
            rows.append(run.conclude(learners.of_seed(state, place), updates, counted, seconds))
        return rows


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


def _together(rows: Sequence[Mapping[str, Any]], steps: int, seconds: float) -> dict[str, Any]:
    """What is shown of an iteration of `steps`: one run's line of metrics, or what several did in those seconds."""
    totals = {"steps": sum(row["steps"] for row in rows)}
    totals |= {"seconds": seconds, "steps_per_second": len(rows) * steps / seconds}
    means = {name: sum(row[name] for row in rows) / len(rows) for name in ("mean_success_rate", "goals_above_third")}
    return dict(rows[0]) if len(rows) == 1 else dict(rows[0]) | totals | means


def _top(ids: tuple[str, ...], shares: np.ndarray) -> list[tuple[str, float]]:
    order = np.argsort(-shares, kind="stable")[:SHOWN_GOALS]
    return [(ids[index], float(shares[index])) for index in order]
