"""Every benchmark goal, both ways: reached where it should be, not reached in the trap cases."""

from collections.abc import Callable, Iterator

import jax
import numpy as np
import pytest
from craftax.craftax.constants import Achievement, BlockType
from craftax.craftax.craftax_state import EnvState, Mobs

from forethought.craftax.goal_specs import GoalSpec, goal_ids, goal_specs
from forethought.craftax.success import benchmark_success, holds_at_start, missed_passive_kill

GOALS = goal_ids()
SPECS = dict(zip(GOALS, goal_specs(), strict=True))
TORCH, LADDER_DOWN, LADDER_UP = 1, 2, 3

# Written out by hand, apart from the tables of the code under test.
PASSIVE = {"cow": 0, "bat": 1, "snail": 2}
MELEE = {
    "zombie": 0,
    "gnome_warrior": 1,
    "orc_soldier": 2,
    "lizard": 3,
    "knight": 4,
    "troll": 5,
    "pigman": 6,
    "frost_troll": 7,
}
RANGED = {
    "skeleton": 0,
    "gnome_archer": 1,
    "orc_mage": 2,
    "kobold": 3,
    "archer": 4,
    "deep_thing": 5,
    "fire_elemental": 6,
    "ice_elemental": 7,
}
CREATURES = {
    **{name: ("passive_mobs", kind) for name, kind in PASSIVE.items()},
    **{name: ("melee_mobs", kind) for name, kind in MELEE.items()},
    **{name: ("ranged_mobs", kind) for name, kind in RANGED.items()},
}
FLAGS = {name: f"EAT_{name}" if name in PASSIVE else f"DEFEAT_{name}" for name in CREATURES} | {
    "orc_soldier": "DEFEAT_ORC_SOLIDER"
}
BLOCKS = {
    "mossy_wall": [19],
    "fire_enchantment_table": [30],
    "ice_enchantment_table": [31],
    "grave": [33, 34, 35],
}
FIELDS = {"torch": "torches", "arrow": "arrows", "book": "books"}
ARMOUR = {"chestplate": 1, "leggings": 2, "boots": 3}
COUNTED = ("have", "obtain", "attribute", "reach", "kill")


class Case:
    """Two states around a step, to be edited in place; they start out equal."""

    def __init__(self, make: Callable[[], EnvState]):
        self.before = make()
        self.after = make()

    @property
    def both(self) -> tuple[EnvState, EnvState]:
        return self.before, self.after

    def player(self, row: int, column: int, floor: int = 0) -> None:
        for state in self.both:
            state.player_position[:] = row, column
            state.player_level[...] = floor

    def creature(self, name: str, row: int, column: int, *, floor: int = 0, slot: int = 1, alive=True, health=5.0):
        mobs_field, kind = CREATURES[name]
        for state in self.both:
            put(getattr(state, mobs_field), kind, row, column, floor, slot, alive, health)

    def slot(self, name: str, floor: int = 0, slot: int = 1) -> Callable[..., None]:
        """Give a function that edits one field of a creature's slot after the step."""
        mobs = getattr(self.after, CREATURES[name][0])

        def edit(**values):
            for field, value in values.items():
                getattr(mobs, field)[floor, slot] = value

        return edit


def put(mobs: Mobs, kind: int, row: int, column: int, floor: int, slot: int, alive: bool, health: float) -> None:
    mobs.position[floor, slot] = row, column
    mobs.type_id[floor, slot] = kind
    mobs.mask[floor, slot] = alive
    mobs.health[floor, slot] = health


def flag(state: EnvState, name: str) -> None:
    state.achievements[Achievement[name.upper()].value] = True


def block_ids(thing: str) -> list[int]:
    return BLOCKS.get(thing) or [BlockType[thing.upper()].value]


