"""What a report says about each run: how far it is, where it ran, how long it took."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forethought.experiments.results import begun
from forethought.experiments.suites import RunSpec, Suite
from forethought.rundir import RunDirectory


@dataclass(frozen=True)
class RunInfo:
    """One run of a suite, begun or not."""

    spec: RunSpec
    iterations: int = 0
    """Curriculum decisions recorded."""
    done: bool = False
    """Whether its last evaluation is recorded."""
    seconds: float = 0.0
    """Wall time of its training, evaluations left out."""
    steps_per_second: float | None = None
    """Median over its iterations."""
    meta: Mapping[str, Any] | None = None
    """What it recorded of where it ran."""

    def row(self) -> dict[str, Any]:
        """The run's row in the table of runs."""
        meta, spec = self.meta or {}, self.spec
        git = meta.get("git") or {}
        return {
            "group": spec.group,
            "learner": spec.learner,
            "method": spec.method,
            "variant": spec.variant,
            "seed": spec.seed,
            "state": "done" if self.done else "not begun" if self.meta is None else "begun",
            "iterations": self.iterations,
            "of": spec.config.iterations,
            "steps": self.iterations * spec.config.steps_per_iteration_total,
            "hours": round(self.seconds / 3600, 3),
            "steps_per_second": self.steps_per_second and round(self.steps_per_second),
            "played_by": meta.get("backend", ""),
            "device": meta.get("device", ""),
            "started": meta.get("started", ""),
            "commit": git.get("commit", "")[:10] + ("+" if git.get("dirty") else ""),
            "directory": spec.directory,
        }


def run_infos(suite: Suite, out: str | Path) -> list[RunInfo]:
    """What is known of every run of a suite, in its order.

    Raises:
        ConfigError: If a directory holds a run with another configuration.
    """
    there = {spec.directory: run for spec, run in begun(suite, out)}
    return [_info(spec, there[spec.directory]) if spec.directory in there else RunInfo(spec) for spec in suite.runs]


def _info(spec: RunSpec, run: RunDirectory) -> RunInfo:
    metrics = run.metrics()
    done = spec.config.iterations in run.evaluated()
    if not metrics.height:
        return RunInfo(spec, done=done, meta=run.meta)
    return RunInfo(
        spec,
        iterations=metrics["iteration"].max() or 0,  # pyright: ignore[reportArgumentType]
        done=done,
        seconds=float(metrics["seconds"].sum()),
        steps_per_second=float(np.median(metrics["steps_per_second"].to_numpy())),
        meta=run.meta,
    )
