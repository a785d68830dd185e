"""The compact observation against the game's own symbolic one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craftax.craftax.craftax_state import EnvState
from craftax.craftax.renderer import render_craftax_symbolic

from forethought.craftax.interface import OBSERVATION_SPEC
from forethought.craftax.observation import observe

CASES = 600
CREATURE = slice(42, 82)


@pytest.fixture(scope="module")
def views(craftax_worlds):
    """Random places on all floors of the generated worlds, with creatures about: both observations."""
    rng = np.random.default_rng(0)
    pick = rng.integers(4, size=CASES)
    states = jax.tree.map(lambda leaf: np.array(leaf)[pick], craftax_worlds.replace(state_rng=np.zeros(4)))
    states = scattered(states, rng)
    official = np.asarray(jax.jit(jax.vmap(render_craftax_symbolic))(states))
    compact = jax.jit(jax.vmap(observe))(jax.tree.map(jnp.asarray, states))
    return states, official, jax.tree.map(np.asarray, compact)


def scattered(states: EnvState, rng: np.random.Generator) -> EnvState:
    """Put players anywhere (corners too) with random belongings, and creatures of all classes around them."""
    every = np.arange(CASES)
    place = rng.integers(0, 48, (CASES, 2))
    place[:4] = [(0, 0), (0, 47), (47, 0), (47, 47)]
    level = rng.integers(0, 9, CASES)

    def mobs(group):
        slots = group.mask.shape[2]
        position = group.position.copy()
        position[every, level] = place[:, None] + rng.integers(-6, 7, (CASES, slots, 2))
        return group.replace(
            position=position,
            mask=rng.random(group.mask.shape) < 0.7,
            type_id=rng.choice([0, 3, 7], group.type_id.shape),
        )

    classes = ("melee_mobs", "passive_mobs", "ranged_mobs", "mob_projectiles", "player_projectiles")
    inventory = jax.tree.map(lambda leaf: rng.integers(0, 3, leaf.shape), states.inventory)
    whole = {
        name: rng.integers(0, high, CASES)
        for name, high in {
            "player_food": 18, "player_drink": 10, "player_energy": 10, "player_mana": 10, "player_xp": 4,
            "player_dexterity": 6, "player_strength": 6, "player_intelligence": 6, "sword_enchantment": 3,
            "bow_enchantment": 3, "boss_timesteps_to_spawn_this_round": 3,
        }.items()
    }  # fmt: skip
    return states.replace(
        player_position=place,
        player_level=level,
        player_direction=rng.integers(1, 5, CASES),
        player_health=rng.random(CASES).astype(np.float32) * 9,
        light_level=rng.random(CASES).astype(np.float32),
        is_sleeping=rng.random(CASES) < 0.5,
        is_resting=rng.random(CASES) < 0.5,
        learned_spells=rng.random((CASES, 2)) < 0.5,
        monsters_killed=rng.integers(0, 12, (CASES, 9)),
        armour_enchantments=rng.integers(0, 3, (CASES, 4)),
        inventory=inventory.replace(wood=rng.integers(0, 100, CASES)),
        **whole,
        **{name: mobs(getattr(states, name)) for name in classes},
    )


@pytest.mark.craftax
def test_features_equal_the_last_51_numbers_exactly(views):
    _, official, compact = views
    assert compact.features.dtype == np.float32
    np.testing.assert_array_equal(compact.features, official[:, 8217:])


@pytest.mark.craftax
def test_blocks_items_and_visibility_equal_the_games_own(views):
    _, official, compact = views
    grid = official[:, :8217].reshape(CASES, 9, 11, 83)
    visible = grid[..., 82]
    np.testing.assert_array_equal(compact.cells[..., 7], visible)
    np.testing.assert_array_equal(compact.cells[..., 0], grid[..., :37].argmax(-1) * visible)
    np.testing.assert_array_equal(compact.cells[..., 1], grid[..., 37:42].argmax(-1) * visible)
    assert (compact.cells[visible == 0] == 0).all()
    assert 0 < (visible == 0).mean() < 1


@pytest.mark.craftax
def test_creatures_differ_only_where_the_game_erases_one_or_two_share_a_cell(views):
    states, official, compact = views
    theirs = official[:, :8217].reshape(CASES, 9, 11, 83)[..., CREATURE] > 0
    codes = compact.cells[..., 2:7]
    ours = (codes[..., None] == np.arange(1, 41)).any(-2)
    erased = shared = 0
    for case, row, column, code in np.argwhere(ours != theirs):
        if ours[case, row, column, code]:
            assert has_eraser(states, case, code, row, column)
            erased += 1
        else:
            rivals = codes[case, row, column, code // 8]
            assert rivals > code + 1
            shared += 1
    shown = int(ours.sum())
    print(f"creatures shown {shown}, erased by the game's renderer {erased}, hidden by another in the cell {shared}")
    assert shown > 1000
    assert 0 < erased < 0.05 * shown
    assert shared < 0.05 * shown


def has_eraser(states: EnvState, case: int, code: int, row: int, column: int) -> bool:
    """Whether a later slot of this class and type, dead or off the screen, is drawn onto this cell."""
    names = ("melee_mobs", "passive_mobs", "ranged_mobs", "mob_projectiles", "player_projectiles")
    group, level = getattr(states, names[code // 8]), states.player_level[case]
    local = group.position[case, level] - states.player_position[case] + (4, 5)
    on_screen = ((local >= 0) & (local < (9, 11))).all(-1) & group.mask[case, level]
    wrapped = np.where(local < 0, local + np.array([9, 11]), local)
    same = (group.type_id[case, level] == code % 8) & (wrapped == (row, column)).all(-1)
    return bool((same & ~on_screen).any())


@pytest.mark.craftax
def test_ids_stay_within_their_tables(views):
    cells = views[2].cells
    assert cells.dtype == np.uint8
    first = 0
    for table in OBSERVATION_SPEC.tables:
        assert cells[..., first : first + table.channels].max() < table.rows
        first += table.channels
    assert first == OBSERVATION_SPEC.channels == cells.shape[-1]
    assert (OBSERVATION_SPEC.height, OBSERVATION_SPEC.width) == cells.shape[1:3]


def test_a_creature_beside_the_window_does_not_reach_into_it(make_state):
    state = make_state()
    state.player_position[:] = (0, 0)
    state.melee_mobs.mask[0, 0] = True
    state.melee_mobs.position[0, 0] = (5, 0)
    cells = np.asarray(observe(jax.tree.map(jnp.asarray, state)).cells)
    assert not cells[..., 2].any()
    assert not cells[:4].any()
    assert not cells[:, :5].any()
    assert (cells[4:, 5:, 7] == 1).all()
