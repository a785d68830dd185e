"""Edits of the state of one environment, in place, that keep it one that the game could be in."""

import numpy as np

from .fields import COUNTERS, CREATURES, SIZE, SLOTS, Fields
from .names import OFFSETS, Block, Item

Cell = tuple[int, int]

GROUND = (Block.grass, Block.path, Block.path, Block.path, Block.path, Block.path, Block.fire_grass, Block.ice_grass)
"""What most of each floor is made of (of the last one, path)."""


def ground(floor: int) -> int:
    """The block that creatures walk on and appear on, of a floor."""
    return int(GROUND[floor]) if floor < len(GROUND) else int(Block.path)


def put(fields: Fields, **values: object) -> None:
    """Set fields by name; nested names with two underscores for the dot."""
    for name, value in values.items():
        fields[name.replace("__", ".")][...] = value


def level(fields: Fields) -> int:
    """The floor that the player is on."""
    return int(fields["player_level"])


def here(fields: Fields) -> Cell:
    """The player's cell."""
    row, col = fields["player_position"]
    return int(row), int(col)


def stand(fields: Fields, floor: int, cell: Cell) -> None:
    """Move the player, and clear the cell if it cannot be stood on."""
    fields["player_level"][...] = floor
    fields["player_position"][...] = cell
    remove_creatures(fields, floor, cell)
    if fields["map"][floor, *cell] not in _WALKABLE:
        fields["map"][floor, *cell] = ground(floor)


