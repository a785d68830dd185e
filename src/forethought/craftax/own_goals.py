"""Goals of one's own beside the 256 of the benchmark: a text, and a test of one step of the game.

    from forethought.craftax import Goal

    def stocked_up(before, after):
        return (after.inventory.wood >= 3) & (after.inventory.stone >= 3)

    GOALS = [
        Goal("have_3_wood", "Have at least 3 wood at once"),
        Goal("stocked_up", "Have at least 3 wood and 3 stone at once", stocked_up),
    ]

A goal without a predicate is read from its id, which follows one of the benchmark's forms (`have_3_wood`,
`kill_5_on_floor_2`, `see_water`); both environments play it. A predicate gets Craftax's `EnvState` before and after
a step, the latter taken before any reset, and says whether the step reaches the goal; the JAX environment plays it.
It becomes part of a compiled program: `&`, `|`, `~` and `jax.numpy` in place of `and`, `or`, `not` and `if`.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import UInt8

from forethought.craftax.goal_specs import GoalSpec, parse_goal
from forethought.craftax.goal_table import goal_table, has_free_form, spec_row
from forethought.craftax.shipped import goals as benchmark_goals
from forethought.tasks import Task, TaskSet

MOST, MOST_SKILL, LAST_FLOOR = 99, 5, 8
"""The largest amount of anything, level of a skill, and floor in the game."""


@dataclass(frozen=True)
class Goal:
    """One goal of one's own.

    Attributes:
        id: A name, which no goal of the benchmark has.
        text: What the agent is told, by its vector, and a language model that judges it.
        reached: `reached(before, after)` says whether a step between two states (`EnvState` of Craftax, of one game)
            reaches the goal; None if the id says it.

    Raises:
        ValueError: the id or the text is empty or taken, or the id says nothing and there is no predicate.
    """

    id: str
    text: str
    reached: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        for name in ("id", "text"):
            if not isinstance(value := getattr(self, name), str) or not value.strip():
                raise ValueError(f"a goal's {name} is {value!r}; it must be a text that is not empty")
        if self.id in benchmark_goals():
            raise ValueError(f"goal {self.id!r} is one of the benchmark's; give yours another id")
        if self.reached is None:
            self.spec  # noqa: B018 - checks it
        elif not callable(self.reached):
            raise ValueError(f"goal {self.id!r}: reached is {self.reached!r}; it must be a function of two states")

    @property
    def spec(self) -> GoalSpec | None:
        """What the id asks for, if there is no predicate."""
        return None if self.reached is not None else _spec(self.id)


def load_goals(path: str | Path) -> tuple[Goal, ...]:
    """Run a Python file and give its `GOALS`.

    Raises:
        ValueError: there is no such file, it fails, or `GOALS` is no list of `Goal`s with ids of their own.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file of goals")
    try:
        found = _run(path).GOALS
    except AttributeError as error:
        if error.name != "GOALS":
            raise ValueError(f"{path}: it fails: {error}") from error
        raise ValueError(f"{path}: it defines no GOALS, the list of its goals") from None
    except Exception as error:
        raise ValueError(f"{path}: it fails: {type(error).__name__}: {error}") from error
    try:
        return checked(found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def checked(own: Any) -> tuple[Goal, ...]:
    """Goals as a tuple.

    Raises:
        ValueError: it is no list of `Goal`s, or two have one id.
    """
    if isinstance(own, str | Goal) or not isinstance(own, Iterable):
        raise ValueError(f"goals of one's own are {own!r}; they must be a list of Goal")
    own = tuple(own)
    for position, goal in enumerate(own):
        if not isinstance(goal, Goal):
            raise ValueError(f"goal number {position} of one's own is {goal!r}; it must be a Goal")
    ids = [goal.id for goal in own]
    if repeated := sorted({id for id in ids if ids.count(id) > 1}):
        raise ValueError(f"goal {repeated[0]!r} occurs more than once; ids must be unique")
    return own


def with_own(own: Sequence[Goal]) -> TaskSet:
    """The benchmark's goals, and one's own after them."""
    benchmark = benchmark_goals()
    return TaskSet([*benchmark, *(Task(goal.id, goal.text) for goal in own)]) if own else benchmark


def chosen_goals(goal_ids: Sequence[str], own: Sequence[Goal] = ()) -> tuple[str, ...]:
    """The goals that goal numbers refer to: those named, or all in order.

    Raises:
        KeyError: A goal is neither in the benchmark nor one's own.
        ValueError: The ids are one text.
    """
    if isinstance(goal_ids, str):
        raise ValueError(f"goals is {goal_ids!r}; it must be a list of ids, if only of one")
    known = with_own(own)
    known.indices(goal_ids)
    return tuple(goal_ids) or known.ids


def engine_rows(goal_ids: Sequence[str], own: Sequence[Goal] = ()) -> UInt8[np.ndarray, "goal 4"]:
    """The goals as the fast engine reads them, in the order of the ids.

    Raises:
        KeyError: A goal is neither in the benchmark nor one's own.
        ValueError: A goal has a predicate, which the engine cannot judge.
    """
    if fault := engine_cannot_judge(goal_ids, own):
        raise ValueError(f"{fault}; play with JAX (backend jax, CraftaxEnvironment) instead")
    specs = {goal.id: goal.spec for goal in own}
    rows = [spec_row(spec) if (spec := specs.get(id)) else goal_table([id])[0] for id in goal_ids]
    return np.array(rows, np.uint8).reshape(-1, 4)


def engine_cannot_judge(goal_ids: Sequence[str], own: Sequence[Goal]) -> str | None:
    """Why the fast engine cannot play these goals (none named: all); None if it can."""
    for goal in own:
        if goal.reached is not None and (not goal_ids or goal.id in goal_ids):
            return f"goal {goal.id!r} has a predicate, which the fast engine cannot judge"
    return None


def digest(path: str | Path) -> str:
    """SHA-256 of a file of goals."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"forethought_own_goals_{digest(path)[:16]}", path)
    if spec is None or spec.loader is None:
        raise ValueError("it is no Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _spec(id: str) -> GoalSpec:
    try:
        spec = parse_goal(id)
    except ValueError:
        spec = None
    if spec is None or not has_free_form(spec):
        raise ValueError(
            f"goal {id!r} has no predicate, and its id says nothing by itself, as have_3_wood, kill_5_on_floor_2 and "
            "see_water do; give it `reached`, a function of the states before and after a step"
        )
    most = {"reach": LAST_FLOOR, "attribute": MOST_SKILL}.get(spec.family, MOST)
    if not 0 < spec.amount <= most or (spec.floor or 0) > LAST_FLOOR:
        raise ValueError(f"goal {id!r} asks for what the game does not have; its number must be from 1 to {most}")
    return spec