def set_quantity(state: EnvState, spec: GoalSpec, value: int) -> None:
    if spec.family == "have":
        getattr(state.inventory, FIELDS.get(spec.thing, spec.thing))[...] = value
    elif spec.family == "attribute":
        getattr(state, f"player_{spec.thing}")[...] = value
    elif spec.family == "reach":
        state.player_level[...] = value
    elif spec.family == "kill":
        state.monsters_killed[spec.floor] = value
    elif spec.thing in ARMOUR:
        state.inventory.armour[ARMOUR[spec.thing]] = value
    elif spec.thing == "armour":
        state.inventory.armour[:] = value
    else:
        getattr(state.inventory, spec.thing)[...] = value


def set_everything(state: EnvState) -> None:
    """Reach every goal that compares a number with a threshold."""
    inventory = state.inventory
    materials = ("wood", "stone", "coal", "iron", "diamond", "ruby", "sapphire", "sapling")
    for field in (*materials, "arrows", "torches", "books"):
        getattr(inventory, field)[...] = 99
    inventory.pickaxe[...] = inventory.sword[...] = 4
    inventory.bow[...] = 1
    inventory.armour[:] = 2
    state.player_dexterity[...] = state.player_strength[...] = state.player_intelligence[...] = 5
    state.player_level[...] = 8
    state.monsters_killed[:] = 99


Build = Callable[[Case], None]