def free_cell(fields: Fields, floor: int, rng: np.random.Generator, near: Cell | None = None, reach: int = 48) -> Cell:
    """A cell that can be walked on with nobody in it, at most `reach` rows and columns away; clears one if none is."""
    walkable = np.isin(fields["map"][floor], _WALKABLE) & ~fields["mob_map"][floor]
    if level(fields) == floor:
        walkable[here(fields)] = False
    if near is not None:
        rows, cols = np.indices((SIZE, SIZE))
        walkable &= np.maximum(abs(rows - near[0]), abs(cols - near[1])) <= reach
    cells = np.argwhere(walkable)
    if len(cells):
        row, col = cells[rng.integers(len(cells))]
        return int(row), int(col)
    cell = near if near is not None else (SIZE // 2, SIZE // 2)
    while cell == here(fields):
        cell = tuple(np.clip(np.add(cell, rng.integers(-1, 2, 2)), 0, SIZE - 1).tolist())
    remove_creatures(fields, floor, cell)
    fields["map"][floor, *cell] = ground(floor)
    return cell


def clear(fields: Fields, reach: int, block: int | None = None) -> None:
    """Make an open square round the player, without items or creatures."""
    floor, (row, col) = level(fields), here(fields)
    rows, cols = slice(max(row - reach, 0), row + reach + 1), slice(max(col - reach, 0), col + reach + 1)
    fields["map"][floor, rows, cols] = ground(floor) if block is None else block
    fields["item_map"][floor, rows, cols] = Item.none
    for mobs in SLOTS:
        position = fields[f"{mobs}.position"][floor]
        inside = (abs(position - (row, col)) <= reach).all(axis=-1)
        fields[f"{mobs}.mask"][floor][inside] = False
    fields["mob_map"][floor, rows, cols] = False


def around(fields: Fields, blocks: list[int]) -> None:
    """Put blocks on the cells to the left, right, above and below the player, as far as the map goes."""
    floor, (row, col) = level(fields), here(fields)
    for (down, right), block in zip(OFFSETS[1:], blocks, strict=False):
        cell = (row + down, col + right)
        if inside(cell):
            remove_creatures(fields, floor, cell)
            fields["map"][floor, *cell] = block
            fields["item_map"][floor, *cell] = Item.none


def inside(cell: Cell) -> bool:
    """Whether a cell is on the map."""
    return 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE


def put_creature(
    fields: Fields,
    mobs: str,
    slot: int,
    cell: Cell,
    kind: int,
    health: float,
    cooldown: int = 0,
    floor: int | None = None,
) -> None:
    """Let a creature stand somewhere; what the slot held before is gone."""
    floor = level(fields) if floor is None else floor
    remove_slot(fields, mobs, slot, floor)
    remove_creatures(fields, floor, cell)
    fields[f"{mobs}.position"][floor, slot] = cell
    fields[f"{mobs}.health"][floor, slot] = health
    fields[f"{mobs}.mask"][floor, slot] = True
    fields[f"{mobs}.attack_cooldown"][floor, slot] = cooldown
    fields[f"{mobs}.type_id"][floor, slot] = kind
    fields["mob_map"][floor, *cell] = True


def remove_slot(fields: Fields, mobs: str, slot: int, floor: int) -> None:
    """Empty a creature's slot."""
    if fields[f"{mobs}.mask"][floor, slot]:
        fields["mob_map"][floor, *fields[f"{mobs}.position"][floor, slot]] = False
        fields[f"{mobs}.mask"][floor, slot] = False


def remove_creatures(fields: Fields, floor: int, cell: Cell) -> None:
    """Empty the slots of the creatures in a cell."""
    for mobs in CREATURES:
        for slot in range(SLOTS[mobs]):
            if fields[f"{mobs}.mask"][floor, slot] and (fields[f"{mobs}.position"][floor, slot] == cell).all():
                remove_slot(fields, mobs, slot, floor)


def put_projectile(fields: Fields, mobs: str, slot: int, cell: Cell, direction: Cell, kind: int) -> None:
    """Let a projectile be in flight over a cell."""
    floor = level(fields)
    fields[f"{mobs}.position"][floor, slot] = cell
    fields[f"{mobs}.mask"][floor, slot] = True
    fields[f"{mobs}.health"][floor, slot] = 1
    fields[f"{mobs}.type_id"][floor, slot] = kind
    fields[f"{mobs[:-1]}_directions"][floor, slot] = direction


def supply(fields: Fields, count: int) -> None:
    """Give the player this much of everything that is counted, and no tools."""
    for name in COUNTERS:
        fields[f"inventory.{name}"][...] = count
    put(fields, inventory__potions=count, inventory__pickaxe=0, inventory__sword=0, inventory__bow=0)


def equip(fields: Fields, tier: int, enchantment: int = 0) -> None:
    """Give the player tools and armour of a tier from 0 to 4, and enchant them."""
    put(fields, inventory__pickaxe=tier, inventory__sword=tier, inventory__bow=int(tier > 0))
    put(fields, inventory__armour=min(tier, 2), armour_enchantments=enchantment)
    put(fields, sword_enchantment=enchantment, bow_enchantment=enchantment)


def grow(fields: Fields, attribute: int) -> None:
    """Set all attributes (1 to 5), and health and needs to what they allow at most."""
    put(fields, player_dexterity=attribute, player_strength=attribute, player_intelligence=attribute)
    heal(fields)


def heal(fields: Fields) -> None:
    """Fill health and needs."""
    dexterity, intelligence = int(fields["player_dexterity"]), int(fields["player_intelligence"])
    put(fields, player_health=8 + int(fields["player_strength"]), player_mana=6 + 3 * intelligence)
    put(fields, player_food=7 + 2 * dexterity, player_drink=7 + 2 * dexterity, player_energy=7 + 2 * dexterity)


def set_time(fields: Fields, timestep: int) -> None:
    """Set the clock, and the daylight that belongs to it."""
    progress = np.float32(timestep / 300 % 1 + 0.3)
    put(fields, timestep=timestep, light_level=1 - abs(np.cos(np.float32(np.pi) * progress)) ** 3)


_WALKABLE = tuple(
    int(block)
    for block in (Block.grass, Block.sand, Block.path, Block.fire_grass, Block.ice_grass, Block.gravel, Block.ice_shrub)
)
