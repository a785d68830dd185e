"""The goals as the fast engine reads them: four small codes each; needs no JAX."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from forethought.craftax.goal_specs import GoalSpec, parse_goal
from forethought.craftax.shipped import goals


def goal_table(goal_ids: Sequence[str]) -> UInt8[np.ndarray, "goal 4"]:
    """Give one row (family, thing, amount, floor) for each goal, in the order of the ids.

    What the codes mean is said where they are judged, in `engine/src/core/goals.hpp`; the tables below repeat them.

    Raises:
        KeyError: A goal is not in the benchmark.
    """
    goals().indices(goal_ids)
    return np.array([spec_row(parse_goal(goal_id)) for goal_id in goal_ids], np.uint8).reshape(-1, 4)


def spec_row(spec: GoalSpec) -> tuple[int, int, int, int]:
    """Give the row of one specification.

    Raises:
        ValueError: The game counts no such thing.
        KeyError: Nothing in the game is called so.
    """
    family, thing, amount = _codes(spec)
    return FAMILIES.index(family), thing, amount, ANY_FLOOR if spec.floor is None else spec.floor


def has_free_form(spec: GoalSpec) -> bool:
    """Tell whether a specification outside the benchmark can be judged: other amounts, and other things to see."""
    match spec.family:
        case "have":
            return spec.thing in _RESOURCES
        case "attribute" | "reach" | "kill":
            return True
        case "see":
            return spec.floor is None and (spec.thing in _BLOCKS or spec.thing == "torch")
    return False


FAMILIES = (
    "quantity",
    "enchantment",
    "placement",
    "see_block",
    "see_item",
    "see_creature",
    "adjacent_block",
    "adjacent_item",
    "adjacent_creature",
    "damage",
    "defeat",
)
"""The tests, in the order of their codes."""

ANY_FLOOR = 255
"""The floor's code of a goal that names no floor."""

_RESOURCES = ("wood", "stone", "coal", "iron", "diamond", "sapphire", "ruby", "sapling", "torch", "arrow", "book")
_QUANTITIES = (
    *_RESOURCES,
    *("pickaxe", "sword", "bow", "chestplate", "leggings", "boots", "armour"),
    *("dexterity", "strength", "intelligence", "floor", "monsters_killed"),
)
_PIECES = ("sword", "bow", "armour")
_ELEMENTS = {"fire": 1, "ice": 2}

# The game's own numbers. A grave stands for its three kinds.
_ACHIEVEMENTS = {"table": 1, "sapling": 7, "furnace": 16}
_ITEMS = {"torch": 1, "ladder_down": 2}
_BLOCKS = {
    "water": 3,
    "stone": 4,
    "path": 7,
    "coal": 8,
    "iron": 9,
    "diamond": 10,
    "sand": 13,
    "lava": 14,
    "ripe_plant": 16,
    "wall": 17,
    "mossy_wall": 19,
    "stalagmite": 20,
    "sapphire": 21,
    "ruby": 22,
    "chest": 23,
    "fountain": 24,
    "fire_grass": 25,
    "ice_grass": 26,
    "fire_tree": 28,
    "ice_shrub": 29,
    "fire_enchantment_table": 30,
    "ice_enchantment_table": 31,
    "necromancer": 32,
    "grave": 33,
}
# A creature's code is 8 x its class + its type in the class.
_CLASSES = (
    ("cow", "bat", "snail"),
    ("zombie", "gnome_warrior", "orc_soldier", "lizard", "knight", "troll", "pigman", "frost_troll"),
    ("skeleton", "gnome_archer", "orc_mage", "kobold", "archer", "deep_thing", "fire_elemental", "ice_elemental"),
)
_CREATURES = {name: 8 * kind + type_id for kind, names in enumerate(_CLASSES) for type_id, name in enumerate(names)}
_NEARBY = {
    thing: (kind, code)
    for kind, codes in (("block", _BLOCKS), ("item", _ITEMS), ("creature", _CREATURES))
    for thing, code in codes.items()
}


def _codes(spec: GoalSpec) -> tuple[str, int, int]:
    match spec.family:
        case "have" | "obtain" | "attribute" | "reach" | "kill":
            return "quantity", _QUANTITIES.index(spec.thing), spec.amount
        case "enchant":
            element, piece = spec.thing.split("_")
            return "enchantment", _PIECES.index(piece), _ELEMENTS[element]
        case "place":
            return "placement", _ACHIEVEMENTS[spec.thing], 1
        case "see" | "adjacent":
            kind, code = _NEARBY[spec.thing]
            return f"{spec.family}_{kind}", code, 1
        case "damage" | "defeat":
            return spec.family, _CREATURES[spec.thing], 1