def reached(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    """Give labelled edits after which the goal is reached."""
    if spec.family in COUNTED:
        yield "exactly enough", lambda case: set_quantity(case.after, spec, spec.amount)
        yield "more than enough", lambda case: set_everything(case.after)
        if spec.thing == "armour":
            for slot in range(4):

                def one_piece(case, slot=slot):
                    case.after.inventory.armour[slot] = spec.amount

                yield f"one piece in slot {slot}", one_piece
    elif spec.family == "enchant":
        element, piece = spec.thing.split("_")
        for slot in range(4 if piece == "armour" else 1):
            # The game may enchant an empty armour slot, and the player cannot choose: it counts.
            yield f"slot {slot}", lambda case, slot=slot: enchant(case.after, element, piece, slot)
    elif spec.family == "place":
        yield (
            "flag",
            lambda case: flag(case.after, f"PLACE_{'PLANT' if spec.thing == 'sapling' else spec.thing}"),
        )
    elif spec.family in ("see", "adjacent"):
        yield from reached_nearby(spec)
    else:
        yield from reached_fights(spec)


def missed(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    """Give labelled edits after which the goal is not reached, though something resembles it."""
    yield "nothing", lambda case: None
    if spec.family in COUNTED:

        def all_else(case):
            for state in case.both:
                set_everything(state)
                set_quantity(state, spec, spec.amount - 1)

        yield "one short, everything else in plenty", all_else
        yield "enough before the step only", lambda case: set_quantity(case.before, spec, spec.amount)
    elif spec.family == "enchant":
        element, piece = spec.thing.split("_")

        def the_others(case):
            for other_element in ("fire", "ice"):
                for other_piece in ("sword", "bow", "armour"):
                    if (other_element, other_piece) != (element, piece) and (
                        other_element == element or other_piece == piece
                    ):
                        for slot in range(4):
                            enchant(case.after, other_element, other_piece, slot)

        yield "other element or other piece", the_others
    elif spec.family == "place":

        def block_only(case):
            case.after.map[0, 23:26, 23:26] = [[11, 12, 15]] * 3

        yield "block stands there, not placed", block_only
        for name in {"table": "table", "furnace": "furnace", "sapling": "plant"}.items():
            if name[0] != spec.thing:
                yield f"placed {name[1]}", lambda case, name=name: flag(case.after, f"PLACE_{name[1]}")
        yield "placed a stone", lambda case: flag(case.after, "PLACE_STONE")
    elif spec.family in ("see", "adjacent"):
        yield from missed_nearby(spec)
    else:
        yield from missed_fights(spec)


def enchant(state: EnvState, element: str, piece: str, slot: int) -> None:
    value = {"fire": 1, "ice": 2}[element]
    if piece == "armour":
        state.armour_enchantments[slot] = value
    else:
        getattr(state, f"{piece}_enchantment")[...] = value


# What can be near the player: blocks, items, creatures.


def lay(case: Case, spec: GoalSpec, row: int, column: int, *, floor: int | None = None, variant: int = 0) -> None:
    """Put the thing the goal names on a cell of the player's floor, or of another."""
    home = spec.floor or 0
    floor = home if floor is None else floor
    for state in case.both:
        if spec.thing in CREATURES:
            mobs_field, kind = CREATURES[spec.thing]
            mobs = getattr(state, mobs_field)
            put(mobs, kind, row, column, floor, variant % mobs.mask.shape[1], True, 5.0)
        elif spec.thing in ("ladder_down", "torch"):
            state.item_map[floor, row, column] = LADDER_DOWN if spec.thing == "ladder_down" else TORCH
        else:
            ids = block_ids(spec.thing)
            state.map[floor, row, column] = ids[variant % len(ids)]


def stand(case: Case, spec: GoalSpec, row: int = 24, column: int = 24) -> None:
    case.player(row, column, spec.floor or 0)


def light(case: Case, spec: GoalSpec, value: float) -> None:
    for state in case.both:
        state.light_map[spec.floor or 0] = value


def scene(spec: GoalSpec, player: tuple[int, int], cell: tuple[int, int], brightness: float = 1.0, **options) -> Build:
    def build(case: Case) -> None:
        stand(case, spec, *player)
        light(case, spec, brightness)
        lay(case, spec, *cell, **options)

    return build


CROSS = ((23, 24), (25, 24), (24, 23), (24, 25))


def reached_nearby(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    if spec.family == "adjacent":
        for variant, cell in enumerate(CROSS):
            yield f"beside, {cell}", scene(spec, (24, 24), cell, variant=variant)
        yield "beside, in the dark", scene(spec, (24, 24), (24, 25), brightness=0.0)
        yield "north-west corner", scene(spec, (0, 0), (0, 1))
        yield "south-east corner", scene(spec, (47, 47), (46, 47))
        return
    corners = ((20, 19), (20, 29), (28, 19), (28, 29))
    for variant, cell in enumerate(corners):
        yield f"window corner {cell}", scene(spec, (24, 24), cell, variant=variant)
    yield "own cell", scene(spec, (24, 24), (24, 24))
    yield "barely lit", scene(spec, (24, 24), (22, 24), brightness=0.0501)
    yield "north-west corner of the map", scene(spec, (0, 0), (4, 5))
    yield "south-east corner of the map", scene(spec, (47, 47), (43, 42))
    yield "own cell in the corner", scene(spec, (47, 47), (47, 47))


def missed_nearby(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    if spec.family == "adjacent":
        yield "own cell", scene(spec, (24, 24), (24, 24))
        for cell in ((23, 23), (25, 25), (22, 24), (24, 26)):
            yield f"not beside, {cell}", scene(spec, (24, 24), cell)
        for player, far in (((0, 0), ((47, 0), (0, 47), (0, 0))), ((47, 47), ((0, 47), (47, 0), (47, 47)))):
            for cell in far:
                yield f"wrapped or clamped, {player} to {cell}", scene(spec, player, cell)
        near = (24, 25)
    else:
        for cell in ((19, 24), (29, 24), (24, 18), (24, 30)):
            yield f"outside the window, {cell}", scene(spec, (24, 24), cell)
        yield "in the dark", scene(spec, (24, 24), (24, 25), brightness=0.05)
        for player, far in (
            ((0, 0), ((47, 47), (0, 47), (47, 0), (5, 0), (0, 6), (8, 10))),
            ((47, 47), ((0, 0), (0, 47), (47, 0), (42, 47), (47, 41), (39, 37))),
        ):
            for cell in far:
                yield f"wrapped or beyond the window, {player} to {cell}", scene(spec, player, cell)
        near = (22, 23)

    home = spec.floor or 0
    yield "on the floor below", scene(spec, (24, 24), near, floor=home + 1)
    if spec.thing == "ladder_down":

        def other_floor(case):
            for floor in range(8):
                if floor != home:
                    lay(case, spec, *near, floor=floor)
            case.player(24, 24, (home + 1) % 8)

        yield "the ladder of another floor", other_floor
        for item in (TORCH, LADDER_UP):

            def other_item(case, item=item):
                stand(case, spec)
                case.after.item_map[home, near[0], near[1]] = item

            yield f"item {item}", other_item

        def overwritten(case):
            stand(case, spec)
            case.after.down_ladders[home] = near

        yield "recorded, but not in the world", overwritten
    elif spec.thing == "torch":
        for item in (LADDER_DOWN, LADDER_UP):

            def not_a_torch(case, item=item):
                case.after.item_map[0, near[0], near[1]] = item

            yield f"item {item}", not_a_torch
    elif spec.thing in CREATURES:
        mobs_field, kind = CREATURES[spec.thing]

        def dead(case):
            for slot in range(2):
                case.creature(spec.thing, *near, slot=slot, alive=False)

        yield "dead slot", dead

        def gone(case):
            case.creature(spec.thing, *near)
            case.slot(spec.thing)(mask=False)

        yield "gone after the step", gone

        def others(case):
            for offset, (field, slots) in enumerate((("passive_mobs", 3), ("melee_mobs", 3), ("ranged_mobs", 2))):
                same_class = field == mobs_field
                for slot in range(slots):
                    other = (kind + 1 + slot) % (3 if field == "passive_mobs" else 8) if same_class else kind
                    if same_class and other == kind:
                        continue
                    put(getattr(case.after, field), other, *near, 0, slot, True, 5.0 + offset)

        yield "other types, and the same type of other classes", others

        def projectiles(case):
            for field in ("mob_projectiles", "player_projectiles"):
                put(getattr(case.after, field), kind, *near, 0, 0, True, 1.0)

        yield "projectiles", projectiles
    else:
        for name, other in (("item", TORCH), ("item", LADDER_DOWN), ("item", block_ids(spec.thing)[0])):

            def item(case, other=other):
                case.after.item_map[0, near[0], near[1]] = other

            yield f"{name} {other}", item
        if spec.family == "see":

            def every_other_block(case):
                others = [n for n in range(37) if n not in block_ids(spec.thing)]
                case.after.map[0, 20:29, 19:30] = np.resize(others, (9, 11))

            yield "every other block", every_other_block


# Fights. Floor 3 stands for any floor: types are tested, not floors.


def fight(name: str, then: Callable[[Case, Callable[..., None]], None], **options) -> Build:
    def build(case: Case) -> None:
        case.player(24, 24, 3)
        case.creature(name, 24, 25, floor=3, **options)
        then(case, case.slot(name, 3))

    return build


def reached_fights(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    name = spec.thing
    yield (
        "killed, flag set",
        fight(name, lambda case, slot: (slot(mask=False, health=-1.0), flag(case.after, FLAGS[name]))),
    )
    yield (
        "killed, flag set, slot filled again",
        fight(name, lambda case, slot: (slot(position=(30, 30)), flag(case.after, FLAGS[name]))),
    )
    if name in PASSIVE:
        yield "killed by a projectile", fight(name, lambda case, slot: slot(mask=False, health=0.0))
    if spec.family == "damage":
        yield "lost a little", fight(name, lambda case, slot: slot(health=4.9))
        yield "lost a little and vanished", fight(name, lambda case, slot: slot(health=4.9, mask=False))
    else:
        yield "killed earlier", lambda case: [flag(state, FLAGS[name]) for state in case.both]


def missed_fights(spec: GoalSpec) -> Iterator[tuple[str, Build]]:
    name = spec.thing
    mobs_field, kind = CREATURES[name]
    other = (kind + 1) % (3 if name in PASSIVE else 8)
    yield "hit without effect", fight(name, lambda case, slot: slot(position=(24, 26)))
    yield "vanished far away", fight(name, lambda case, slot: slot(mask=False, position=(24, 39)))
    yield (
        "empty slot changes",
        fight(name, lambda case, slot: slot(health=-3.0, position=(0, 0)), alive=False),
    )
    yield "empty slot filled", fight(name, lambda case, slot: slot(mask=True, health=1.0), alive=False)
    yield "healed", fight(name, lambda case, slot: slot(health=9.0))
    yield "another takes its place", fight(name, lambda case, slot: slot(type_id=other, health=1.0))

    def other_type(case, slot):
        for state in case.both:
            getattr(state, mobs_field).type_id[3, 1] = other
        slot(mask=False, health=-1.0)

    yield "another type is killed", fight(name, other_type)

    def other_class(case):
        case.player(24, 24, 3)
        for field in ("passive_mobs", "melee_mobs", "ranged_mobs"):
            if field != mobs_field:
                for state, alive, health in ((case.before, True, 5.0), (case.after, False, -1.0)):
                    put(getattr(state, field), kind, 24, 25, 3, 1, alive, health)

    yield "the same type of another class is killed", other_class

    def left_behind(case, slot):
        slot(mask=False, health=-1.0)
        case.after.player_level[...] = 4

    yield "on a floor the player left", fight(name, left_behind)

    def other_flags(case):
        for flagged in set(FLAGS.values()) - {FLAGS[name]}:
            flag(case.after, flagged)
        case.after.monsters_killed[:] = 50

    yield "all others killed", other_flags
    if spec.family == "damage":
        yield "killed in an earlier step", lambda case: [flag(state, FLAGS[name]) for state in case.both]
    else:
        yield "wounded", fight(name, lambda case, slot: slot(health=0.1))
    if name in PASSIVE:
        # The known miss: nothing in the two states tells this from a creature that was never hit.
        yield (
            "killed by a projectile, slot filled again",
            fight(name, lambda case, slot: slot(position=(30, 30))),
        )


@pytest.fixture(scope="module")
def judge() -> Callable[[EnvState, EnvState], np.ndarray]:
    judged = jax.jit(benchmark_success)
    return lambda before, after: np.asarray(judged(before, after))


def implied(spec: GoalSpec) -> set[str]:
    """Give the goals of the same family that hold whenever this one just does."""
    return {
        goal
        for goal, other in SPECS.items()
        if (other.family, other.thing, other.floor) == (spec.family, spec.thing, spec.floor)
        and other.amount <= spec.amount
    }


def build(case_edit: Build, make) -> Case:
    case = Case(make)
    case_edit(case)
    return case


def test_all_256_goals_are_covered_both_ways():
    assert len(GOALS) == len(set(SPECS.values())) == 256
    for spec in SPECS.values():
        assert len(list(reached(spec))) >= 1
        assert len(list(missed(spec))) >= 2


@pytest.mark.parametrize("goal", GOALS)
def test_goal_is_reached(goal, judge, make_state):
    spec = SPECS[goal]
    for label, edit in reached(spec):
        case = build(edit, make_state)
        result = judge(*case.both)
        assert result[GOALS.index(goal)], label
        if label != "more than enough" and spec.thing != "armour" and spec.family != "obtain":
            family = {g for g, s in SPECS.items() if s.family == spec.family and result[GOALS.index(g)]}
            assert family == implied(spec), label


@pytest.mark.parametrize("goal", GOALS)
def test_goal_is_not_reached(goal, judge, make_state):
    for label, edit in missed(SPECS[goal]):
        result = judge(*build(edit, make_state).both)
        assert not result[GOALS.index(goal)], label


@pytest.mark.parametrize("goal", GOALS)
def test_goal_counts_on_the_step_of_death_and_on_the_last_step(goal, judge, make_state):
    _, edit = next(reached(SPECS[goal]))
    case = build(edit, make_state)
    case.after.player_health[...] = -1.0
    case.after.timestep[...] = 4096
    assert judge(*case.both)[GOALS.index(goal)]


def test_a_fresh_state_reaches_nothing(make_state):
    assert not np.asarray(jax.jit(holds_at_start)(make_state())).any()


def test_what_holds_at_the_start_excludes_events(judge, make_state):
    case = Case(make_state)
    case.after.map[0, 24, 26] = BlockType.COAL.value
    flag(case.after, "DEFEAT_ZOMBIE")
    held = np.asarray(jax.jit(holds_at_start)(case.after))
    assert {GOALS[n] for n in np.flatnonzero(held)} == {"see_coal", "defeat_zombie"}
    assert judge(*case.both)[GOALS.index("damage_zombie")]


def test_each_block_beside_the_player_reaches_its_own_goal_only(judge, make_state):
    names = {
        block: goal
        for goal, spec in SPECS.items()
        if spec.family == "adjacent" and spec.thing not in CREATURES and spec.thing not in ("torch", "ladder_down")
        for block in block_ids(spec.thing)
    }
    adjacent = {goal for goal, spec in SPECS.items() if spec.family == "adjacent"}
    for block in range(37):
        case = Case(make_state)
        for row, column in CROSS:
            case.after.map[0, row, column] = block
        result = judge(*case.both)
        found = {GOALS[n] for n in np.flatnonzero(result)} & adjacent
        assert found == ({names[block]} if block in names else set()), BlockType(block)


def test_floor_0_has_a_head_start_that_counts_for_nothing(judge, make_state):
    case = Case(make_state)
    assert case.after.monsters_killed[0] == 10
    assert not any(judge(*case.both)[n] for n, goal in enumerate(GOALS) if goal.startswith("kill_"))


def test_a_batch_equals_its_members(judge, make_state):
    edits = [next(reached(SPECS[goal]))[1] for goal in GOALS[::32]]
    cases = [build(edit, make_state) for edit in edits]
    stack = [
        jax.tree.map(lambda *leaves: np.stack(leaves), *side) for side in zip(*(c.both for c in cases), strict=True)
    ]
    together = np.asarray(jax.jit(jax.vmap(benchmark_success))(*stack))
    np.testing.assert_array_equal(together, [judge(*case.both) for case in cases])


@pytest.mark.parametrize("name", PASSIVE)
def test_missed_kills_are_counted(name, make_state):
    count = jax.jit(missed_passive_kill)
    place = list(PASSIVE).index(name)

    def missed_kinds(then, **options):
        return list(np.flatnonzero(np.asarray(count(*build(fight(name, then, **options), make_state).both))))

    assert missed_kinds(lambda case, slot: slot(position=(30, 30))) == [place]
    assert missed_kinds(lambda case, slot: slot(position=(24, 26))) == []
    assert missed_kinds(lambda case, slot: slot(mask=False, health=-1.0)) == []
    assert missed_kinds(lambda case, slot: (slot(position=(30, 30)), flag(case.after, FLAGS[name]))) == []
    assert missed_kinds(lambda case, slot: slot(position=(30, 30)), alive=False) == []

    def vanished_and_replaced(case, slot):
        for state in case.both:
            state.player_position[:] = 24, 12
        slot(position=(30, 12))

    assert missed_kinds(vanished_and_replaced) == []


# Real states: short random lives, then the same worlds seen from random places.

SIZE = 48


def slow_nearby(state: EnvState) -> set[str]:
    """Find the "see" and "adjacent" goals that hold, cell by cell in plain Python."""
    floor = int(state.player_level)
    row, column = (int(n) for n in state.player_position)
    creatures: dict[tuple[int, int], list[str]] = {}
    for name, (field, kind) in CREATURES.items():
        mobs = getattr(state, field)
        for slot in range(mobs.mask.shape[1]):
            if mobs.mask[floor, slot] and mobs.type_id[floor, slot] == kind:
                creatures.setdefault(tuple(int(n) for n in mobs.position[floor, slot]), []).append(name)

    names = {}
    for spec in SPECS.values():
        if spec.family in ("see", "adjacent") and spec.thing not in (*CREATURES, "torch", "ladder_down"):
            names.update(dict.fromkeys(block_ids(spec.thing), spec.thing))

    def things(r: int, c: int) -> list[str]:
        item = int(state.item_map[floor, r, c])
        return [
            *creatures.get((r, c), []),
            *([names[int(state.map[floor, r, c])]] if int(state.map[floor, r, c]) in names else []),
            *(["torch"] if item == TORCH else []),
            *([f"ladder_down_floor_{floor}"] if item == LADDER_DOWN else []),
        ]

    found = set()
    for r in range(max(row - 4, 0), min(row + 4, SIZE - 1) + 1):
        for c in range(max(column - 5, 0), min(column + 5, SIZE - 1) + 1):
            if state.light_map[floor, r, c] > 0.05:
                found |= {f"see_{thing}" for thing in things(r, c)}
            if abs(r - row) + abs(c - column) == 1:
                found |= {f"adjacent_to_{thing}" for thing in things(r, c)}
    return found & set(GOALS)


@pytest.mark.craftax
def test_real_states_agree_with_a_slow_search(craftax_worlds, craftax_step_4, judge):
    rng = np.random.default_rng(11)
    states = craftax_worlds
    ever = set()
    for n in range(100):
        for world in range(4):
            state = jax.tree.map(lambda leaf, world=world: np.array(leaf[world]), states)
            if n % 2:
                move_somewhere(state, rng)
            expected = slow_nearby(state)
            found = {GOALS[g] for g in np.flatnonzero(judge(state, state))}
            assert {goal for goal in found if SPECS[goal].family in ("see", "adjacent")} == expected
            ever |= expected
        states = craftax_step_4(jax.random.split(jax.random.PRNGKey(n), 4), states, rng.integers(43, size=4))
    assert len(ever) > 60


def move_somewhere(state: EnvState, rng: np.random.Generator) -> None:
    """Take the player to a random floor, often to the rim, and put some creatures around."""
    floor = int(rng.integers(9))
    state.player_level[...] = floor
    state.player_position[:] = rng.choice([0, 1, 3, 4, 5, 43, 44, 47, *range(48)], size=2)
    for field, kinds in (("passive_mobs", 3), ("melee_mobs", 8), ("ranged_mobs", 8)):
        mobs = getattr(state, field)
        slots = mobs.mask.shape[1]
        mobs.position[floor] = np.clip(state.player_position + rng.integers(-6, 7, (slots, 2)), 0, SIZE - 1)
        mobs.type_id[floor] = rng.integers(kinds, size=slots)
        mobs.mask[floor] = rng.random(slots) < 0.6


@pytest.mark.craftax
def test_real_fights(craftax_step_4, judge, make_state):
    """A cow and a zombie struck by hand, a cow by an arrow, a fire elemental by a fireball that cannot hurt it."""

    def world(name: str, column: int, health: float) -> EnvState:
        case = Case(make_state)
        case.creature(name, 24, column, health=health)
        state = case.before
        state.mob_map[0, 24, column] = True
        state.map[0, 23, 24:30] = state.map[0, 25, 24:30] = state.map[0, 24, column + 1] = BlockType.STONE.value
        state.player_direction[...] = 2
        return state

    def shot(state: EnvState, kind: int) -> EnvState:
        put(state.player_projectiles, kind, 24, 26, 0, 0, True, 1.0)
        state.player_projectile_directions[0, 0] = 0, 1
        return state

    worlds = [
        world("cow", 25, 1.0),
        world("zombie", 25, 1.0),
        shot(world("cow", 27, 1.0), 4),
        shot(world("fire_elemental", 27, 1.0), 2),
    ]
    before = jax.tree.map(lambda *leaves: np.stack(leaves), *worlds)
    after = craftax_step_4(jax.random.split(jax.random.PRNGKey(0), 4), before, np.array([5, 5, 0, 0]))
    fights = {goal for goal, spec in SPECS.items() if spec.family in ("damage", "defeat")}

    def won(world: int) -> set[str]:
        pair = (jax.tree.map(lambda leaf: leaf[world], side) for side in (before, after))
        return {GOALS[g] for g in np.flatnonzero(judge(*pair))} & fights

    assert won(0) == {"damage_cow", "defeat_cow"}
    assert won(1) == {"damage_zombie", "defeat_zombie"}
    assert won(2) == {"damage_cow", "defeat_cow"}
    assert not after.achievements[2, Achievement.EAT_COW.value]
    assert won(3) == set()
    assert not after.player_projectiles.mask[3, 0, 0]
