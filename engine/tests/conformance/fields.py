"""States as plain dictionaries of arrays, the common language of the reference and the engine.

The keys are Craftax's own names of the leaves of `EnvState`, nested ones with a dot ("inventory.wood"). Arrays may
carry a leading axis of environments. Nothing here needs JAX.
"""

from typing import NamedTuple

import numpy as np

Fields = dict[str, np.ndarray]

FLOORS = 9
SIZE = 48
PLANTS = 10
SLOTS = {"melee_mobs": 3, "passive_mobs": 3, "ranged_mobs": 2, "mob_projectiles": 3, "player_projectiles": 3}
CREATURES = ("melee_mobs", "passive_mobs", "ranged_mobs")
PROJECTILES = ("mob_projectiles", "player_projectiles")
MAPS = ("map", "item_map", "mob_map", "light_map")
COUNTERS = (
    *("wood", "stone", "coal", "iron", "diamond", "sapling", "pickaxe", "sword", "bow", "arrows"),
    *("torches", "ruby", "sapphire", "books"),
)


class Kind(NamedTuple):
    """What an array of one environment must be."""

    shape: tuple[int, ...]
    dtype: type


def _kinds() -> dict[str, Kind]:
    whole, real, flag = np.int32, np.float32, np.bool_
    kinds = {
        "map": Kind((FLOORS, SIZE, SIZE), whole),
        "item_map": Kind((FLOORS, SIZE, SIZE), whole),
        "mob_map": Kind((FLOORS, SIZE, SIZE), flag),
        "light_map": Kind((FLOORS, SIZE, SIZE), real),
        "down_ladders": Kind((FLOORS, 2), whole),
        "up_ladders": Kind((FLOORS, 2), whole),
        "chests_opened": Kind((FLOORS,), flag),
        "monsters_killed": Kind((FLOORS,), whole),
        "player_position": Kind((2,), whole),
    }
    kinds |= {f"player_{name}": Kind((), whole) for name in ("level", "direction", "food", "drink", "energy", "mana")}
    kinds |= {f"player_{name}": Kind((), whole) for name in ("xp", "dexterity", "strength", "intelligence")}
    kinds |= {f"player_{name}": Kind((), real) for name in ("health", "recover", "hunger", "thirst", "fatigue")}
    kinds |= {
        "player_recover_mana": Kind((), real),
        "is_sleeping": Kind((), flag),
        "is_resting": Kind((), flag),
    }
    kinds |= {f"inventory.{name}": Kind((), whole) for name in COUNTERS}
    kinds |= {"inventory.armour": Kind((4,), whole), "inventory.potions": Kind((6,), whole)}
    for mobs, slots in SLOTS.items():
        kinds[f"{mobs}.position"] = Kind((FLOORS, slots, 2), whole)
        kinds[f"{mobs}.health"] = Kind((FLOORS, slots), real)
        kinds[f"{mobs}.mask"] = Kind((FLOORS, slots), flag)
        kinds[f"{mobs}.attack_cooldown"] = Kind((FLOORS, slots), whole)
        kinds[f"{mobs}.type_id"] = Kind((FLOORS, slots), whole)
        if mobs in PROJECTILES:
            kinds[f"{mobs[:-1]}_directions"] = Kind((FLOORS, slots, 2), whole)
    kinds |= {
        "growing_plants_positions": Kind((PLANTS, 2), whole),
        "growing_plants_age": Kind((PLANTS,), whole),
        "growing_plants_mask": Kind((PLANTS,), flag),
        "potion_mapping": Kind((6,), whole),
        "learned_spells": Kind((2,), flag),
        "sword_enchantment": Kind((), whole),
        "bow_enchantment": Kind((), whole),
        "armour_enchantments": Kind((4,), whole),
        "boss_progress": Kind((), whole),
        "boss_timesteps_to_spawn_this_round": Kind((), whole),
        "light_level": Kind((), real),
        "achievements": Kind((67,), flag),
        "state_rng": Kind((2,), np.uint32),
        "timestep": Kind((), whole),
    }
    return kinds


KINDS = _kinds()
"""Every field of a state that changes during a game, with the shape and type it has for one environment."""


def one(fields: Fields, index: int) -> Fields:
    """The state of one environment; its arrays are views."""
    return {name: value[index, ...] for name, value in fields.items()}


def stack(states: list[Fields]) -> Fields:
    """Several environments from one each."""
    return {name: np.stack([state[name] for state in states]) for name in states[0]}


def copy(fields: Fields) -> Fields:
    """A state whose arrays may be written to."""
    return {name: np.array(value) for name, value in fields.items()}
