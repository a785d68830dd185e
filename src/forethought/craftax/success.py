"""When a Craftax goal is reached: all 256 tests on one transition, computed together.

A goal is judged on the pair of states around a step, the later one taken before any reset, so that what
happens on the step of death or of the time limit counts. Everything is read from the game state: the symbolic
observation can lose a creature. Only the current floor is looked at.

Known miss: a cow, bat or snail killed by a projectile sets no flag in the game. Such a kill shows as an
emptied slot without health, and if a new creature takes that slot within the same step it does not show at all:
about one such kill in ten (benchmarks/projectile_miss.py). The paper's evaluator has the same gap (paper, C.1),
so it is kept; `missed_passive_kill` tells how often it happens.
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from craftax.craftax.constants import MOB_ACHIEVEMENT_MAP, Achievement, BlockType, ItemType
from craftax.craftax.craftax_state import EnvState, Mobs
from jax import Array, lax
from jaxtyping import Bool, Int, Num

from forethought.craftax.goal_specs import GoalSpec, goal_specs
from forethought.craftax.interface import WINDOW

LIGHT_THRESHOLD = 0.05
"""A cell is visible when its light is above this, as in the game's own observation."""


def benchmark_success(previous: EnvState, state: EnvState) -> Bool[Array, "256"]:
    """Test every benchmark goal on the step from `previous` to `state`.

    Args:
        previous: state of one environment before the step.
        state: state after the step and before any reset. Batches go through `jax.vmap`.

    Returns:
        Whether each goal is reached, in the order of goals.json.

    Source: paper, Table 1 and C.1; ambiguous goal texts are read as in docs/paper.md.
    """
    slots = _slots(state, state.player_level)
    sighted = _window(state)
    touched = _neighbours(state)
    reached = _quantities(state)[_QUANTITY] >= _AMOUNT
    facts = jnp.concatenate(
        [
            _enchantments(state),
            state.achievements[_PLACEMENTS],
            _holds(sighted.blocks, sighted.visible, _SEEN_BLOCKS),
            _floors(state, (sighted.items == ItemType.LADDER_DOWN.value) & sighted.visible),
            _any_slot(slots, _is_visible(state, slots)),
            _holds(touched.blocks, touched.visible, _TOUCHED_BLOCKS),
            ((touched.items == ItemType.TORCH.value) & touched.visible).any(keepdims=True),
            _floors(state, (touched.items == ItemType.LADDER_DOWN.value) & touched.visible),
            _any_slot(slots, slots.alive & (_distance(slots, state) == 1)),
            *_fights(previous, state, slots),
        ]
    )
    return jnp.concatenate([reached, facts])[_ORDER]


def holds_at_start(state: EnvState) -> Bool[Array, "256"]:
    """Tell which goals hold without a step taken, as some "see" goals do in a fresh world."""
    return benchmark_success(state, state)


def form_success(spec: GoalSpec, previous: EnvState, state: EnvState) -> Bool[Array, ""]:
    """Test one goal outside the benchmark that has one of its forms (`goal_table.has_free_form`)."""
    if spec.family in ("have", "attribute", "reach", "kill"):
        return _quantities(state)[_QUANTITY_NAMES.index(_quantity_name(spec))] >= spec.amount
    cells = _window(state)
    if spec.thing == "torch":
        return ((cells.items == ItemType.TORCH.value) & cells.visible).any()
    return _holds(cells.blocks, cells.visible, (spec.thing,))[0]


def missed_passive_kill(previous: EnvState, state: EnvState) -> Bool[Array, "3"]:
    """Tell whether a kill of a cow, a bat or a snail went unseen in this step, to measure how often.

    A creature moves one cell a step and vanishes only 14 cells away from the player. If a slot's creature
    stood well within that distance and is now elsewhere, it was killed and replaced. A replacement that
    appears within one cell of the old place is not found.

    Returns:
        One flag each for cow, bat and snail.
    """
    level = state.player_level
    before, after = _slots(previous, level), _slots(state, level)
    jumped = jnp.abs(after.position - before.position).sum(-1) > 1
    within = jnp.abs(before.position - state.player_position).sum(-1) <= _SURELY_KEPT
    replaced = before.alive & after.alive & (before.code == after.code) & jumped & within
    unflagged = ~state.achievements[_KILL_FLAGS]
    return (_any_slot(before, replaced) & unflagged)[np.array([_CREATURE_ROW[name] for name in _PASSIVE])]


