"""Hand-made states, far more various than play reaches, and the way to hand them to the engine."""

import numpy as np
from conformance.fields import CREATURES, FLOORS, KINDS, PROJECTILES, SIZE, SLOTS, Fields, one

from craftax_native import _core

BRIGHTNESS = np.float32([0, 0.049, 0.05, np.nextafter(np.float32(0.05), np.float32(1)), 0.0501, 0.3, 1])
"""Cells are visible above 0.05."""

RIM = (0, 1, 2, 3, 4, 5, 6, 41, 42, 43, 44, 45, 46, 47)
COUNTS = ("wood", "stone", "coal", "iron", "diamond", "sapphire", "ruby", "sapling", "torches", "arrows", "books")
POINTS = ("food", "drink", "energy", "mana", "xp", "dexterity", "strength", "intelligence")


def random_states(rng: np.random.Generator, count: int) -> Fields:
    """States with any blocks, items, light, creatures and belongings; half the players stand near the map's rim.

    Creatures of all kinds crowd around the player, sometimes several in a cell, and some lie beyond the map.
    """
    fields = {name: np.zeros((count, *kind.shape), kind.dtype) for name, kind in KINDS.items()}

    def whole(name: str, low: int, high: int) -> None:
        fields[name] = rng.integers(low, high + 1, fields[name].shape, dtype=np.int32)

    def flags(name: str, chance: float) -> None:
        fields[name] = rng.random(fields[name].shape) < chance

    whole("map", 0, 36)
    fields["item_map"] = rng.choice(np.int32([0, 0, 0, 1, 2, 3, 4]), fields["item_map"].shape)
    # A third of the states bright all over, a third half dark, a third dark but for a few cells.
    bright, dim = rng.random((2, count, 1, 1, 1))
    light = rng.choice(BRIGHTNESS, fields["light_map"].shape)
    light = np.where(rng.random(light.shape) < np.floor(3 * dim) / 3, np.float32(0), light)
    fields["light_map"] = np.where(bright < 1 / 3, np.float32(1), light)

    anywhere, rim = rng.integers(SIZE, size=(count, 2)), rng.choice(RIM, (count, 2))
    fields["player_position"] = np.where(rng.random((count, 1)) < 0.5, anywhere, rim).astype(np.int32)
    whole("player_level", 0, FLOORS - 1)
    whole("player_direction", 0, 4)
    for name in POINTS:
        whole(f"player_{name}", 0, 20)
    fields["player_health"] = rng.normal(5, 5, count).astype(np.float32)
    fields["light_level"] = rng.random(count, dtype=np.float32)
    flags("is_sleeping", 0.5)
    flags("is_resting", 0.5)
    flags("learned_spells", 0.5)
    flags("achievements", 0.3)
    whole("monsters_killed", 0, 12)
    whole("boss_timesteps_to_spawn_this_round", -2, 2)
    whole("timestep", 0, 5000)

    for name in COUNTS:
        whole(f"inventory.{name}", 0, 99)
    whole("inventory.potions", 0, 99)
    whole("inventory.pickaxe", 0, 4)
    whole("inventory.sword", 0, 4)
    whole("inventory.bow", 0, 1)
    whole("inventory.armour", 0, 2)
    for name in ("sword_enchantment", "bow_enchantment", "armour_enchantments"):
        whole(name, 0, 2)

    crowd = rng.choice([0.0, 0.2, 0.7, 1.0], (count, 1, 1))
    for name in (*CREATURES, *PROJECTILES):
        slots = SLOTS[name]
        reach = rng.choice([1, 2, 7], (count, 1, 1, 1))
        offset = np.rint(rng.uniform(-1, 1, (count, FLOORS, slots, 2)) * reach)
        fields[f"{name}.position"] = (fields["player_position"][:, None, None] + offset).astype(np.int32)
        fields[f"{name}.mask"] = rng.random((count, FLOORS, slots)) < crowd
        whole(f"{name}.type_id", 0, 2 if name == "passive_mobs" else 7)
        fields[f"{name}.health"] = rng.integers(-2, 9, (count, FLOORS, slots)).astype(np.float32) / 2
    return fields


def into_engine(fields: Fields, goals: np.ndarray | None = None) -> np.ndarray:
    """The engine's array of states that holds these."""
    count = len(fields["timestep"])
    state = _core.new_state(count, goals)
    for env in range(count):
        _core.import_env(state, env, one(fields, env))
    return state
