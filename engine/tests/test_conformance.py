"""The engine plays the same game as craftax 1.6.1: every field of every state of many long games."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from conformance import names
from conformance.compare import Engine, different, mismatches
from conformance.fields import KINDS, Fields, copy
from conformance.policies import Players
from conformance.recording import Recording

from craftax_native import Games

ENCHANTED = [f"{thing} enchanted with {kind}" for thing in ("sword", "bow", "armour") for kind in ("fire", "ice")]
MINED = ("stone", "coal", "iron", "diamond", "sapphire", "ruby", "stalagmite", "chest", "furnace", "crafting_table")
PLACED_IN = ("grass", "sand", "path", "water", "lava", "fire_grass", "ice_grass", "gravel", "ice_shrub")
EVENTS = {
    "every action, awake": [f"action {name}" for name in names.ACTIONS],
    "every achievement": [f"achievement {name}" for name in names.ACHIEVEMENTS],
    "every floor": [f"step on floor {floor}" for floor in range(9)],
    "every ladder down": [f"down from floor {floor}" for floor in range(8)],
    "every ladder up": [f"up from floor {floor}" for floor in range(1, 9)],
    "every block mined": [
        *(f"block {block} to path" for block in MINED),
        *("block tree to grass", "block fire_tree to fire_grass", "block ice_shrub to ice_grass"),
    ],
    "every block placed": [
        f"block {block} to {to}" for block in PLACED_IN for to in ("crafting_table", "furnace", "stone")
    ]
    + ["torch placed"],
    "plants": [
        *("block grass to plant", "block plant to ripe_plant", "block ripe_plant to plant", "sapling planted"),
        *("sapling planted beyond the tenth", "plant ripens while the player is away"),
    ],
    "every creature": [
        f"{mobs} of type {kind}"
        for mobs, kinds in (("melee_mobs", 8), ("passive_mobs", 3), ("ranged_mobs", 8))
        for kind in range(kinds)
    ],
    "every creature hurt": [
        f"{mobs} hurt of type {kind}"
        for mobs, kinds in (("melee_mobs", 8), ("passive_mobs", 3), ("ranged_mobs", 8))
        for kind in range(kinds)
    ],
    "every creature killed": [
        f"{mobs} killed of type {kind}"
        for mobs, kinds in (("melee_mobs", 8), ("passive_mobs", 3), ("ranged_mobs", 8))
        for kind in range(kinds)
    ],
    "every attack": [f"{mobs} attack of type {kind}" for mobs in ("melee_mobs", "ranged_mobs") for kind in range(8)],
    "every projectile": [
        f"{mobs} of type {kind}" for mobs in ("mob_projectiles", "player_projectiles") for kind in range(8)
    ],
    "creatures come and go": [
        f"{mobs}_mobs {what}" for mobs in ("melee", "passive", "ranged") for what in ("appear", "despawn")
    ],
    "every potion": [f"potion of effect {effect}" for effect in range(6)],
    "books": ["fireball learned", "iceball learned", "book read with both spells known", "books in hand by do"],
    "every enchantment": [*ENCHANTED, "armour enchanted anew with fire", "armour enchanted anew with ice"],
    "chests": [
        *(f"first chest of floor {floor}" for floor in range(9)),
        *(f"{tool} {tier} found in a chest" for tool in ("pickaxe", "sword") for tier in (1, 2, 3, 4)),
        *(f"{thing} in hand by do" for thing in ("torches", "coal", "iron", "diamond", "sapphire", "ruby", "arrows")),
        "bow 1 found in a chest",
    ],
    "every attribute": [
        f"{name} {level}" for name in ("dexterity", "strength", "intelligence") for level in (2, 3, 4, 5)
    ],
    "sleep and rest": [f"{what} {name}" for name in ("sleeping", "resting") for what in ("begin", "end")]
    + ["sleeping while hurt", "resting while hurt"],
    "wants": ["food falls to nothing", "drink falls to nothing", "energy falls to nothing", "death"],
    "light": ["day", "night"],
    "the boss": ["boss wave", *(f"boss round {round_} won" for round_ in range(8))],
    "ends": ["game over"],
}
"""What the recorded games must contain, by topic."""


@pytest.mark.craftax
def test_the_engine_plays_the_same_games(recorded_games: Path) -> None:
    recording = Recording.load(recorded_games)
    assert recording.num_envs >= 200
    assert len(recording) >= 1000
    engine = Engine(recording.num_envs, recording.max_timesteps, threads=2)
    found = [str(mismatch) for mismatch in itertools.islice(mismatches(recording, engine), 10)]
    assert not found, "\n".join(found)


@pytest.mark.craftax
def test_games_in_worlds_of_the_engine_are_the_same(recorded_games: Path) -> None:
    # Here the engine makes the worlds, too, and of most only the first floor, until the end asks for the others.
    recording = Recording.load(recorded_games)
    worlds = np.array(recording.notes["worlds"], np.uint32)
    untouched = [env for env, place in enumerate(recording.places) if place.startswith("born ")]
    assert untouched == list(range(len(untouched)))
    games = Games(len(untouched), max_timesteps=recording.max_timesteps, threads=1)
    games.reset(worlds[untouched])
    for step in recording:
        assert not set(untouched) & set(step.renewed.tolist())
        reward, done = games.step(step.actions[untouched])
        np.testing.assert_array_equal(reward, step.reward[untouched], err_msg=f"reward of step {step.number}")
        np.testing.assert_array_equal(done, step.done[untouched], err_msg=f"done of step {step.number}")
        last = step
    expected = {name: value[untouched] for name, value in last.after.items()}
    differing = [f"{field} of {recording.places[env]}" for field, env in different(expected, games.export_states())]
    assert not differing, ", ".join(differing)


@pytest.mark.craftax
@pytest.mark.parametrize("topic", EVENTS)
def test_the_games_contain(recorded_games: Path, topic: str) -> None:
    with np.load(recorded_games) as file:
        coverage = json.loads(str(file["about"]))["notes"]["coverage"]
    missing = [event for event in EVENTS[topic] if not coverage.get(event)]
    assert not missing, f"never happened: {', '.join(missing)}"


class Replay:
    """Games that follow a recording exactly, but for one value that is wrong after one step."""

    def __init__(self, recording: Recording, step: int, field: str, index: tuple[int, ...], value: object) -> None:
        self._steps = iter(recording)
        self._wrong = (step, field, index, value)
        self.loaded: list[int] = []

    def load(self, env: int, fields: Fields) -> None:
        assert fields.keys() == KINDS.keys()
        self.loaded.append(env)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._step = next(self._steps)
        return self._step.reward, self._step.done

    def states(self) -> Fields:
        states = copy(self._step.after)
        step, field, index, value = self._wrong
        if self._step.number == step:
            states[field][index] = value
        return states


@pytest.fixture
def small_recording() -> Recording:
    """Two environments and three steps of nothing but numbers, the second state edited before the last step."""
    rng = np.random.default_rng(3)

    def state() -> Fields:
        return {name: rng.integers(0, 2, (2, *kind.shape)).astype(kind.dtype) for name, kind in KINDS.items()}

    states = [state() for _ in range(5)]
    recording = Recording(["one", "two"], states[0], 10)
    rewards, none = np.array([0.5, 0], np.float32), np.zeros(2, bool)
    recording.add(np.array([0, 5]), states[0], states[1], rewards, none)
    recording.add(np.array([5, 0]), states[1], states[2], rewards, none)
    states[3] = copy(states[2])
    states[3]["player_food"][1] += 7
    recording.renew(np.array([1]), states[2], states[3])
    recording.add(np.array([1, 2]), states[3], states[4], rewards, ~none)
    recording.notes["about"] = "nothing"
    return recording


def test_a_recording_comes_back_from_its_file(small_recording: Recording, tmp_path: Path) -> None:
    small_recording.save(tmp_path / "games.npz")
    loaded = Recording.load(tmp_path / "games.npz")
    assert (loaded.places, loaded.max_timesteps, loaded.notes) == (["one", "two"], 10, {"about": "nothing"})
    for step, again in zip(small_recording, loaded, strict=True):
        for part in ("before", "after"):
            for name, kind in KINDS.items():
                value = getattr(again, part)[name]
                assert value.dtype == kind.dtype
                np.testing.assert_array_equal(value, getattr(step, part)[name])
        for part in ("number", "renewed", "actions", "reward", "done"):
            np.testing.assert_array_equal(getattr(again, part), getattr(step, part))


def test_a_step_after_an_edit_starts_from_the_edited_state(small_recording: Recording) -> None:
    steps = [(step.renewed.tolist(), step.before["player_food"].tolist()) for step in small_recording]
    foods = [step.after["player_food"].tolist() for step in map(_frozen, small_recording)]
    assert [renewed for renewed, _ in steps] == [[], [], [1]]
    assert steps[1][1] == foods[0]
    assert steps[2][1] == [foods[1][0], foods[1][1] + 7]


def _frozen(step):
    return step._replace(after=copy(step.after))


@pytest.mark.parametrize("field", KINDS)
def test_a_wrong_value_of_any_field_is_reported(small_recording: Recording, field: str) -> None:
    index = (1, *(length - 1 for length in KINDS[field].shape))
    mobs, _, part = field.partition(".")
    if part in ("position", "type_id", "health"):
        small_recording = _alive(small_recording, mobs)
    expected = [copy(step.after) for step in small_recording][1][field][index].item()
    wrong = not expected if KINDS[field].dtype is np.bool_ else expected + 1
    replay = Replay(small_recording, 1, field, index, wrong)
    (mismatch,) = mismatches(small_recording, replay)
    assert (mismatch.place, mismatch.env, mismatch.step, mismatch.action) == ("two", 1, 1, 0)
    assert (mismatch.field, mismatch.index) == (field, index[1:])
    assert (mismatch.expected, mismatch.actual) == (expected, wrong)
    where = f"[{', '.join(map(str, index[1:]))}]" if len(index) > 1 else ""
    assert str(mismatch) == (
        f"two: environment 1, step 1, action noop: {field}{where} is {wrong!r}, but in the game {expected!r}"
    )
    # First both games, then the one that was wrong, then the one that was edited.
    assert replay.loaded == [0, 1, 1, 1]


def _alive(recording: Recording, mobs: str) -> Recording:
    """The same with all slots of a class taken."""
    result = Recording(
        recording.places, recording.first | {f"{mobs}.mask": np.ones_like(recording.first[f"{mobs}.mask"])}, 10
    )
    for step in recording:
        before, after = copy(step.before), copy(step.after)
        for state in (before, after):
            state[f"{mobs}.mask"][:] = True
        if len(step.renewed):
            unedited = copy(before)
            unedited["player_food"][1] -= 7
            result.renew(step.renewed, unedited, before)
        result.add(step.actions, before, after, step.reward, step.done)
    return result


@pytest.mark.parametrize("part", ["position", "type_id", "health"])
def test_what_lies_in_an_empty_slot_is_left_out(small_recording: Recording, part: str) -> None:
    masks = [step.after["melee_mobs.mask"].copy() for step in small_recording][1]
    empty = tuple(int(i) for i in np.argwhere(~masks)[0])
    index = (*empty, 0) if part == "position" else empty
    assert not list(mismatches(small_recording, Replay(small_recording, 1, f"melee_mobs.{part}", index, 9)))


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(KeyError, match="unknown policy 'lazy'; there are random, weighted, "):
        Players(["random", "lazy"], 0)


@pytest.mark.craftax
def test_the_names_are_those_of_craftax() -> None:
    constants = pytest.importorskip("craftax.craftax.constants")
    assert [block.name.lower() for block in constants.BlockType] == list(names.BLOCKS)
    assert [item.name.lower() for item in constants.ItemType] == [item.name for item in names.Item]
    assert [action.name.lower() for action in constants.Action] == list(names.ACTIONS)
    by_number = sorted(constants.Achievement, key=lambda achievement: achievement.value)
    assert [achievement.name.lower() for achievement in by_number] == list(names.ACHIEVEMENTS)
    assert [block.value for block in constants.BlockType if constants.SOLID_BLOCK_MAPPING[block.value]] == sorted(
        names.SOLID
    )
