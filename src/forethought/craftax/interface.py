"""What both Craftax environments share: what an observation holds, and which arguments are allowed; needs no JAX."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from forethought.craftax.shipped import goals as benchmark_goals
from forethought.environment import CellTable, ObservationSpec

WINDOW = (9, 11)
"""Rows and columns of the part of the map the agent sees, centred on it."""

OBSERVATION_SPEC = ObservationSpec(
    *WINDOW,
    (CellTable("block", 37), CellTable("item", 5), CellTable("creature", 41, 5), CellTable("visible", 2)),
    51,
)
"""Channels of a cell: block, item, one creature id per class (melee, passive, ranged, creatures' projectiles,
player's projectiles; 0 is none, else 1 + 8 x class + type), and whether the cell is visible."""

NUM_ACTIONS = 43


def chosen_goals(goal_ids: Sequence[str]) -> tuple[str, ...]:
    """The goals that goal numbers refer to: those named, or all of the benchmark in order.

    Raises:
        KeyError: A goal is not in the benchmark.
    """
    benchmark_goals().indices(goal_ids)
    return tuple(goal_ids) or benchmark_goals().ids


def goal_numbers(goals: Any, count: int, num_goals: int) -> Int[np.ndarray, " episode"]:
    """The goals of `count` episodes as int32.

    Raises:
        ValueError: They are not `count` integers, or out of range.
    """
    numbers = np.asarray(goals)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"goals are {numbers.dtype} of shape {numbers.shape}, but must be {count} integers, one per episode"
        )
    wrong = numbers[(numbers < 0) | (numbers >= num_goals)]
    if wrong.size:
        raise ValueError(f"goals contain {wrong[0]}, but must be from 0 to {num_goals - 1}")
    return numbers.astype(np.int32)


def check_at_least(name: str, value: int, least: int, reason: str = "") -> None:
    """Raise a ValueError that names what is too small."""
    if value < least:
        raise ValueError(f"{name} is {value}, but must be at least {least}{reason}")


def check_room(count: int, waiting: int, capacity: int) -> None:
    """Raise a ValueError if the queue has no room for `count` more episodes."""
    if count > capacity - waiting:
        raise ValueError(f"{count} episodes to queue, but there is room for {capacity - waiting} of {capacity}")


def check_evaluating(training: bool) -> None:
    """Raise a ValueError if episodes are to be queued in a state of training."""
    if training:
        raise ValueError("episodes are queued after begin(), but this state comes from reset()")