_PASSIVE = ("cow", "bat", "snail")
_MELEE = ("zombie", "gnome_warrior", "orc_soldier", "lizard", "knight", "troll", "pigman", "frost_troll")
_RANGED = (
    "skeleton",
    "gnome_archer",
    "orc_mage",
    "kobold",
    "archer",
    "deep_thing",
    "fire_elemental",
    "ice_elemental",
)
# Classes in the order of the game's MOB_ACHIEVEMENT_MAP; the place in a tuple is the game's type_id.
_CLASSES = (_PASSIVE, _MELEE, _RANGED)
_CREATURE_ROW = {name: row for row, name in enumerate(name for names in _CLASSES for name in names)}
_CREATURE_CODE = np.array([8 * kind + type_id for kind, names in enumerate(_CLASSES) for type_id in range(len(names))])
_KILL_FLAGS = np.asarray(MOB_ACHIEVEMENT_MAP).reshape(-1)[_CREATURE_CODE]

# A creature is removed at 14 cells; it moves one cell between the two states.
_SURELY_KEPT = 12

_NEIGHBOURS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
_LADDER_FLOORS = 8

_PLACEMENT_FLAGS = {
    "table": Achievement.PLACE_TABLE,
    "furnace": Achievement.PLACE_FURNACE,
    "sapling": Achievement.PLACE_PLANT,
}
_PLACEMENTS = np.array([flag.value for flag in _PLACEMENT_FLAGS.values()])
_ENCHANTMENTS = tuple(f"{element}_{piece}" for element in ("fire", "ice") for piece in ("sword", "bow", "armour"))

_BLOCKS = {
    "coal": (BlockType.COAL,),
    "iron": (BlockType.IRON,),
    "diamond": (BlockType.DIAMOND,),
    "lava": (BlockType.LAVA,),
    "mossy_wall": (BlockType.WALL_MOSS,),
    "sapphire": (BlockType.SAPPHIRE,),
    "ruby": (BlockType.RUBY,),
    "chest": (BlockType.CHEST,),
    "fountain": (BlockType.FOUNTAIN,),
    "fire_enchantment_table": (BlockType.ENCHANTMENT_TABLE_FIRE,),
    "ice_enchantment_table": (BlockType.ENCHANTMENT_TABLE_ICE,),
    "necromancer": (BlockType.NECROMANCER,),
    "water": (BlockType.WATER,),
    "stone": (BlockType.STONE,),
    "path": (BlockType.PATH,),
    "sand": (BlockType.SAND,),
    "ripe_plant": (BlockType.RIPE_PLANT,),
    "wall": (BlockType.WALL,),
    "stalagmite": (BlockType.STALAGMITE,),
    "fire_grass": (BlockType.FIRE_GRASS,),
    "fire_tree": (BlockType.FIRE_TREE,),
    "ice_grass": (BlockType.ICE_GRASS,),
    "ice_shrub": (BlockType.ICE_SHRUB,),
    "grave": (BlockType.GRAVE, BlockType.GRAVE2, BlockType.GRAVE3),
}


class _Cells(NamedTuple):
    """Some cells of the current floor: block and item ids, and whether the cell counts at all."""

    blocks: Int[Array, " cells"]
    items: Int[Array, " cells"]
    visible: Bool[Array, " cells"]


class _Slots(NamedTuple):
    """The creature slots of one floor; `code` is 8 x class + type, as in `_CREATURE_CODE`."""

    code: Int[Array, " slots"]
    position: Int[Array, "slots 2"]
    health: Num[Array, " slots"]
    alive: Bool[Array, " slots"]


