"""What each of the 256 Craftax goals asks for, read from its id; needs no JAX."""

import re
from dataclasses import dataclass
from typing import Literal

from forethought.craftax.shipped import goals

Family = Literal[
    "have", "obtain", "enchant", "attribute", "reach", "place", "see", "adjacent", "damage", "defeat", "kill"
]


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """One goal as a family and its parameters.

    Attributes:
        family: which kind of test decides the goal.
        thing: the resource, block, item, creature or counter the test looks at. Singular, as in "sapling";
            "ladder_down" with `floor` set for ladders.
        amount: the threshold of the families `have`, `obtain`, `attribute`, `reach` and `kill`; otherwise 1.
        floor: the floor (0 to 8) that the families `kill` and the ladders name; otherwise None.
    """

    family: Family
    thing: str
    amount: int = 1
    floor: int | None = None


def goal_specs() -> tuple[GoalSpec, ...]:
    """Give the specification of every benchmark goal, in benchmark order."""
    return tuple(parse_goal(goal_id) for goal_id in goal_ids())


def goal_ids() -> tuple[str, ...]:
    """Give the ids of the benchmark goals in order."""
    return goals().ids


def parse_goal(goal_id: str) -> GoalSpec:
    """Read a goal id such as `have_4_saplings` or `kill_2_on_floor_3`.

    Raises:
        ValueError: if the id follows none of the benchmark's forms.
    """
    if goal_id in _OBTAIN:
        thing, amount = _OBTAIN[goal_id]
        return GoalSpec("obtain", thing, amount)
    if goal_id in _PLACE:
        return GoalSpec("place", _PLACE[goal_id])
    for pattern, build in _FORMS:
        if match := re.fullmatch(pattern, goal_id):
            return build(*match.groups())
    raise ValueError(f"goal id {goal_id!r} has none of the forms of the Craftax benchmark (see goals.json)")


_SINGULAR = {
    "diamonds": "diamond",
    "sapphires": "sapphire",
    "rubies": "ruby",
    "saplings": "sapling",
    "torches": "torch",
    "arrows": "arrow",
    "books": "book",
}


def _singular(thing: str) -> str:
    return _SINGULAR.get(thing, thing)


_TIERS = ("wood", "stone", "iron", "diamond")
_OBTAIN = {
    **{f"obtain_{tier}_{tool}": (tool, n + 1) for tool in ("pickaxe", "sword") for n, tier in enumerate(_TIERS)},
    "obtain_bow": ("bow", 1),
    **{
        f"obtain_{tier}_{piece}": (piece, amount)
        for tier, amount in (("iron", 1), ("diamond", 2))
        for piece in ("armour", "chestplate", "leggings", "boots")
    },
}
_PLACE = {"place_crafting_table": "table", "place_furnace": "furnace", "plant_sapling": "sapling"}

_FORMS = (
    (r"have_(\d+)_(\w+)", lambda n, thing: GoalSpec("have", _singular(thing), int(n))),
    (
        r"enchant_(fire|ice)_(sword|bow|armour)",
        lambda element, piece: GoalSpec("enchant", f"{element}_{piece}"),
    ),
    (
        r"reach_(dexterity|strength|intelligence)_(\d)",
        lambda attribute, n: GoalSpec("attribute", attribute, int(n)),
    ),
    (r"reach_floor_(\d)", lambda floor: GoalSpec("reach", "floor", int(floor))),
    (
        r"kill_(\d+)_on_floor_(\d)",
        lambda n, floor: GoalSpec("kill", "monsters_killed", int(n), int(floor)),
    ),
    (r"see_ladder_down_floor_(\d)", lambda floor: GoalSpec("see", "ladder_down", floor=int(floor))),
    (
        r"adjacent_to_ladder_down_floor_(\d)",
        lambda floor: GoalSpec("adjacent", "ladder_down", floor=int(floor)),
    ),
    (r"see_(\w+)", lambda thing: GoalSpec("see", thing)),
    (r"adjacent_to_(\w+)", lambda thing: GoalSpec("adjacent", thing)),
    (r"damage_(\w+)", lambda creature: GoalSpec("damage", creature)),
    (r"defeat_(\w+)", lambda creature: GoalSpec("defeat", creature)),
)
