"""The engine's goals against forethought's own tests: hand-made pairs for each goal, random pairs, and played steps."""

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest
from conformance.fields import CREATURES, PROJECTILES, SLOTS, Fields, stack
from conformance.reference import flatten, unflatten
from random_states import into_engine, random_states

from craftax_native import _core
from forethought.craftax.goal_specs import goal_ids, goal_specs
from forethought.craftax.goal_table import goal_table
from forethought.craftax.success import benchmark_success

BATCH = 128
GOALS = goal_ids()
SPECS = goal_specs()
TABLE = goal_table(GOALS)
FIGHTS = np.array([spec.family in ("damage", "defeat") for spec in SPECS])
ITEMS = 5
DOWN, UP, LADDER_DOWN, LADDER_UP = 18, 19, 2, 3


@cache
def reference() -> Callable[..., np.ndarray]:
    judge = jax.jit(jax.vmap(benchmark_success))
    return lambda before, after: np.asarray(judge(unflatten(before), unflatten(after)))


def both(before: Fields, after: Fields) -> np.ndarray:
    """What the reference says of these pairs, after a check that the engine says the same."""
    expected = reference()(before, after)
    found = _core.reached(into_engine(before, TABLE), into_engine(after, TABLE))
    differing = np.argwhere(found != expected)
    assert not len(differing), [(int(env), GOALS[goal]) for env, goal in differing[:10]]
    return expected


# The labelled cases of the reference's own tests: for each goal pairs that reach it, and pairs that only resemble one.


