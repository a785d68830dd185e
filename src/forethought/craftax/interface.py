"""What both Craftax environments share: what an observation holds, and which arguments are allowed; needs no JAX."""

from typing import Any

import numpy as np
from jaxtyping import Int

from forethought.spec import CellTable, ObservationSpec

WINDOW = (9, 11)
"""Rows and columns of the part of the map the agent sees, centred on it."""

OBSERVATION_SPEC = ObservationSpec(
    *WINDOW,
    (CellTable("block", 37), CellTable("item", 5), CellTable("creature", 41, 5), CellTable("visible", 2)),
    51,
)
"""Channels of a cell: block, item, one creature id per class (melee, passive, ranged, creatures' projectiles,
player's projectiles; 0 is none, else 1 + 8 x class + type), and whether the cell is visible."""

ACTIONS = (
    *("noop", "left", "right", "up", "down", "do", "sleep", "place_stone", "place_table", "place_furnace"),
    *("place_plant", "make_wood_pickaxe", "make_stone_pickaxe", "make_iron_pickaxe", "make_wood_sword"),
    *("make_stone_sword", "make_iron_sword", "rest", "descend", "ascend", "make_diamond_pickaxe"),
    *("make_diamond_sword", "make_iron_armour", "make_diamond_armour", "shoot_arrow", "make_arrow", "cast_fireball"),
    *("cast_iceball", "place_torch", "drink_potion_red", "drink_potion_green", "drink_potion_blue"),
    *("drink_potion_pink", "drink_potion_cyan", "drink_potion_yellow", "read_book", "enchant_sword"),
    *("enchant_armour", "make_torch", "level_up_dexterity", "level_up_strength", "level_up_intelligence"),
    "enchant_bow",
)
"""The game's actions, by number."""

NUM_ACTIONS = len(ACTIONS)


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


def check_sizes(num_envs: int, episode_limit: int, queue_capacity: int | None) -> int:
    """The capacity of the queue: the one given, or four times the number of environments.

    Raises:
        ValueError: One of the three is below 1.
    """
    capacity = 4 * num_envs if queue_capacity is None else queue_capacity
    check_at_least("num_envs", num_envs, 1)
    check_at_least("episode_limit", episode_limit, 1)
    check_at_least("queue_capacity", capacity, 1)
    return capacity


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
