"""Ways to choose actions: by chance, by a script, or towards whatever is of interest nearby."""

from collections.abc import Iterator, Mapping

import numpy as np

from .fields import CREATURES, SIZE, Fields
from .names import ACTIONS, OFFSETS, SOLID, Action, Block, Item

MOVES = (Action.left, Action.right, Action.up, Action.down)


def _chances(weights: Mapping[str, float]) -> np.ndarray:
    """Probabilities of all actions; names that begin alike share a weight each ("make" is every recipe)."""
    chances = np.zeros(len(ACTIONS))
    for start, weight in weights.items():
        chances[[i for i, name in enumerate(ACTIONS) if name == start or name.startswith(start + "_")]] += weight
    return chances / chances.sum()


_MOVE = {"left": 1.0, "right": 1.0, "up": 1.0, "down": 1.0}
_CHANCE = {
    "random": np.full(len(ACTIONS), 1 / len(ACTIONS)),
    "weighted": _chances({name: 1.0 for name in ACTIONS} | {"do": 25.0} | dict.fromkeys(_MOVE, 8.0)),
    "placer": _chances(_MOVE | {"place": 1.0, "do": 4.0, "make_torch": 0.5}),
    "builder": _chances(_MOVE | {"place": 2.0, "noop": 0.5}),
    "archer": _chances(_MOVE | {"shoot": 2.0, "cast": 2.0, "do": 2.0, "make_arrow": 0.5}),
    "idler": _chances({"noop": 20.0, "left": 0.5, "up": 0.5, "rest": 0.5, "drink": 0.2}),
    "crafter": _chances({"make": 2.0, "left": 1.0, "right": 1.0, "do": 1.0, "place": 0.5}),
    "reader": _chances({"read": 4.0, "drink": 2.0, "cast": 2.0, "noop": 10.0, "level_up": 1.0, "left": 1.0}),
    "enchanter": _chances(_MOVE | {"enchant": 4.0, "do": 1.0}),
    "gardener": _chances(_MOVE | {"place_plant": 4.0, "do": 8.0, "noop": 4.0}),
    "pusher": _chances(
        {name: 2.0 for name in _MOVE} | {"do": 4.0, "place": 1.0, "shoot": 2.0, "cast": 1.0, "noop": 2.0}
    ),
    "sleeper": _chances({"sleep": 5.0, "rest": 4.0, "noop": 2.0, "do": 0.5} | dict.fromkeys(_MOVE, 0.3)),
    "looter": _chances(_MOVE | {"do": 5.0}),
    "digger": _chances(_MOVE | {"do": 6.0, "place_stone": 0.5}),
    "stairs": _chances({"descend": 4.0, "ascend": 3.0, "do": 2.0, "noop": 1.0} | dict.fromkeys(_MOVE, 0.5)),
}

_SCRIPTS = {
    "craft everything": (
        *("make_wood_pickaxe", "make_wood_sword", "make_stone_pickaxe", "make_stone_sword", "make_iron_pickaxe"),
        *("make_iron_sword", "make_diamond_pickaxe", "make_diamond_sword", "make_iron_armour", "make_iron_armour"),
        *("make_diamond_armour", "make_iron_armour", "make_iron_armour", "make_iron_armour", "make_diamond_armour"),
        *("make_diamond_armour", "make_diamond_armour", "make_diamond_armour", "make_arrow", "make_torch"),
        *("down", "place_torch", "shoot_arrow", "do", "place_stone", "do", "place_furnace", "do", "place_table", "do"),
    ),
    "down": (*("descend",) * 12, *("noop",) * 5, "left", "do", "right", *("descend",) * 3),
    "up": (*("ascend",) * 12, *("noop",) * 5, "up", "do", "down", *("ascend",) * 3),
}

_SOUGHT = (
    (Block.tree, Block.fire_tree, Block.ice_shrub),
    (Block.stone, Block.stalagmite),
    (Block.chest, Block.fountain),
    (Block.coal, Block.iron),
    (Block.water,),
    (Block.diamond, Block.sapphire, Block.ruby),
    (Block.grass,),
    (Block.plant, Block.ripe_plant),
    (Block.enchantment_table_fire, Block.enchantment_table_ice),
    (Block.crafting_table, Block.furnace),
)
_AT_LADDERS, _AFTER_CREATURES = len(_SOUGHT), len(_SOUGHT) + 1
_PATIENCE = 60  # steps after which a seeker takes to something else

