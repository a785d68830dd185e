"""How far a suite is, read from its folder alone: nothing is asked, and nothing is changed."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forethought.experiments.claim import Claim, claim_on
from forethought.experiments.runs import log_path, plan_path
from forethought.experiments.sweep import Planned
from forethought.rundir import METRICS

Condition = Literal["done", "at work", "stopped", "waiting", "new"]

_TAIL = 65536
"""Bytes at the end of a file that hold its last lines."""


@dataclass(frozen=True)
class RunStatus:
    """How far a run is, and who is at work on it."""

    planned: Planned
    condition: Condition
    """`stopped`: begun, and nobody is at work on it; `waiting`: planned by a scheduler, and not begun."""
    iteration: int
    """Iterations done, saved or not."""
    steps_per_second: float | None
    """Environment steps a second of training, in the last iteration."""
    claim: Claim | None
    """Who is at work on it; or void: who was, and did not end by itself."""
    last_words: str
    """The last line of its log."""


def status(planned: Sequence[Planned]) -> tuple[RunStatus, ...]:
    """How far runs are."""
    return tuple(map(_status, planned))


def counts(statuses: Sequence[RunStatus]) -> dict[Condition, int]:
    """How many runs are in which condition; those that none is in are left out."""
    found = Counter(run.condition for run in statuses)
    order: tuple[Condition, ...] = ("done", "at work", "stopped", "waiting", "new")
    return {condition: found[condition] for condition in order if found[condition]}


def _status(run: Planned) -> RunStatus:
    claim = claim_on(run.path)
    row = last_row(run.path / METRICS)
    if run.state.done:
        condition = "done"
    elif claim is not None and not claim.void:
        condition = "at work"
    elif run.state.begun:
        condition = "stopped"
    else:
        condition = "waiting" if plan_path(run.path).exists() else "new"
    iteration = max(run.state.iteration, row.get("iteration", 0) if condition == "at work" else 0)
    words = _lines(log_path(run.path))[-1:] if condition in ("stopped", "waiting") else []
    return RunStatus(run, condition, iteration, row.get("steps_per_second"), claim, " ".join(words))


def last_row(path: Path) -> dict:
    """The last whole line of a `metrics.jsonl`; empty if there is none."""
    for line in reversed(_lines(path)):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return row
    return {}


def _lines(path: Path) -> list[str]:
    """The lines at the end of a file that are not empty; none if there is no file."""
    try:
        with open(path, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
