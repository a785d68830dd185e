"""Whatever the engine is given, it answers or raises; what it was made to hold by chance, it can play and give back."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from conformance.editing import set_time
from conformance.fields import FLOORS, KINDS, SIZE, Fields, copy, one
from conformance.scenarios import SCENARIOS

from craftax_native import _core

NUM_ENVS = 3
ANY_FLOOR = 255
GOALS = np.array([[0, 0, 1, ANY_FLOOR], [3, 5, 1, ANY_FLOOR], [9, 8, 1, ANY_FLOOR]], np.uint8)
"""To have wood, to see a tree, to hurt a zombie."""
WILD = next(scenario for scenario in SCENARIOS if scenario.name == "wild")


def blank() -> Fields:
    """A game on bare ground, for edits."""
    fields = {name: np.zeros(kind.shape, kind.dtype) for name, kind in KINDS.items()}
    fields["map"][:] = 7
    for name in ("dexterity", "strength", "intelligence"):
        fields[f"player_{name}"][...] = 1
    fields["player_direction"][...] = 3
    return fields


def wild(rng: np.random.Generator) -> Fields:
    """A game that is possible but unlikely."""
    fields = blank()
    WILD.start(fields, rng, 0)
    fields["state_rng"][:] = rng.integers(0, 2**32, 2, np.uint32)
    return fields


def batch(rng: np.random.Generator, goals: np.ndarray | None = GOALS) -> np.ndarray:
    """A batch of wild games."""
    state = _core.new_state(NUM_ENVS, goals, episode_limit=100, queue_capacity=4)
    for env in range(NUM_ENVS):
        _core.import_env(state, env, wild(rng))
    return state


def play(state: np.ndarray, rng: np.random.Generator, steps: int) -> None:
    """Step games with random actions."""
    reward, done = np.zeros(NUM_ENVS, np.float32), np.zeros(NUM_ENVS, bool)
    reached = np.zeros((NUM_ENVS, len(GOALS)), bool)
    for _ in range(steps):
        actions = rng.integers(0, 43, NUM_ENVS).astype(np.int32)
        _core.step_games(state, actions, None, reward, done, reached, 1)
        assert np.isfinite(reward).all()


@pytest.mark.parametrize("seed", range(9))
def test_wild_games_go_on_and_can_be_taken_up_again_at_any_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = batch(rng)
    for _ in range(3):
        play(state, rng, 30)
        _core.check(state)
        games = _core.export_all(state)
        again = _core.new_state(NUM_ENVS, GOALS, episode_limit=100, queue_capacity=4)
        for env in range(NUM_ENVS):
            _core.import_env(again, env, one(games, env))
        for name, value in _core.export_all(again).items():
            np.testing.assert_array_equal(value, games[name], err_msg=name)
        chances = rng.bit_generator.state
        play(again, rng, 10)
        rng.bit_generator.state = chances
        play(state, rng, 10)
        games = _core.export_all(state)
        for name, value in _core.export_all(again).items():
            np.testing.assert_array_equal(value, games[name], err_msg=name)


@pytest.mark.parametrize("name", KINDS)
def test_a_field_of_another_shape_or_type_is_refused_by_name(name: str) -> None:
    state = _core.new_state(1)
    fields, kind = blank(), KINDS[name]
    before = state.copy()
    for wrong in (
        np.zeros((*kind.shape, 2), kind.dtype),
        np.zeros(kind.shape, np.float64),
        np.zeros(kind.shape, np.complex64),
        np.zeros((0,), kind.dtype),
        "text",
        None,
    ):
        with pytest.raises((TypeError, ValueError), match=name.replace(".", r"\.")):
            _core.import_env(state, 0, fields | {name: wrong})
    with pytest.raises((TypeError, ValueError, KeyError), match=name.replace(".", r"\.")):
        _core.import_env(state, 0, {other: value for other, value in fields.items() if other != name})
    np.testing.assert_array_equal(state, before)


BOUNDED = {
    "map": (-1, 37),
    "item_map": (-1, 5),
    "player_position": (-1, SIZE),
    "player_level": (-1, FLOORS),
    "player_direction": (-1, 5),
    "up_ladders": (-1, SIZE),
    "down_ladders": (-1, SIZE),
    "inventory.sword": (-1, 5),
    "inventory.pickaxe": (-1, 5),
    "inventory.armour": (-1, 3),
    "potion_mapping": (-1, 6),
    "sword_enchantment": (-1, 3),
    "armour_enchantments": (-1, 3),
    "growing_plants_positions": (-1, SIZE),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, pair in BOUNDED.items() for value in pair])
def test_a_value_out_of_range_is_refused_by_name(name: str, value: int) -> None:
    state = _core.new_state(1)
    fields = blank()
    fields[name].reshape(-1)[-1] = value
    with pytest.raises(ValueError, match=rf"{name.replace('.', chr(92) + '.')} .*{value}"):
        _core.import_env(state, 0, fields)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.dtype is np.float32])
def test_what_is_no_finite_number_is_refused_by_name(name: str) -> None:
    state = _core.new_state(1)
    for value in (np.nan, np.inf, -np.inf):
        fields = blank()
        fields[name].reshape(-1)[-1] = value
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            _core.import_env(state, 0, fields)


def _functions() -> dict[str, Callable[[np.ndarray], tuple]]:
    """Every function that takes a batch, with fitting arguments after it."""
    n, g = NUM_ENVS, len(GOALS)
    keys = np.arange(2 * n, dtype=np.uint32).reshape(n, 2)
    cells, features = np.zeros((n, 9, 11, 8), np.uint8), np.zeros((n, 51), np.float32)
    goals, actions = np.zeros(n, np.int32), np.zeros(n, np.int32)

    def flags() -> np.ndarray:
        return np.zeros(n, bool)

    return {
        "generate": lambda _: (keys, 1),
        "reset": lambda _: (keys, goals, cells, features, 1),
        "begin": lambda _: (keys, goals, cells, features, 1),
        "enqueue": lambda _: (keys, goals),
        "step": lambda _: (actions, cells, features, flags(), flags(), flags(), 1),
        "assignment": lambda _: (),
        "counts": lambda _: (),
        "check": lambda _: (),
        "step_games": lambda _: (actions, keys, np.zeros(n, np.float32), flags(), np.zeros((n, g), bool), 1),
        "observe": lambda _: (cells, features),
        "holds": lambda _: (),
        "export_env": lambda _: (1,),
        "export_all": lambda _: (),
        "import_env": lambda _: (0, blank()),
        "reached": lambda state: (state.copy(),),
    }


FUNCTIONS = _functions()


def _odd_things(rng: np.random.Generator) -> list[object]:
    """What no function takes, or not everywhere."""
    n = NUM_ENVS
    readonly = np.zeros(n, np.int32)
    readonly.flags.writeable = False
    return [
        *(None, -1, 0, 2**40, 1.5, "text", b"bytes", object(), [], {}, {"map": 3}),
        *(np.zeros(n, dtype) for dtype in (np.int8, np.int64, np.float64, np.uint32, bool, np.complex64, object)),
        *(np.zeros(shape, np.int32) for shape in ((), (0,), (n + 1,), (n, 1), (1, n), (n, 2, 2))),
        np.zeros((2, n, 2), np.uint32)[:, ::2, ::-1],
        np.zeros(2 * n, np.int32)[::2],
        np.full(n, 43, np.int32),
        np.full(n, -1, np.int32),
        readonly,
        np.frombuffer(rng.bytes(4 * n + 1), np.uint8)[1:].view(np.int32),
        rng.integers(0, 256, int(rng.integers(0, 5000)), np.uint8),
        np.zeros((n, 9, 11, 8), np.uint8, order="F"),
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_arguments_raise_and_leave_the_games_alone(name: str) -> None:
    rng = np.random.default_rng(len(name))
    state = batch(rng)
    fitting = FUNCTIONS[name](state)
    refused = 0
    for odd in _odd_things(rng):
        for place in range(len(fitting) + 1):
            given = [state.copy(), *fitting]
            given[place] = odd
            try:
                getattr(_core, name)(*given)
            except (TypeError, ValueError):
                refused += 1
                if place:
                    np.testing.assert_array_equal(given[0], state)
    assert refused
    with pytest.raises(TypeError):
        getattr(_core, name)(*fitting, *(None,) * 20)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bytes_that_are_no_batch_are_refused(name: str) -> None:
    rng = np.random.default_rng(1)
    state = batch(rng)
    fitting = FUNCTIONS[name](state)
    foreign = [
        np.zeros(0, np.uint8),
        np.zeros(10, np.uint8),
        np.zeros_like(state),
        rng.integers(0, 256, len(state), np.uint8),
        state[:-1].copy(),
        state[: len(state) // 2].copy(),
        np.concatenate([state, state]),
    ]
    for wrong in foreign:
        with pytest.raises(ValueError, match="state is not a batch of games"):
            getattr(_core, name)(wrong, *fitting)


@pytest.mark.parametrize("seed", range(12))
def test_damaged_bytes_are_refused_or_harmless(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = batch(rng)
    if seed % 3 == 1:
        _core.reset(state, *FUNCTIONS["reset"](state))
    if seed % 3 == 2:
        _core.begin(state, *FUNCTIONS["begin"](state))
    refused = 0
    for trial in range(40):
        damaged = state.copy()
        header = trial % 2 == 0
        where = rng.integers(0, 200 if header else len(state), int(rng.integers(1, 9)))
        damaged[where] = rng.integers(0, 256, len(where), np.uint8)
        try:
            _core.check(damaged)
        except ValueError:
            refused += 1
            continue
        # What passes the check may be played on, however strange it is.
        for name in itertools.chain(FUNCTIONS, FUNCTIONS):
            try:
                getattr(_core, name)(damaged, *FUNCTIONS[name](damaged))
            except ValueError:
                assert name in ("step", "enqueue", "step_games", "reached", "begin"), name
    assert refused


def test_impossible_numbers_of_games_are_refused() -> None:
    for num_envs in (-1, 0, 2**24 + 1, 2**62):
        with pytest.raises(ValueError, match="num_envs"):
            _core.new_state(num_envs)
    for limit in (-1, 0, 2**40):
        with pytest.raises(ValueError, match="episode_limit"):
            _core.new_state(1, episode_limit=limit)
    for capacity in (-1, 2**40):
        with pytest.raises(ValueError, match="queue_capacity"):
            _core.new_state(1, queue_capacity=capacity)
    for goals in (np.full((1, 4), 255, np.uint8), np.zeros((2, 3), np.uint8), np.zeros((2, 4), np.int32)):
        with pytest.raises(ValueError, match="goals"):
            _core.new_state(1, goals)


def test_the_light_of_the_start_may_be_any() -> None:
    fields = copy(blank())
    set_time(fields, 12345)
    state = _core.new_state(1)
    _core.import_env(state, 0, fields)
    assert _core.export_env(state, 0)["light_level"] == fields["light_level"]