_IS_SOUGHT = np.zeros((len(_SOUGHT), 37), bool)
for _row, _blocks in enumerate(_SOUGHT):
    _IS_SOUGHT[_row, list(_blocks)] = True
_IS_SOLID = np.isin(np.arange(37), SOLID)


class Players:
    """Chooses the actions of all environments, one policy each, reproducibly.

    Args:
        policies: The name of each environment's policy.
        seed: Of all chance that policies need.
    """

    def __init__(self, policies: list[str], seed: int) -> None:
        unknown = sorted(set(policies) - set(names()))
        if unknown:
            raise KeyError(f"unknown policy {unknown[0]!r}; there are {', '.join(names())}")
        self._rng = np.random.default_rng(seed)
        self._members = {
            name: np.flatnonzero([policy == name for policy in policies]) for name in sorted(set(policies))
        }

    def actions(self, states: Fields, step: int) -> np.ndarray:
        """The next action of every environment, int32[n], from the states before it."""
        actions = np.zeros(len(states["timestep"]), np.int32)
        for name, members in self._members.items():
            if name in _CHANCE:
                actions[members] = self._rng.choice(len(ACTIONS), len(members), p=_CHANCE[name])
            elif name in _SCRIPTS:
                script = _SCRIPTS[name]
                actions[members] = Action[script[step % len(script)]]
            else:
                actions[members] = list(self._walk(name, members, states, step))
        return actions

    def _walk(self, name: str, members: np.ndarray, states: Fields, step: int) -> Iterator[int]:
        for index in members:
            if self._rng.random() < 0.12:
                yield int(self._rng.choice(len(ACTIONS), p=_CHANCE["weighted"]))
                continue
            interest = _AFTER_CREATURES
            if name == "seeker":
                interest = (step // _PATIENCE + int(index)) % (_AFTER_CREATURES + 1)
            floor, here = int(states["player_level"][index]), states["player_position"][index]
            blocks = states["map"][index, floor]
            if name == "boss":
                targets = np.argwhere(blocks == Block.necromancer)
            elif interest == _AFTER_CREATURES:
                targets = _creatures(states, index, floor)
            elif interest == _AT_LADDERS:
                items = states["item_map"][index, floor]
                targets = np.argwhere((items == Item.ladder_down) | (items == Item.ladder_up))
            else:
                targets = np.argwhere(_IS_SOUGHT[interest][blocks])
            yield self._approach(targets, here, blocks, int(states["player_direction"][index]))

    def _approach(self, targets: np.ndarray, here: np.ndarray, blocks: np.ndarray, direction: int) -> int:
        if not len(targets):
            return int(self._rng.choice(MOVES))
        distance = abs(targets - here).sum(axis=1)
        down, right = targets[distance.argmin()] - here
        if (down, right) == (0, 0):
            return int(self._rng.choice([Action.descend, Action.ascend]))
        vertical = abs(down) > abs(right) or (abs(down) == abs(right) and self._rng.random() < 0.5)
        toward = (Action.down if down > 0 else Action.up) if vertical else (Action.right if right > 0 else Action.left)
        if toward != direction:
            return int(toward)
        if abs(down) + abs(right) == 1:
            return int(self._rng.choice([Action.do, Action.do, Action.do, Action.enchant_sword, Action.enchant_armour]))
        row, col = here + OFFSETS[toward]
        if 0 <= row < SIZE and 0 <= col < SIZE:
            if _IS_SOLID[blocks[row, col]]:
                return int(self._rng.choice([Action.do, *MOVES]))
            if blocks[row, col] in (Block.water, Block.lava):
                return int(self._rng.choice([Action.place_stone, *MOVES]))
        if abs(down) + abs(right) <= 5 and self._rng.random() < 0.1:
            return int(self._rng.choice([Action.shoot_arrow, Action.cast_fireball, Action.cast_iceball]))
        return int(toward)


def names() -> list[str]:
    """All policies."""
    return [*_CHANCE, *_SCRIPTS, "seeker", "fighter", "boss"]


def _creatures(states: Fields, index: int, floor: int) -> np.ndarray:
    return np.concatenate([states[f"{m}.position"][index, floor][states[f"{m}.mask"][index, floor]] for m in CREATURES])
