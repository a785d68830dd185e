"""The engine's observations against forethought's own, jitted and vmapped: the same bits."""

from functools import cache

import jax
import numpy as np
import pytest
from conformance.fields import Fields
from conformance.reference import unflatten
from random_states import COUNTS, into_engine, random_states

from craftax_native import _core
from forethought.craftax.observation import observe

BATCH = 128
PROJECTILE_CLASSES = (5, 6)


@cache
def reference():
    return jax.jit(jax.vmap(observe))


def seen(fields: Fields) -> tuple[np.ndarray, np.ndarray]:
    count = len(fields["timestep"])
    cells, features = np.full((count, 9, 11, 8), 255, np.uint8), np.full((count, 51), np.nan, np.float32)
    _core.observe(into_engine(fields), cells, features)
    return cells, features


def check(fields: Fields) -> tuple[np.ndarray, np.ndarray]:
    """Compare both parts bit for bit and return them."""
    expected = jax.tree.map(np.asarray, reference()(unflatten(fields)))
    cells, features = seen(fields)
    np.testing.assert_array_equal(cells, expected.cells)
    np.testing.assert_array_equal(features.view(np.uint32), expected.features.view(np.uint32))
    return cells, features


def test_random_states_look_the_same():
    rng = np.random.default_rng(0)
    cells = np.concatenate([check(random_states(rng, BATCH))[0] for _ in range(32)])
    visible = cells[..., 7] == 1
    assert 0.2 < visible.mean() < 0.8
    assert not cells[~visible].any()
    assert set(np.unique(cells[..., 0])) == set(range(37))
    assert set(np.unique(cells[..., 1])) == set(range(5))
    for kind in range(5):
        types = 3 if kind == 1 else 8
        assert set(np.unique(cells[..., 2 + kind])) == {0, *range(1 + 8 * kind, 1 + 8 * kind + types)}


@pytest.mark.parametrize("floor", range(9))
def test_every_corner_of_every_floor(floor):
    rng = np.random.default_rng(floor)
    places = [(row, column) for row in (0, 3, 4, 24, 43, 44, 47) for column in (0, 4, 5, 24, 42, 43, 47)]
    fields = random_states(rng, BATCH)
    moved = np.resize(places, (BATCH, 2)) - fields["player_position"]
    for name in (name for name in fields if name.endswith((".position", "player_position"))):
        fields[name] = (fields[name] + moved.reshape(BATCH, *[1] * (fields[name].ndim - 2), 2)).astype(np.int32)
    fields["player_level"][:] = floor
    fields["light_map"][:] = 1
    cells, _ = check(fields)
    # The number of cells on the map tells that the states were where this test wants them.
    rows, columns = np.array(places).T
    heights = np.minimum(rows + 4, 47) - np.maximum(rows - 4, 0) + 1
    widths = np.minimum(columns + 5, 47) - np.maximum(columns - 5, 0) + 1
    np.testing.assert_array_equal(cells[: len(places), ..., 7].sum((1, 2)), heights * widths)


def test_all_counts_round_as_the_reference_rounds_them():
    rng = np.random.default_rng(1)
    values = np.concatenate([np.arange(100), np.arange(100, 2000, 7), [4095, 10**5, 10**6]]).astype(np.int32)
    for part in np.split(np.resize(values, (4, BATCH)), 4):
        fields = random_states(rng, BATCH)
        for shift, name in enumerate(COUNTS):
            fields[f"inventory.{name}"] = np.roll(part[0], shift)
        fields["inventory.potions"] = np.stack([np.roll(part[0], 11 + n) for n in range(6)], 1)
        for shift, name in enumerate(
            ("food", "drink", "energy", "mana", "xp", "dexterity", "strength", "intelligence")
        ):
            fields[f"player_{name}"] = np.roll(part[0], 20 + shift)
        check(fields)
    assert len(values) <= 4 * BATCH


def test_the_larger_type_shows_where_two_of_a_class_share_a_cell():
    fields = random_states(np.random.default_rng(2), BATCH)
    every = np.arange(BATCH)
    fields["light_map"][:] = 1
    for name in ("mob_projectiles", "player_projectiles"):
        at = every, fields["player_level"]
        fields[f"{name}.position"][at] = fields["player_position"][:, None]
        fields[f"{name}.mask"][at] = [True, True, False]
        fields[f"{name}.type_id"][at] = np.stack([every % 8, every // 8 % 8, every * 0 + 7], 1)
    cells, _ = check(fields)
    for channel in PROJECTILE_CLASSES:
        larger = np.maximum(every % 8, every // 8 % 8)
        assert (cells[:, 4, 5, channel] == 1 + 8 * (channel - 2) + larger).all()


def test_the_boss_is_vulnerable_only_when_its_guards_are_gone_and_no_more_come():
    fields = random_states(np.random.default_rng(3), BATCH)
    for name in ("melee_mobs", "ranged_mobs"):
        fields[f"{name}.mask"][:] = False
    fields["boss_timesteps_to_spawn_this_round"] = np.resize(np.int32([-1, 0, 1]), BATCH)
    _, features = check(fields)
    np.testing.assert_array_equal(features[:, 50], np.resize([1, 1, 0], BATCH))
