"""Situations in which games start, so that every rule of every floor is met within a thousand steps.

A scenario edits a world of the game's own generator. Some are renewed every so many steps, lest the player die early
or run out of what the scenario is about; the others run untouched from the first step to the last.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import editing as edit
from .fields import COUNTERS, CREATURES, PROJECTILES, SIZE, SLOTS, Fields, copy, one, stack
from .names import BOSS_FLOOR, OFFSETS, Block, Item

MAX_TIMESTEPS = 100_000
"""The game's own limit."""

Edit = Callable[[Fields, np.random.Generator, int], None]
"""Changes a state in place; gets the number of the environment among those of its scenario."""


class Scenario(NamedTuple):
    """Environments that start alike."""

    name: str
    count: int
    policies: tuple[str, ...]
    """Dealt out to the environments in turn."""
    start: Edit
    renew: Edit | None = None
    every: int = 100
    """Steps between renewals."""


class Seat(NamedTuple):
    """One environment of the suite."""

    scenario: Scenario
    number: int
    policy: str


def seats(scenarios: tuple[Scenario, ...]) -> list[Seat]:
    """One entry for each environment, in order."""
    return [
        Seat(scenario, number, scenario.policies[number % len(scenario.policies)])
        for scenario in scenarios
        for number in range(scenario.count)
    ]


def starts(worlds: Fields, places: list[Seat], rng: np.random.Generator) -> Fields:
    """The first states: each place's scenario applied to a world, going round the worlds given."""
    states = []
    number_of_worlds = len(worlds["timestep"])
    for index, place in enumerate(places):
        fields = copy(one(worlds, index % number_of_worlds))
        if index >= number_of_worlds:  # places that share a world have chances of their own
            fields["state_rng"][...] = rng.integers(0, 2**32, 2, np.uint32)
        place.scenario.start(fields, rng, place.number)
        states.append(fields)
    return stack(states)


def _untouched(fields: Fields, rng: np.random.Generator, number: int) -> None:
    pass


def _floor(fields: Fields, rng: np.random.Generator, number: int) -> None:
    floor = number % 9
    edit.grow(fields, int(rng.integers(1, 6)))
    edit.supply(fields, int(rng.integers(0, 12)))
    edit.equip(fields, int(rng.integers(0, 5)), int(rng.integers(0, 3)))
    edit.put(fields, learned_spells=rng.random(2) < 0.5, player_xp=int(rng.integers(0, 3)))
    edit.put(fields, monsters_killed=rng.integers(5, 10, 9))
    edit.set_time(fields, int(rng.integers(0, 98_000)))
    ladder = fields["up_ladders"][floor]
    cell = (int(ladder[0]), int(ladder[1])) if number % 2 else edit.free_cell(fields, floor, rng)
    edit.stand(fields, floor, cell)