def _slots(state: EnvState, level: Int[Array, ""] | int) -> _Slots:
    classes: tuple[Mobs, ...] = (state.passive_mobs, state.melee_mobs, state.ranged_mobs)
    return _Slots(
        code=jnp.concatenate([8 * kind + mobs.type_id[level] for kind, mobs in enumerate(classes)]),
        position=jnp.concatenate([mobs.position[level] for mobs in classes]),
        health=jnp.concatenate([mobs.health[level] for mobs in classes]),
        alive=jnp.concatenate([mobs.mask[level] for mobs in classes]),
    )


def _window(state: EnvState) -> _Cells:
    """Cut out the 9 x 11 cells around the player; those beyond the map, or in the dark, are not visible."""
    corner = state.player_position - np.array(WINDOW) // 2
    # The slice is moved inward at the map's edge: cells it then holds beyond the window must not count.
    start = jnp.clip(corner, 0, np.array(state.map.shape[-2:]) - np.array(WINDOW))
    rows = start[0] + np.arange(WINDOW[0])[:, None]
    columns = start[1] + np.arange(WINDOW[1])[None, :]
    inside = (jnp.abs(rows - state.player_position[0]) <= WINDOW[0] // 2) & (
        jnp.abs(columns - state.player_position[1]) <= WINDOW[1] // 2
    )

    def cut(layer: Num[Array, "floors rows columns"]) -> Num[Array, " cells"]:
        return lax.dynamic_slice(layer, (state.player_level, start[0], start[1]), (1, *WINDOW)).reshape(-1)

    lit = cut(state.light_map) > LIGHT_THRESHOLD
    return _Cells(cut(state.map), cut(state.item_map), inside.reshape(-1) & lit)


def _neighbours(state: EnvState) -> _Cells:
    """Read the four cells beside the player; `visible` means within the map, as light does not matter."""
    size = np.array(state.map.shape[-2:])
    cells = state.player_position + _NEIGHBOURS
    within = ((cells >= 0) & (cells < size)).all(-1)
    # Indices are clipped before the look-up because JAX would wrap -1 around to the far edge.
    rows, columns = jnp.clip(cells, 0, size - 1).T
    level = state.player_level
    return _Cells(state.map[level, rows, columns], state.item_map[level, rows, columns], within)


