import subprocess
import sys
from collections import Counter

import pytest

from forethought.craftax.goal_specs import GoalSpec, goal_ids, goal_specs, parse_goal


def test_families_have_the_sizes_of_the_benchmark_table():
    expected = {"have": 56, "obtain": 17, "enchant": 6, "attribute": 12, "reach": 8, "place": 3}
    expected |= {"see": 39, "adjacent": 52, "damage": 19, "defeat": 19, "kill": 25}
    assert Counter(spec.family for spec in goal_specs()) == expected
    assert len(set(goal_ids())) == len(set(goal_specs())) == 256


@pytest.mark.parametrize(
    ("goal", "spec"),
    [
        ("have_4_saplings", GoalSpec("have", "sapling", 4)),
        ("have_8_rubies", GoalSpec("have", "ruby", 8)),
        ("obtain_iron_sword", GoalSpec("obtain", "sword", 3)),
        ("obtain_diamond_boots", GoalSpec("obtain", "boots", 2)),
        ("enchant_ice_bow", GoalSpec("enchant", "ice_bow")),
        ("reach_strength_5", GoalSpec("attribute", "strength", 5)),
        ("reach_floor_8", GoalSpec("reach", "floor", 8)),
        ("plant_sapling", GoalSpec("place", "sapling")),
        ("see_ladder_down_floor_7", GoalSpec("see", "ladder_down", floor=7)),
        ("adjacent_to_ice_shrub", GoalSpec("adjacent", "ice_shrub")),
        ("damage_orc_mage", GoalSpec("damage", "orc_mage")),
        ("kill_2_on_floor_6", GoalSpec("kill", "monsters_killed", 2, 6)),
    ],
)
def test_ids_are_read(goal, spec):
    assert parse_goal(goal) == spec


def test_unknown_goal_id_is_named():
    with pytest.raises(ValueError, match="'fly_to_the_moon'"):
        parse_goal("fly_to_the_moon")


def test_goals_are_known_without_jax():
    code = "import sys, forethought.craftax.goal_specs as g; g.goal_specs(); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