def load(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / "tests" / "craftax" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"craftax_{name}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Labelled:
    """A pair of states that is expected to reach a goal, or not to."""

    def __init__(self, goal: int, label: str, case, reached: bool):
        self.goal, self.label, self.reached = goal, label, reached
        self.before, self.after = flatten(case.before), flatten(case.after)


def labelled() -> Iterator[Labelled]:
    cases, make = load("test_success"), load("conftest").empty_state
    for goal, spec in enumerate(SPECS):
        for reached, edits in ((True, cases.reached(spec)), (False, cases.missed(spec))):
            for label, edit in edits:
                pair = Labelled(goal, label, cases.build(edit, make), reached)
                # Some put a block's number into the map of items, which is no state of the game to the engine.
                if pair.after["item_map"].max() < ITEMS:
                    yield pair


def batches(pairs: Iterable[Labelled]) -> Iterator[list[Labelled]]:
    batch: list[Labelled] = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == BATCH:
            yield batch
            batch = []
    # The last one is filled up, as a batch of another size would be compiled again.
    if batch:
        yield batch + [batch[-1]] * (BATCH - len(batch))


def test_each_goal_is_reached_and_missed_as_by_the_reference():
    outcomes = set()
    for batch in batches(labelled()):
        result = both(stack([pair.before for pair in batch]), stack([pair.after for pair in batch]))
        for pair, flags in zip(batch, result, strict=True):
            assert flags[pair.goal] == pair.reached, (GOALS[pair.goal], pair.label)
            outcomes.add((pair.goal, pair.reached))
    assert len(outcomes) == 2 * len(GOALS)


def test_random_pairs():
    rng = np.random.default_rng(0)
    ever = np.zeros(len(GOALS), int)
    total = 16 * BATCH
    for _ in range(total // BATCH):
        before = random_states(rng, BATCH)
        ever += both(before, changed(before, rng)).sum(0)
    assert (ever > 0).all(), [goal for goal, count in zip(GOALS, ever, strict=True) if not count]
    assert (ever < total).all()


def changed(before: Fields, rng: np.random.Generator) -> Fields:
    """States that a step could lead to, and some that none does: other floors, places, achievements, creatures."""
    after = {name: value.copy() for name, value in before.items()}
    other = random_states(rng, BATCH)

    def mix(name: str, share: float) -> None:
        chosen = rng.random(after[name].shape) < share
        after[name] = np.where(chosen, other[name], after[name])

    for name in ("player_level", "player_position", "map", "item_map", "inventory.sword", "monsters_killed"):
        mix(name, 0.2)
    mix("achievements", 0.1)
    for name in CREATURES:
        for part, share in (("mask", 0.3), ("health", 0.5), ("type_id", 0.1), ("position", 0.2)):
            mix(f"{name}.{part}", share)
    return after


def test_what_holds_without_a_step():
    rng = np.random.default_rng(1)
    fields = random_states(rng, BATCH)
    np.testing.assert_array_equal(_core.holds(into_engine(fields, TABLE)), both(fields, fields))


def test_a_state_answers_for_the_goals_it_was_made_with():
    fields = random_states(np.random.default_rng(2), BATCH)
    chosen = [GOALS.index(goal) for goal in ("see_coal", "defeat_cow", "see_coal", "have_64_wood")]
    every = _core.holds(into_engine(fields, TABLE))
    np.testing.assert_array_equal(_core.holds(into_engine(fields, TABLE[chosen])), every[:, chosen])


def test_played_steps():
    """Steps of the engine, judged in passing: what was kept of the state before must be what the tests need.

    Ladders lie everywhere and creatures are about on all floors, so fights go on when a floor is entered, too.
    """
    rng = np.random.default_rng(3)
    reward, done = np.zeros(BATCH, np.float32), np.zeros(BATCH, bool)
    found = np.zeros((BATCH, len(GOALS)), bool)
    reached_on_a_new_floor = np.zeros(len(GOALS), int)
    reached = np.zeros(len(GOALS), int)
    moves = {-1: 0, 0: 0, 1: 0}
    for _ in range(8):
        state = into_engine(arena(rng), TABLE)
        before = _core.export_all(state)
        for _ in range(6):
            actions = rng.choice(np.int32([DOWN, UP, DOWN, UP, 5, 1, 2, 3, 4, 24, 26, 27]), BATCH)
            _core.step_games(state, actions, None, reward, done, reached=found)
            after = _core.export_all(state)
            expected = reference()(before, after)
            differing = np.argwhere(found != expected)
            assert not len(differing), [(int(env), GOALS[goal]) for env, goal in differing[:10]]
            climbed = after["player_level"] - before["player_level"]
            for floors in moves:
                moves[floors] += int((climbed == floors).sum())
            reached += expected.sum(0)
            # Earlier kills are remembered in flags; only fights of this step tell which creatures were compared.
            earlier = reference()(before, before)
            reached_on_a_new_floor += (expected & ~earlier & (climbed != 0)[:, None]).sum(0)
            before = after
    assert min(moves.values()) > 100
    assert reached[FIGHTS].all()
    assert reached_on_a_new_floor[FIGHTS].sum() > 100


def arena(rng: np.random.Generator) -> Fields:
    """Open floors in full light, a weak crowd around the same place on each, arrows in flight, a well-armed player."""
    fields = random_states(rng, BATCH)
    fields["map"][:] = 7
    fields["light_map"][:] = 1
    fields["item_map"] = rng.choice(np.int32([0, LADDER_DOWN, LADDER_DOWN, LADDER_UP]), fields["item_map"].shape)
    fields["monsters_killed"][:] = 8
    fields["player_health"][:] = 9
    for name in ("is_sleeping", "is_resting", "achievements"):
        fields[name][:] = False
    fields["learned_spells"][:] = True
    fields["player_position"] = rng.integers(20, 28, (BATCH, 2), dtype=np.int32)
    for name in ("down_ladders", "up_ladders"):
        fields[name] = np.repeat(fields["player_position"][:, None], 9, axis=1)
    every, floors = np.arange(BATCH)[:, None, None], np.arange(9)[None, :, None]
    for name in (*CREATURES, *PROJECTILES):
        slots = SLOTS[name]
        offset = rng.integers(-2, 3, (BATCH, 9, slots, 2), dtype=np.int32)
        # Nobody stands where the player will.
        offset[(offset == 0).all(-1)] = 0, 1
        fields[f"{name}.position"] = fields["player_position"][:, None, None] + offset
        fields[f"{name}.mask"][:] = True
        fields[f"{name}.health"][:] = 1
        if name in CREATURES:
            rows, columns = np.moveaxis(fields[f"{name}.position"], -1, 0)
            fields["mob_map"][every, floors, rows, columns] = True
    for name in PROJECTILES:
        directions = np.int32([(0, 1), (0, -1), (1, 0), (-1, 0)])
        fields[f"{name[:-1]}_directions"] = directions[rng.integers(4, size=(BATCH, 9, 3))]
    return fields


@pytest.mark.parametrize(
    "row",
    [
        *((11, 0, 1, 255), (0, 23, 1, 255), (0, 22, 1, 9), (0, 0, 1, 3), (1, 3, 1, 255), (1, 0, 3, 255)),
        *((2, 67, 1, 255), (3, 37, 1, 255), (4, 5, 1, 255), (5, 3, 1, 255), (6, 3, 1, 0), (9, 24, 1, 255)),
        (10, 0, 2, 255),
    ],
)
def test_a_row_that_is_no_goal_is_refused(row):
    with pytest.raises(ValueError, match=r"goals.*row 1"):
        _core.new_state(1, np.uint8([TABLE[0], row]))
    assert _core.new_state(1, TABLE).ndim == 1


def test_a_step_is_judged_like_the_pair_of_states_around_it():
    rng = np.random.default_rng(4)
    state = into_engine(arena(rng), TABLE)
    old = state.copy()
    reward, done = np.zeros(BATCH, np.float32), np.zeros(BATCH, bool)
    found = np.zeros((BATCH, len(GOALS)), bool)
    _core.step_games(state, rng.integers(43, size=BATCH, dtype=np.int32), None, reward, done, reached=found)
    np.testing.assert_array_equal(_core.reached(old, state), found)
    np.testing.assert_array_equal(_core.export_all(state)["timestep"], _core.export_all(old)["timestep"] + 1)