def _is_visible(state: EnvState, slots: _Slots) -> Bool[Array, " slots"]:
    offset = jnp.abs(slots.position - state.player_position)
    inside = (offset <= np.array(WINDOW) // 2).all(-1)
    rows, columns = jnp.clip(slots.position, 0, np.array(state.map.shape[-2:]) - 1).T
    lit = state.light_map[state.player_level, rows, columns] > LIGHT_THRESHOLD
    return slots.alive & inside & lit


def _distance(slots: _Slots, state: EnvState) -> Int[Array, " slots"]:
    return jnp.abs(slots.position - state.player_position).sum(-1)


def _any_slot(slots: _Slots, chosen: Bool[Array, " slots"]) -> Bool[Array, "19"]:
    """Tell for each kind of creature whether one of the chosen slots holds it."""
    return ((slots.code == _CREATURE_CODE[:, None]) & chosen).any(-1)


def _holds(
    blocks: Int[Array, " cells"], counts: Bool[Array, " cells"], names: tuple[str, ...]
) -> Bool[Array, " names"]:
    """Tell for each named block whether a counting cell holds it."""
    ids = np.array([block.value for name in names for block in _BLOCKS[name]])
    found = ((blocks == ids[:, None]) & counts).any(-1)
    ends = np.cumsum([len(_BLOCKS[name]) for name in names])
    return jnp.stack([found[end - len(_BLOCKS[name]) : end].any() for name, end in zip(names, ends, strict=True)])


def _floors(state: EnvState, cells: Bool[Array, " cells"]) -> Bool[Array, "8"]:
    """Put one finding in the place of the current floor; floor 8 has no way down."""
    return (state.player_level == np.arange(_LADDER_FLOORS)) & cells.any()


def _enchantments(state: EnvState) -> Bool[Array, "6"]:
    return jnp.stack(
        [
            test
            for element in (1, 2)
            for test in (
                state.sword_enchantment == element,
                state.bow_enchantment == element,
                (state.armour_enchantments == element).any(),
            )
        ]
    )


def _fights(previous: EnvState, state: EnvState, after: _Slots) -> tuple[Bool[Array, "19"], Bool[Array, "19"]]:
    """Tell which kinds of creature lost health, and which were defeated.

    The flags catch kills whose slot was filled again in the same step. A creature that only vanished keeps
    its health.
    """
    before = _slots(previous, state.player_level)
    same = before.alive & (before.code == after.code)
    flags = state.achievements[_KILL_FLAGS]
    new_flags = flags & ~previous.achievements[_KILL_FLAGS]
    damaged = _any_slot(before, same & (after.health < before.health)) | new_flags
    defeated = _any_slot(before, same & ~after.alive & (after.health <= 0)) | flags
    return damaged, defeated


_RESOURCES = (
    ("wood", "wood"),
    ("stone", "stone"),
    ("coal", "coal"),
    ("iron", "iron"),
    ("diamond", "diamond"),
    ("sapphire", "sapphire"),
    ("ruby", "ruby"),
    ("sapling", "sapling"),
    ("torch", "torches"),
    ("arrow", "arrows"),
    ("book", "books"),
    ("pickaxe", "pickaxe"),
    ("sword", "sword"),
    ("bow", "bow"),
)
_QUANTITY_NAMES = (
    *(name for name, _ in _RESOURCES),
    *("chestplate", "leggings", "boots", "armour"),
    *("dexterity", "strength", "intelligence", "floor"),
    *(f"monsters_killed_{floor}" for floor in range(9)),
)


def _quantities(state: EnvState) -> Int[Array, " quantities"]:
    """Collect every number that some goal compares with a threshold, in the order of `_QUANTITY_NAMES`."""
    inventory = state.inventory
    numbers = [
        *(getattr(inventory, field) for _, field in _RESOURCES),
        # The game's order of armour is helmet, chestplate, leggings, boots; a piece is 1 iron or 2 diamond.
        *(inventory.armour[slot] for slot in (1, 2, 3)),
        inventory.armour.max(),
        state.player_dexterity,
        state.player_strength,
        state.player_intelligence,
        state.player_level,
    ]
    return jnp.concatenate([jnp.stack([jnp.asarray(number) for number in numbers]), state.monsters_killed])


def _quantity_name(spec: GoalSpec) -> str:
    return spec.thing if spec.floor is None else f"{spec.thing}_{spec.floor}"


_SPECS = goal_specs()
_COUNTED = tuple(s for s in _SPECS if s.family in ("have", "obtain", "attribute", "reach", "kill"))
_QUANTITY = np.array([_QUANTITY_NAMES.index(_quantity_name(spec)) for spec in _COUNTED])
_AMOUNT = np.array([spec.amount for spec in _COUNTED])
_SEEN_BLOCKS = tuple(spec.thing for spec in _SPECS if spec.family == "see" and spec.thing in _BLOCKS)
_TOUCHED_BLOCKS = tuple(spec.thing for spec in _SPECS if spec.family == "adjacent" and spec.thing in _BLOCKS)


def _ladders(family: Literal["see", "adjacent"]) -> list[GoalSpec]:
    return [GoalSpec(family, "ladder_down", floor=floor) for floor in range(_LADDER_FLOORS)]


def _result_order() -> Int[np.ndarray, "256"]:
    """Find for each goal its place in what `benchmark_success` concatenates."""
    computed = [
        *_COUNTED,
        *(GoalSpec("enchant", name) for name in _ENCHANTMENTS),
        *(GoalSpec("place", name) for name in _PLACEMENT_FLAGS),
        *(GoalSpec("see", name) for name in _SEEN_BLOCKS),
        *_ladders("see"),
        *(GoalSpec("see", name) for name in _CREATURE_ROW),
        *(GoalSpec("adjacent", name) for name in _TOUCHED_BLOCKS),
        GoalSpec("adjacent", "torch"),
        *_ladders("adjacent"),
        *(GoalSpec("adjacent", name) for name in _CREATURE_ROW),
        *(GoalSpec("damage", name) for name in _CREATURE_ROW),
        *(GoalSpec("defeat", name) for name in _CREATURE_ROW),
    ]
    place = {spec: index for index, spec in enumerate(computed)}
    return np.array([place[spec] for spec in _SPECS])


_ORDER = _result_order()