def _refresh(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.heal(fields)


def _stairs(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # The arrival cell of every floor is also the way on, so that all floors are passed in a few steps.
    down = number % 2 == 0
    edit.put(fields, monsters_killed=8)
    for floor in range(9):
        up, back = tuple(fields["up_ladders"][floor]), tuple(fields["down_ladders"][floor])
        if down:
            fields["item_map"][floor, *up] = Item.ladder_down
        else:
            fields["item_map"][floor, *back] = Item.ladder_up
    floor = 0 if down else BOSS_FLOOR
    ladder = fields["up_ladders" if down else "down_ladders"][floor]
    edit.stand(fields, floor, (int(ladder[0]), int(ladder[1])))


def _arrival(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Creatures that were left behind stand exactly where the player arrives.
    floor = number % 8
    edit.grow(fields, 5)
    edit.put(fields, monsters_killed=8)
    ladder = fields["down_ladders"][floor]
    edit.stand(fields, floor, (int(ladder[0]), int(ladder[1])))
    fields["item_map"][floor, *ladder] = Item.ladder_down
    arrival = fields["up_ladders"][floor + 1]
    cell = (int(arrival[0]), int(arrival[1]))
    fields["item_map"][floor + 1, *cell] = Item.ladder_up
    for mobs in CREATURES[number % 3 :][:1]:
        edit.put_creature(fields, mobs, 0, cell, int(rng.integers(0, 3)), 9, floor=floor + 1)
        beside = (min(cell[0] + 1, SIZE - 1), max(cell[1] - 1, 0))
        edit.put_creature(fields, mobs, 1, beside, int(rng.integers(0, 3)), 3, floor=floor + 1)


def _workshop(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.stand(fields, int(rng.integers(0, 9)), (int(rng.integers(3, 45)), int(rng.integers(3, 45))))
    edit.clear(fields, 2)
    edit.grow(fields, 3)
    _restock(fields, rng, number)


def _restock(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Amounts round the costs, so that each is now just enough and now one short.
    for name in COUNTERS:
        fields[f"inventory.{name}"][...] = rng.integers(0, 5)
    if number % 4 == 0:
        edit.supply(fields, 98)
        edit.put(fields, inventory__arrows=int(rng.integers(94, 100)), inventory__torches=int(rng.integers(94, 100)))
    edit.put(fields, inventory__pickaxe=int(rng.integers(0, 5)), inventory__sword=int(rng.integers(0, 5)))
    edit.put(fields, inventory__bow=int(rng.integers(0, 2)), inventory__armour=rng.integers(0, 3, 4))
    edit.clear(fields, 2)
    blocks = [edit.ground(edit.level(fields))] * 4
    if number % 3 != 1:
        blocks[0] = Block.crafting_table
    if number % 3 != 2:
        blocks[1] = Block.furnace
    edit.around(fields, blocks)
    edit.heal(fields)


def _study(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, int(rng.integers(1, 6)))
    edit.put(fields, inventory__potions=rng.integers(0, 4, 6), inventory__books=number % 3)
    edit.put(fields, learned_spells=((number & 1) > 0, (number & 2) > 0), potion_mapping=rng.permutation(6))
    edit.put(fields, player_xp=int(rng.integers(0, 12)), player_dexterity=1, player_strength=1, player_intelligence=1)
    edit.put(fields, player_health=int(rng.integers(1, 10)), player_mana=int(rng.integers(0, 10)))
    edit.put(fields, player_energy=int(rng.integers(0, 10)), player_food=5, player_drink=5)


def _enchanting(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.stand(fields, int(rng.integers(0, 9)), (int(rng.integers(3, 45)), int(rng.integers(3, 45))))
    edit.clear(fields, 2)
    fire, ice = Block.enchantment_table_fire, Block.enchantment_table_ice
    edit.around(fields, [fire, ice, edit.ground(edit.level(fields)), (fire, ice, Block.path)[number % 3]])
    _charge(fields, rng, number)


def _charge(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, int(rng.integers(1, 6)))
    edit.equip(fields, int(rng.integers(0, 5)))
    edit.put(fields, inventory__ruby=int(rng.integers(0, 3)), inventory__sapphire=int(rng.integers(0, 3)))
    edit.put(fields, inventory__armour=rng.integers(0, 2, 4), player_mana=int(rng.integers(7, 22)))
    if number % 2:
        edit.put(fields, inventory__ruby=9, inventory__sapphire=9, player_mana=60)
    edit.put(fields, armour_enchantments=rng.integers(number // 2 % 2, 3, 4), sword_enchantment=int(rng.integers(0, 3)))


def _garden(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.stand(fields, 0, (int(rng.integers(4, 44)), int(rng.integers(4, 44))))
    edit.clear(fields, 4)
    edit.put(fields, inventory__sapling=15, player_food=3)
    row, col = edit.here(fields)
    for plant in range(2 + 3 * (number % 3)):
        cell = (row - 2 + 2 * (plant % 3), col - 2 + 2 * (plant // 3))
        if cell != (row, col):
            fields["map"][0, *cell] = Block.plant
            fields["growing_plants_positions"][plant] = cell
            fields["growing_plants_age"][plant] = rng.integers(560, 600)
            fields["growing_plants_mask"][plant] = True
    edit.around(fields, [Block.plant, Block.grass, Block.ripe_plant, Block.grass])
    for plant, (age, cell) in enumerate(((597, (row, col - 1)), (700, (row - 1, col)))):
        fields["growing_plants_positions"][8 + plant] = cell
        fields["growing_plants_age"][8 + plant] = age
        fields["growing_plants_mask"][8 + plant] = True
    if number % 4 == 3:  # they also grow while nobody is there
        edit.stand(fields, 3, edit.free_cell(fields, 3, rng))


def _tend(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.heal(fields)
    edit.put(fields, player_food=2, inventory__sapling=5)
    fields["growing_plants_age"][fields["growing_plants_mask"]] += 60


def _arena(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, int(rng.integers(1, 6)))
    edit.supply(fields, 20)
    edit.equip(fields, int(rng.integers(0, 5)), int(rng.integers(0, 3)))
    edit.put(fields, learned_spells=True)
    edit.stand(fields, number % 9, (int(rng.integers(8, 40)), int(rng.integers(8, 40))))
    edit.set_time(fields, int(rng.integers(0, 98_000)))
    _muster(fields, rng, number)


def _muster(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Every type, at home or not; some a blow from death, as a kill is what matters.
    kind = number % 8
    edit.heal(fields)
    edit.clear(fields, 5)
    floor, center = edit.level(fields), edit.here(fields)
    for _ in range(8):
        cell = edit.free_cell(fields, floor, rng, center, 5)
        fields["map"][floor, *cell] = rng.choice([Block.water, Block.lava, Block.stone, Block.gravel, Block.sand])
    for mobs, kinds in zip(CREATURES, (8, 3, 8), strict=True):
        for slot in range(SLOTS[mobs]):
            cell = edit.free_cell(fields, floor, rng, center, (1, 3, 5)[slot])
            if mobs == "ranged_mobs" and kind == 5:
                fields["map"][floor, *cell] = Block.water
            health = float(rng.choice([0.5, 3, 10, 24]))
            edit.put_creature(fields, mobs, slot, cell, kind % kinds, health, int(rng.integers(-3, 6)))
    edit.put(fields, inventory__arrows=9, player_direction=int(rng.integers(1, 5)))


def _boss(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, 5)
    edit.equip(fields, 4, number % 3)
    edit.supply(fields, 9)
    edit.put(fields, boss_progress=number % 9, boss_timesteps_to_spawn_this_round=(0, 1, 7, -5)[number // 9 % 4])
    boss = np.argwhere(fields["map"][BOSS_FLOOR] == Block.necromancer)
    row, col = (int(x) for x in (boss[0] if len(boss) else (24, 24)))
    edit.stand(fields, BOSS_FLOOR, (row + 1, col))
    edit.put(fields, player_direction=3)


def _fight_on(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.heal(fields)
    if number % 2 and edit.level(fields) == BOSS_FLOOR:  # others have to win each round by themselves
        for mobs in CREATURES:
            for slot in range(SLOTS[mobs]):
                edit.remove_slot(fields, mobs, slot, BOSS_FLOOR)
        edit.put(fields, boss_timesteps_to_spawn_this_round=int(rng.integers(-1, 3)))
        if int(fields["boss_progress"]) > 8:
            edit.put(fields, boss_progress=int(rng.integers(0, 8)))


def _site(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.stand(fields, number % 9, (int(rng.integers(4, 44)), int(rng.integers(4, 44))))
    edit.grow(fields, 3)
    _prepare(fields, rng, number)


def _prepare(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Whatever is not solid can be built on, if nothing lies there.
    edit.heal(fields)
    edit.clear(fields, 3)
    edit.supply(fields, int(rng.integers(1, 10)))
    grounds = (Block.grass, Block.sand, Block.path, Block.water, Block.lava, Block.gravel, Block.ice_shrub)
    edit.around(
        fields, rng.choice((*grounds, Block.fire_grass, Block.ice_grass, Block.darkness, Block.wood), 4).tolist()
    )
    floor, (row, col) = edit.level(fields), edit.here(fields)
    if rng.random() < 0.3 and edit.inside((row + 1, col)):
        fields["item_map"][floor, row + 1, col] = rng.choice([Item.torch, Item.ladder_down, Item.ladder_up])


def _edge(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, 5)
    edit.equip(fields, 4)
    edit.put(fields, learned_spells=True)
    _push_out(fields, rng, number)


def _push_out(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Beyond the edge the reference reads the far side (before the first row) or the edge itself (after the last).
    corner = (0, SIZE - 1)
    along = int(rng.integers(1, SIZE - 1))
    cell = ((0, along), (SIZE - 1, along), (along, 0), (along, SIZE - 1), *((r, c) for r in corner for c in corner))
    edit.stand(fields, int(rng.integers(0, 9)), cell[number % 8])
    edit.clear(fields, 6)
    edit.supply(fields, 9)
    edit.equip(fields, 4)
    edit.heal(fields)
    floor, (row, col) = edit.level(fields), edit.here(fields)
    targets = [Block.furnace, Block.crafting_table, Block.chest, Block.tree, Block.water, Block.ripe_plant, Block.path]
    for far in ((SIZE - 1, col), (row, SIZE - 1), (0, col), (row, 0)):
        if far != (row, col) and max(abs(far[0] - row), abs(far[1] - col)) > 1:
            edit.remove_creatures(fields, floor, far)
            fields["map"][floor, *far] = rng.choice(targets)
            fields["item_map"][floor, *far] = Item.none
    for slot in range(3):
        start = tuple(np.clip((row + rng.integers(-2, 3), col + rng.integers(-2, 3)), 0, SIZE - 1).tolist())
        for mobs in PROJECTILES:
            direction = OFFSETS[rng.integers(1, 5)]
            edit.put_projectile(fields, mobs, slot, start, direction, int(rng.integers(0, 8)))
    for mobs in ("melee_mobs", "ranged_mobs", "passive_mobs"):
        edit.put_creature(
            fields, mobs, 0, edit.free_cell(fields, floor, rng, (row, col), 3), int(rng.integers(0, 3)), 5
        )
    edit.put(fields, player_direction=int(rng.integers(1, 5)))


def _range(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, 1 + number % 5)
    edit.equip(fields, number % 5, number % 3)
    edit.put(fields, learned_spells=True)
    edit.stand(fields, number % 9, (int(rng.integers(8, 40)), int(rng.integers(8, 40))))
    _volley(fields, rng, number)


def _volley(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.heal(fields)
    edit.clear(fields, 5)
    edit.put(
        fields, inventory__arrows=9, armour_enchantments=rng.integers(0, 3, 4), inventory__armour=rng.integers(0, 3, 4)
    )
    edit.put(fields, is_sleeping=number % 4 == 1, is_resting=number % 4 == 2)
    floor, center = edit.level(fields), edit.here(fields)
    targets = [Block.furnace, Block.crafting_table, Block.water, Block.lava, Block.stone, Block.ice_shrub, Block.plant]
    for _ in range(12):
        fields["map"][floor, *edit.free_cell(fields, floor, rng, center, 5)] = rng.choice(targets)
    for mobs, kinds in zip(CREATURES, (8, 3, 8), strict=True):
        cell = edit.free_cell(fields, floor, rng, center, 4)
        edit.put_creature(fields, mobs, 0, cell, int(rng.integers(0, kinds)), float(rng.choice([1, 4, 12])))
    for slot in range(3):
        for mobs in PROJECTILES:
            row, col = edit.free_cell(fields, floor, rng, center, 4)
            if slot == 0:  # one that hits the player, or starts out from it
                row, col = min(max(center[0] + int(rng.integers(-2, 3)), 0), SIZE - 1), center[1]
            toward = (int(np.sign(center[0] - row)), 0) if slot == 0 else OFFSETS[rng.integers(1, 5)]
            edit.put_projectile(fields, mobs, slot, (row, col), toward, int(rng.integers(0, 8)))


def _bed(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.grow(fields, 1 + number % 5)
    edit.set_time(fields, int(rng.integers(0, 98_000)))
    edit.put(fields, player_energy=int(rng.integers(0, 9)), player_health=int(rng.integers(1, 9)))
    edit.put(fields, player_food=int(rng.integers(0, 9)), player_drink=int(rng.integers(0, 9)))
    edit.put(
        fields, player_fatigue=float(rng.integers(-10, 30)), is_sleeping=number % 4 == 0, is_resting=number % 4 == 1
    )
    if number % 2:
        edit.stand(fields, number % 9, edit.free_cell(fields, number % 9, rng))


def _tire(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.put(fields, player_energy=int(rng.integers(0, 9)), player_health=int(rng.integers(2, 9)))
    edit.put(fields, player_food=int(rng.integers(0, 9)), player_drink=int(rng.integers(0, 9)))


def _famine(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.put(fields, player_food=number % 2, player_drink=number // 2 % 2, player_energy=number // 4 % 2)
    edit.put(fields, player_hunger=24.5, player_thirst=19.5, player_fatigue=29.5, player_recover=-14.5)
    edit.put(fields, player_health=2 + number % 3, player_recover_mana=float(rng.integers(0, 31)))


def _hoard(fields: Fields, rng: np.random.Generator, number: int) -> None:
    floor = (1, 3, 4, 0, 2, 5, 6, 7, 8)[number % 9]
    edit.stand(fields, floor, (int(rng.integers(3, 45)), int(rng.integers(3, 45))))
    _refill(fields, rng, number)


def _refill(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.heal(fields)
    edit.clear(fields, 1)
    edit.around(fields, [Block.chest] * 4)
    edit.put(fields, inventory__books=0, inventory__pickaxe=0, inventory__sword=0, inventory__bow=0)
    fields["chests_opened"][edit.level(fields)] = rng.random() < 0.3


def _quarry(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.stand(fields, number % 9, (int(rng.integers(4, 44)), int(rng.integers(4, 44))))
    edit.grow(fields, 5)
    _bury(fields, rng, number)


def _bury(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Every block there is, all around, with each pickaxe.
    edit.heal(fields)
    edit.clear(fields, 3)
    edit.put(fields, inventory__pickaxe=int(rng.integers(0, 5)))
    floor, (row, col) = edit.level(fields), edit.here(fields)
    for down in range(-3, 4):
        for right in range(-3, 4):
            if (down, right) != (0, 0) and edit.inside((row + down, col + right)):
                fields["map"][floor, row + down, col + right] = rng.integers(2, 36)
    edit.around(fields, list(rng.integers(2, 36, 4)))


def _wild(fields: Fields, rng: np.random.Generator, number: int) -> None:
    # Anything that is possible at all, however unlikely: any block anywhere, any mixture of creatures.
    walkable, anything = rng.random(fields["map"].shape) < 0.6, rng.integers(2, 37, fields["map"].shape)
    fields["map"][...] = np.where(walkable, rng.choice([Block.grass, Block.path, Block.sand], walkable.shape), anything)
    fields["item_map"][...] = np.where(walkable, rng.choice(5, walkable.shape, p=(0.8, 0.05, 0.05, 0.05, 0.05)), 0)
    fields["light_map"][...] = rng.choice(np.float32([0, 0.05, 0.4, 1]), walkable.shape)
    fields["mob_map"][...] = False
    for name in COUNTERS:
        fields[f"inventory.{name}"][...] = rng.integers(0, 100)
    edit.put(fields, inventory__pickaxe=int(rng.integers(0, 5)), inventory__sword=int(rng.integers(0, 5)))
    edit.put(fields, inventory__bow=int(rng.integers(0, 2)), inventory__potions=rng.integers(0, 100, 6))
    edit.put(fields, inventory__armour=rng.integers(0, 3, 4), armour_enchantments=rng.integers(0, 3, 4))
    edit.put(fields, sword_enchantment=int(rng.integers(0, 3)), bow_enchantment=int(rng.integers(0, 3)))
    for name in ("dexterity", "strength", "intelligence"):
        fields[f"player_{name}"][...] = rng.integers(1, 6)
    edit.heal(fields)
    for name in ("health", "food", "drink", "energy", "mana"):
        fields[f"player_{name}"][...] = rng.integers(1, int(fields[f"player_{name}"]) + 1)
    for name, limit in (("hunger", 25), ("thirst", 20), ("fatigue", 30), ("recover", 25), ("recover_mana", 30)):
        fields[f"player_{name}"][...] = rng.integers(0, 8 * limit + 1) / 8
    edit.set_time(fields, int(rng.integers(0, 98_000)))
    edit.put(fields, is_sleeping=rng.random() < 0.2, is_resting=rng.random() < 0.2, player_xp=int(rng.integers(0, 5)))
    edit.put(fields, learned_spells=rng.random(2) < 0.5, potion_mapping=rng.permutation(6))
    edit.put(fields, chests_opened=rng.random(9) < 0.5, monsters_killed=rng.integers(0, 12, 9))
    edit.put(fields, achievements=rng.random(67) < 0.5, boss_progress=int(rng.integers(0, 9)))
    edit.put(
        fields, boss_timesteps_to_spawn_this_round=int(rng.integers(-3, 8)), player_direction=int(rng.integers(1, 5))
    )
    edit.put(fields, growing_plants_positions=rng.integers(0, SIZE, (10, 2)), growing_plants_mask=rng.random(10) < 0.5)
    fields["growing_plants_age"][...] = rng.integers(0, 605, 10) * fields["growing_plants_mask"]
    for ladders in ("up_ladders", "down_ladders"):
        fields[ladders][...] = rng.integers(0, SIZE, (9, 2))
    for mobs in SLOTS:
        fields[f"{mobs}.mask"][...] = False
        fields[f"{mobs}.attack_cooldown"][...] = rng.integers(-9, 6, (9, SLOTS[mobs])) if mobs in CREATURES else 0
    edit.stand(fields, int(rng.integers(0, 9)), (int(rng.integers(0, SIZE)), int(rng.integers(0, SIZE))))
    for floor in range(9):
        for mobs, kinds in zip(CREATURES, (8, 3, 8), strict=True):
            for slot in np.flatnonzero(rng.random(SLOTS[mobs]) < 0.6):
                cell = edit.free_cell(fields, floor, rng, edit.here(fields), int(rng.integers(1, 16)))
                health, cooldown = rng.integers(1, 50) / 2, int(rng.integers(-2, 6))
                edit.put_creature(fields, mobs, slot, cell, int(rng.integers(0, kinds)), health, cooldown, floor)
    for mobs in PROJECTILES:
        for slot in np.flatnonzero(rng.random(3) < 0.6):
            cell = edit.free_cell(fields, edit.level(fields), rng, edit.here(fields), 6)
            edit.put_projectile(fields, mobs, slot, cell, OFFSETS[rng.integers(1, 5)], int(rng.integers(0, 8)))


def _curfew(fields: Fields, rng: np.random.Generator, number: int) -> None:
    edit.set_time(fields, MAX_TIMESTEPS - 60 - 100 * number)


SCENARIOS = (
    Scenario("born", 24, ("random", "weighted", "seeker", "seeker"), _untouched),
    Scenario("born, healed", 12, ("seeker", "weighted"), _untouched, _refresh),
    Scenario("floor", 16, ("weighted", "seeker", "fighter", "random", "placer"), _floor),
    Scenario("floor, healed", 27, ("seeker", "fighter", "archer", "weighted"), _floor, _refresh),
    Scenario("stairs", 2, ("down", "up"), _stairs),
    Scenario("arrival", 8, ("stairs",), _arrival, _arrival, 40),
    Scenario("workshop", 16, ("crafter", "craft everything", "placer", "crafter"), _workshop, _restock, 50),
    Scenario("site", 6, ("builder",), _site, _prepare, 10),
    Scenario("study", 8, ("reader",), _study, _study, 60),
    Scenario("enchanting", 10, ("enchanter",), _enchanting, _charge, 10),
    Scenario("garden", 8, ("gardener", "seeker"), _garden, _tend, 90),
    Scenario("arena", 24, ("fighter", "archer", "fighter", "weighted"), _arena, _muster, 50),
    Scenario("boss", 18, ("boss", "boss", "fighter", "boss"), _boss, _fight_on, 20),
    Scenario("edge", 12, ("pusher",), _edge, _push_out, 25),
    Scenario("range", 9, ("archer", "idler", "weighted"), _range, _volley, 20),
    Scenario("bed", 8, ("sleeper", "sleeper", "weighted"), _bed, _tire, 150),
    Scenario("famine", 6, ("idler", "sleeper"), _famine, _famine, 250),
    Scenario("hoard", 9, ("looter",), _hoard, _refill, 15),
    Scenario("quarry", 7, ("digger", "placer"), _quarry, _bury, 25),
    Scenario("wild", 8, ("random", "weighted", "fighter", "stairs"), _wild, _wild, 40),
    Scenario("curfew", 2, ("idler", "seeker"), _curfew, _refresh),
)
