"""The codes of the goals: complete, distinct, and those of the game."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from craftax.craftax.constants import MOB_ACHIEVEMENT_MAP, Achievement, BlockType, ItemType

from forethought.craftax import goal_table as codes
from forethought.craftax.goal_specs import goal_ids, goal_specs
from forethought.craftax.goal_table import ANY_FLOOR, FAMILIES, goal_table

ROWS = goal_table(goal_ids())
HEADER = Path(__file__).parents[2] / "engine" / "src" / "core" / "goals.hpp"


def test_every_goal_has_a_row_of_its_own():
    assert ROWS.shape == (256, 4)
    assert ROWS.dtype == np.uint8
    assert len(np.unique(ROWS, axis=0)) == 256
    assert set(ROWS[:, 0]) == set(range(len(FAMILIES)))


def test_rows_follow_the_order_asked_for():
    chosen = ("defeat_cow", "have_1_wood", "defeat_cow")
    np.testing.assert_array_equal(goal_table(chosen), ROWS[[goal_ids().index(goal) for goal in chosen]])
    assert goal_table(()).shape == (0, 4)


@pytest.mark.parametrize(
    ("goal", "row"),
    [
        ("have_64_torches", ("quantity", 8, 64, ANY_FLOOR)),
        ("obtain_diamond_boots", ("quantity", 16, 2, ANY_FLOOR)),
        ("reach_floor_3", ("quantity", 21, 3, ANY_FLOOR)),
        ("kill_8_on_floor_8", ("quantity", 22, 8, 8)),
        ("enchant_ice_armour", ("enchantment", 2, 2, ANY_FLOOR)),
        ("place_furnace", ("placement", 16, 1, ANY_FLOOR)),
        ("see_ladder_down_floor_0", ("see_item", 2, 1, 0)),
        ("see_frost_troll", ("see_creature", 15, 1, ANY_FLOOR)),
        ("adjacent_to_torch", ("adjacent_item", 1, 1, ANY_FLOOR)),
        ("adjacent_to_grave", ("adjacent_block", 33, 1, ANY_FLOOR)),
        ("damage_cow", ("damage", 0, 1, ANY_FLOOR)),
        ("defeat_ice_elemental", ("defeat", 23, 1, ANY_FLOOR)),
    ],
)
def test_rows_by_hand(goal, row):
    (family, *numbers) = row
    assert goal_table([goal]).tolist() == [[FAMILIES.index(family), *numbers]]


def test_amounts_and_floors_are_those_of_the_goals():
    for spec, (_, _, amount, floor) in zip(goal_specs(), ROWS.tolist(), strict=True):
        assert floor == (ANY_FLOOR if spec.floor is None else spec.floor)
        if spec.family != "enchant":
            assert amount == spec.amount


def test_blocks_items_achievements_and_creatures_have_the_games_numbers():
    for name, code in codes._BLOCKS.items():
        game_name = {"mossy_wall": "wall_moss"}.get(
            name, re.sub(r"(fire|ice)(_enchantment_table)", r"enchantment_table_\1", name)
        )
        assert BlockType[game_name.upper()].value == code
    for name, code in codes._ITEMS.items():
        assert ItemType[name.upper()].value == code
    for name, code in codes._ACHIEVEMENTS.items():
        assert Achievement[f"PLACE_{'PLANT' if name == 'sapling' else name.upper()}"].value == code
    for name, code in codes._CREATURES.items():
        flag = Achievement(int(np.asarray(MOB_ACHIEVEMENT_MAP).reshape(-1)[code])).name
        assert flag.replace("SOLIDER", "SOLDIER") in (f"EAT_{name.upper()}", f"DEFEAT_{name.upper()}")


def test_the_engine_lists_the_same_codes():
    if not HEADER.exists():
        pytest.skip("the engine's source is not beside the tests")
    source = HEADER.read_text()

    def names(enum: str) -> tuple[str, ...]:
        body = re.search(rf"enum class {enum} : std::uint8_t {{(.*?)}};", source, re.DOTALL)
        assert body
        return tuple(re.findall(r"\w+", re.sub(r"//.*", "", body[1])))

    assert names("Family") == FAMILIES
    assert names("Quantity") == codes._QUANTITIES
    assert names("Piece") == codes._PIECES
    assert f"kAnyFloor = {ANY_FLOOR};" in source


def test_an_unknown_goal_is_named_with_its_nearest():
    with pytest.raises(KeyError, match=r"'have_3_wood'.*have_32_wood"):
        goal_table(["have_1_wood", "have_3_wood"])


def test_the_table_is_made_without_jax():
    code = (
        "import sys, forethought.craftax.goal_table as t; t.goal_table(['see_cow']);"
        "print(sorted({'jax', 'craftax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
