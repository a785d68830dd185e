"""What the agent sees in Craftax, drawn from an observation with the game's own textures; needs no JAX."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from forethought.craftax.interface import OBSERVATION_SPEC
from forethought.pictures import INK, PAPER, captioned

TILE = 32
"""Pixels of a cell."""

_ICON = 22
_PER_ROW = 11

_BLOCKS = (
    *("debug_tile", "debug_tile", "grass", "water", "stone", "tree", "wood", "path", "coal", "iron", "diamond"),
    *("table", "furnace", "sand", "lava", "plant_on_grass", "ripe_plant_on_grass", "wall2", "debug_tile", "wall_moss"),
    *("stalagmite", "sapphire", "ruby", "chest", "fountain", "fire_grass", "ice_grass", "gravel", "fire_tree"),
    *("ice_shrub", "enchantment_table_fire", "enchantment_table_ice", "necromancer", "grave", "grave2", "grave3"),
    "necromancer_vulnerable",
)
_NECROMANCER, _VULNERABLE = 32, 36
_ITEMS = ("", "torch_in_inventory", "ladder_down", "ladder_up", "ladder_down_blocked")
_LADDER_DOWN, _BLOCKED = 2, 4
_PROJECTILES = ("arrow-up", "dagger", "fireball", "iceball", "arrow-up", "slimeball", "fireball", "iceball")
_CREATURES = (
    *("zombie", "gnome_warrior", "orc_soldier", "lizard", "knight", "troll", "pigman", "frost_troll"),
    *("cow", "bat", "snail", "", "", "", "", ""),
    *("skeleton", "gnome_archer", "orc_mage", "kobold", "knight_archer", "deep_thing", "fire_elemental"),
    "ice_elemental",
    *_PROJECTILES,
    *_PROJECTILES,
)
"""By the observation's creature id less 1: 8 x class + type."""

_RESOURCES = (
    *("wood", "stone", "coal", "iron", "diamond", "sapphire", "ruby", "sapling", "torch_in_inventory", "arrow-up"),
)
_TIERS = ("wood", "stone", "iron", "diamond")
_POTIONS = tuple(f"potion_{colour}" for colour in ("red", "green", "blue", "pink", "cyan", "yellow"))
_BODY = ("health", "food", "drink", "energy", "mana")
_ARMOUR = ("helmet", "chestplate", "pants", "boots")
_DIRECTIONS = ("player-left", "player-right", "player-up", "player-down")


def draw(
    cells: UInt8[np.ndarray, "row column channel"], features: Float[np.ndarray, " feature"], *lines: str
) -> Image.Image:
    """Draw one observation: the cells in view, what the player has, and lines of text.

    Projectiles point upwards wherever they fly, as an observation does not say.

    Raises:
        ValueError: The observation is not one of Craftax.
    """
    spec = OBSERVATION_SPEC
    if cells.shape != (spec.height, spec.width, spec.channels) or features.shape != (spec.features,):
        raise ValueError(f"cells {cells.shape} and features {features.shape} are no observation of Craftax")
    view = Image.new("RGB", (spec.width * TILE, spec.height * TILE))
    for row, column in np.ndindex(spec.height, spec.width):
        _draw_cell(view, cells[row, column], features, (column * TILE, row * TILE))
    sleeping, middle = features[44] > 0, (spec.width // 2 * TILE, spec.height // 2 * TILE)
    _put(view, "player-sleep" if sleeping else _DIRECTIONS[int(features[31:35].argmax())], middle)
    daylight = float(np.clip(features[43], 0, 1))
    view = Image.blend(view, Image.new("RGB", view.size, (0, 16, 64)), 0.6 * (1 - daylight))
    return captioned(_above(view, _bag(features, view.width)), lines)


def carried(features: Float[np.ndarray, "51"]) -> list[tuple[str, int]]:
    """What the player is and has, as textures and numbers, without what there is none of."""
    counts = [round(float(10 * value) ** 2) for value in features[:10]]
    potions = [round(float(10 * value) ** 2) for value in features[16:22]]
    body = [round(float(10 * value)) for value in features[22:27]]
    found = [(name, count) for name, count in zip((*_RESOURCES, *_POTIONS), (*counts, *potions), strict=True) if count]
    if books := round(float(2 * features[10])):
        found.append(("book", books))
    for tool, value in (("pickaxe", features[11]), ("sword", features[12])):
        if tier := round(float(4 * value)):
            found.append((f"{_TIERS[tier - 1]}_{tool}", 1))
    if features[15]:
        found.append(("bow", 1))
    for piece, value in zip(_ARMOUR, features[35:39], strict=True):
        if tier := round(float(2 * value)):
            found.append((f"{('iron', 'diamond')[tier - 1]}_{piece}", 1))
    return [*zip(_BODY, body, strict=True), *found]


def _draw_cell(view: Image.Image, cell: np.ndarray, features: np.ndarray, at: tuple[int, int]) -> None:
    block, item, visible = int(cell[0]), int(cell[1]), bool(cell[7])
    if not visible:
        return
    _put(view, _BLOCKS[_VULNERABLE if block == _NECROMANCER and features[50] else block], at)
    if item:
        _put(view, _ITEMS[_BLOCKED if item == _LADDER_DOWN and not features[49] else item], at)
    for creature in cell[2:7]:
        if creature and (name := _CREATURES[creature - 1]):
            _put(view, name, at)


def _bag(features: np.ndarray, width: int) -> Image.Image:
    things = carried(features)
    rows = -(-len(things) // _PER_ROW)
    bag = Image.new("RGB", (width, rows * (_ICON + 6) + 4), PAPER)
    pen = ImageDraw.Draw(bag)
    for number, (name, count) in enumerate(things):
        row, column = divmod(number, _PER_ROW)
        x, y = column * width // _PER_ROW + 2, row * (_ICON + 6) + 4
        _put(bag, name, (x, y), _ICON)
        pen.text((x + _ICON - 6, y + _ICON - 10), str(count), INK, stroke_width=1, stroke_fill=PAPER)
    return bag


def _above(upper: Image.Image, lower: Image.Image) -> Image.Image:
    whole = Image.new("RGB", (upper.width, upper.height + lower.height), PAPER)
    whole.paste(upper)
    whole.paste(lower, (0, upper.height))
    return whole


def _put(image: Image.Image, name: str, at: tuple[int, int], size: int = TILE) -> None:
    texture = _texture(name, size)
    image.paste(texture, at, texture)


@lru_cache(maxsize=512)
def _texture(name: str, size: int) -> Image.Image:
    if name == "debug_tile":
        return Image.new("RGBA", (size, size), (0, 0, 0, 255))
    with Image.open(_assets() / f"{name}.png") as image:
        return image.convert("RGBA").resize((size, size), Image.Resampling.NEAREST)


@lru_cache
def _assets() -> Path:
    found = find_spec("craftax")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            "drawing Craftax takes its textures: pip install 'forethought[craftax]'", name="craftax"
        )
    return Path(next(iter(found.submodule_search_locations))) / "craftax" / "assets"
