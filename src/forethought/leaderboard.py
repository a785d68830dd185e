"""Results on the benchmark, one a line: `results/leaderboard.jsonl`, checked, and measured again where it says so.

A line is a JSON object:

| field | what |
|---|---|
| `name` | what was measured; no other line has it |
| `date` | when, as in 2026-11-30 |
| `policy` | where to find it: a link, a run, a name of Python; enough to measure it again |
| `training` | null for what was not trained; otherwise `method`, `learner`, `steps` (of environments) and `seed` |
| `goals` | `"all"` for the 256, or a list of their ids |
| `episodes` | episodes of each goal |
| `seed` | of the evaluation: `forethought.evaluate(..., seed=...)` |
| `episode_limit` | steps after which an episode ends |
| `successes` | successful episodes, by goal |
| `mean_success_rate` | mean over the goals of successes / episodes |
| `version` | of forethought, which measured it |
| `verified` | true only if the project has measured the policy again and found the same successes, goal by goal |
| `note` | what else there is to say |

Whoever is measured sees what `forethought.evaluate` shows: the benchmark's observation and the goal. Entries can be
compared if goals, limit and episodes are the same; those with more goals stand first, then the higher mean.
"""

import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from forethought.craftax.shipped import goals as benchmark_goals
from forethought.files import replacing

if TYPE_CHECKING:
    from forethought.evaluation import EvaluationResult

FILE = Path("results") / "leaderboard.jsonl"
"""Where the project keeps it."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Training(_Record):
    """How an agent came about."""

    method: str = Field(min_length=1)
    learner: str = Field(min_length=1)
    steps: int = Field(ge=1)
    seed: int = Field(ge=0)


class Entry(_Record):
    """One line; see the module for the fields."""

    name: str = Field(min_length=1)
    date: datetime.date
    policy: str = Field(min_length=1)
    training: Training | None
    goals: Literal["all"] | tuple[str, ...]
    episodes: int = Field(ge=1)
    seed: int = Field(ge=0)
    episode_limit: int = Field(ge=1)
    successes: dict[str, int]
    mean_success_rate: float = Field(ge=0, le=1)
    version: str = Field(min_length=1)
    verified: bool
    note: str

    @property
    def goal_ids(self) -> tuple[str, ...]:
        """The goals measured."""
        return benchmark_goals().ids if self.goals == "all" else self.goals

    @model_validator(mode="after")
    def _check_together(self) -> "Entry":
        known = benchmark_goals()
        if not self.goal_ids:
            raise ValueError("goals: none given; at least one is needed, or 'all'")
        for goal in self.goal_ids:
            if goal not in known:
                raise ValueError(f"goals: {goal!r} is not in the benchmark")
        if len(set(self.goal_ids)) < len(self.goal_ids):
            raise ValueError("goals: one is given more than once")
        if missing := [goal for goal in self.goal_ids if goal not in self.successes]:
            raise ValueError(f"successes.{missing[0]}: missing")
        for goal, count in self.successes.items():
            if goal not in self.goal_ids:
                raise ValueError(f"successes.{goal}: not one of the goals")
            if not 0 <= count <= self.episodes:
                raise ValueError(f"successes.{goal}: {count} given; allowed are 0 to {self.episodes} episodes")
        mean = sum(self.successes.values()) / (len(self.successes) * self.episodes)
        if not math.isclose(mean, self.mean_success_rate, abs_tol=5e-7):
            raise ValueError(f"mean_success_rate: {self.mean_success_rate} given, but the successes make {mean:.6f}")
        return self


def read_leaderboard(path: str | Path = FILE) -> list[Entry]:
    """Read and check a leaderboard.

    Raises:
        ValueError: One line that names the file, the line and the field at fault.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    entries: list[Entry] = []
    names: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            if number < len(lines):
                raise ValueError(f"{path}, line {number}: empty")
            continue
        try:
            entry = Entry.model_validate_json(line)
        except ValidationError as error:
            raise ValueError(f"{path}, line {number}: {_fault(error)}") from None
        if entry.name in names:
            raise ValueError(f"{path}, line {number}: name: {entry.name!r} is that of line {names[entry.name]} too")
        names[entry.name] = number
        entries.append(entry)
    return entries


def write_leaderboard(entries: Sequence[Entry], path: str | Path = FILE) -> None:
    """Write a leaderboard in its order; an old file is replaced only by a whole new one.

    Raises:
        ValueError: Two entries have one name.
    """
    names = [entry.name for entry in entries]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path}: name: {twice[0]!r} is that of two entries")
    with replacing(path) as temporary:
        lines = (json.dumps(entry.model_dump(mode="json"), ensure_ascii=False) for entry in ranked(entries))
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_entry(result: "EvaluationResult", **fields: Any) -> Entry:
    """An entry, not verified, from what `forethought.evaluate` found; `fields` are the others.

    Raises:
        ValueError: A field is missing or out of range.
    """
    from forethought import __version__

    successes = {goal: int(count) for goal, count in zip(result.goals, result.successes, strict=True)}
    episodes = int(result.episodes[0])
    whole = {
        "date": datetime.date.today(),
        "training": None,
        "goals": "all" if result.goals == benchmark_goals().ids else result.goals,
        "episodes": episodes,
        "successes": successes,
        "mean_success_rate": round(sum(successes.values()) / (len(successes) * episodes), 6),
        "version": __version__,
        "verified": False,
        "note": "",
    } | fields
    try:
        return Entry.model_validate(whole)
    except ValidationError as error:
        raise ValueError(_fault(error)) from None


def differences(entry: Entry, result: "EvaluationResult") -> list[str]:
    """How a second measurement of an entry's policy differs, a line a goal; empty if it is the same."""
    found = dict(zip(result.goals, result.successes.tolist(), strict=True))
    return [
        f"{goal}: {entry.successes[goal]} of {entry.episodes} in the leaderboard, {found[goal]} now"
        for goal in entry.goal_ids
        if goal in found and found[goal] != entry.successes[goal]
    ]


def ranked(entries: Sequence[Entry]) -> list[Entry]:
    """Entries in their order: a high mean over a few easy goals does not come before a mean over all 256."""
    return sorted(entries, key=lambda entry: (-len(entry.goal_ids), -entry.mean_success_rate))


def table(entries: Sequence[Entry]) -> str:
    """The leaderboard as text, in its order."""
    width = max((len(entry.name) for entry in entries), default=4)
    lines = [f"{'name':{width}}  {'mean':>6}  goals  limit  episodes       steps  verified"]
    for entry in ranked(entries):
        steps = f"{entry.training.steps:.2e}" if entry.training else "none"
        lines.append(
            f"{entry.name:{width}}  {entry.mean_success_rate:6.1%}  {len(entry.goal_ids):5}  {entry.episode_limit:5}  "
            f"{entry.episodes:8}  {steps:>10}  {'yes' if entry.verified else 'no'}"
        )
    return "\n".join(lines)


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"not JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message
