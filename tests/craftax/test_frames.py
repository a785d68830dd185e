"""Pictures of observations: every texture is there, and what is seen is where it is drawn."""

import numpy as np
import pytest
from craftax.craftax.constants import BlockType, ItemType

from forethought.craftax import frames
from forethought.craftax.frames import TILE, carried, draw
from forethought.craftax.interface import ACTIONS


def empty():
    cells = np.zeros((9, 11, 8), np.uint8)
    cells[..., 0], cells[..., 7] = BlockType.GRASS.value, 1
    features = np.zeros(51, np.float32)
    features[22:27], features[31], features[43] = 0.9, 1, 1
    return cells, features


def tile(picture, row, column):
    return np.asarray(picture)[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]


def test_every_name_is_a_texture_of_the_game():
    tools = [f"{tier}_{tool}" for tier in frames._TIERS for tool in ("pickaxe", "sword")]
    armour = [f"{tier}_{piece}" for tier in ("iron", "diamond") for piece in frames._ARMOUR]
    tables = (frames._BLOCKS, frames._ITEMS, frames._CREATURES, frames._RESOURCES, frames._POTIONS, frames._BODY)
    names = {name for table in tables for name in table} | {*tools, *armour, "book", "bow", "player-sleep"}
    for name in names | set(frames._DIRECTIONS) - {""}:
        if name:
            assert frames._texture(name, TILE).size == (TILE, TILE)


def test_tables_have_the_games_numbers():
    assert len(frames._BLOCKS) == len(BlockType)
    for block in (BlockType.TREE, BlockType.RUBY, BlockType.FIRE_TREE, BlockType.GRAVE3, BlockType.NECROMANCER):
        assert frames._BLOCKS[block.value] == block.name.lower()
    assert frames._ITEMS[ItemType.LADDER_DOWN.value] == "ladder_down"
    assert frames._CREATURES[8 * 1 + 0] == "cow"
    assert len(frames._CREATURES) == 40


def test_cells_are_drawn_where_they_are():
    cells, features = empty()
    grass = tile(draw(cells, features), 0, 0)
    cells[2, 7, 0] = BlockType.LAVA.value
    cells[3, 1, 3] = 1 + 8 + 0
    cells[8, 10, 7] = 0
    picture = draw(cells, features)
    changed = {
        (row, column) for row, column in np.ndindex(9, 11) if not np.array_equal(tile(picture, row, column), grass)
    }
    assert changed == {(2, 7), (3, 1), (8, 10), (4, 5)}
    assert not tile(picture, 8, 10).any()


def test_a_closed_ladder_night_and_sleep_can_be_told():
    cells, features = empty()
    cells[1, 1, 1] = ItemType.LADDER_DOWN.value
    closed = draw(cells, features)
    features[49] = 1
    opened = draw(cells, features)
    assert not np.array_equal(tile(closed, 1, 1), tile(opened, 1, 1))
    features[44] = 1
    assert not np.array_equal(tile(draw(cells, features), 4, 5), tile(opened, 4, 5))
    features[43] = 0
    assert np.asarray(draw(cells, features))[: 9 * TILE].mean() < 0.7 * np.asarray(opened)[: 9 * TILE].mean()


def test_the_bag_lists_what_there_is():
    _, features = empty()
    features[0], features[9], features[10], features[11], features[35], features[17] = 0.2, 0.3, 0.5, 0.75, 1.0, 0.1
    found = dict(carried(features))
    assert found == {
        **dict.fromkeys(("health", "food", "drink", "energy", "mana"), 9),
        **{"wood": 4, "arrow-up": 9, "potion_green": 1, "book": 1, "iron_pickaxe": 1, "diamond_helmet": 1},
    }


def test_another_observation_is_refused():
    with pytest.raises(ValueError, match=r"cells \(5, 5, 2\) and features \(4,\) are no observation of Craftax"):
        draw(np.zeros((5, 5, 2), np.uint8), np.zeros(4, np.float32))


def test_actions_are_the_games():
    from craftax.craftax.constants import Action

    assert tuple(action.name.lower() for action in sorted(Action, key=lambda action: action.value)) == ACTIONS
