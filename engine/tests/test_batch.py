"""The batch: its arguments, threads and processes, copies, restarts and the queue."""

import doctest
import io
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import craftax_native
import craftax_native.games
from craftax_native import Games, _core

N = 37  # not a multiple of the lanes
LIMIT = 11
CAPACITY = 50
# Codes of: have one wood, be on floor 8, and dexterity of at least one, which always holds.
GOALS = np.array([[0, 0, 1, 255], [0, 21, 8, 255], [0, 18, 1, 255]], np.uint8)
WOOD, NEVER, ALWAYS = range(3)


def keys(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (count, 2), dtype=np.uint32)


def full(count: int, value: int) -> np.ndarray:
    return np.full(count, value, np.int32)


class Played:
    """A batch of episodes with the arrays that its steps write to."""

    def __init__(self, start: str, goals: np.ndarray | None = None, seed: int = 0, threads: int = 1):
        self.threads = threads
        self.state = _core.new_state(N, GOALS, LIMIT, CAPACITY)
        self.seen = craftax_native.new_observations(N)
        self.flags = np.zeros((3, N), bool)
        goals = full(N, NEVER) if goals is None else goals
        getattr(_core, start)(self.state, keys(N, seed), goals, *self.seen, threads)

    def step(self, actions: np.ndarray) -> "Played":
        _core.step(self.state, actions, *self.seen, *self.flags, self.threads)
        return self

    def kill(self, *which: int) -> "Played":
        for env in which:
            fields = _core.export_env(self.state, env)
            _core.import_env(self.state, env, fields | {"player_health": np.array(-50, np.float32)})
        return self

    @property
    def assignment(self) -> Any:
        return _core.assignment(self.state)

    def outcome(self) -> tuple[bytes, ...]:
        return tuple(array.tobytes() for array in (self.state, *self.seen, self.flags))


def random_actions(steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 43, (steps, N), dtype=np.int32)


def arguments() -> dict[str, Any]:
    cells, features = craftax_native.new_observations(N)
    state = Played("begin").state
    success, terminated, truncated = np.zeros((3, N), bool)
    return {
        "state": state,
        "actions": full(N, 0),
        "cells": cells,
        "features": features,
        "success": success,
        "terminated": terminated,
        "truncated": truncated,
        "threads": 1,
    }


def changed(array: np.ndarray, index: int, value: int) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def with_a_wrong_goal(_: np.ndarray, where: str) -> np.ndarray:
    """A state whose last goal, begun or queued, is the one after the last: it lies where two states differ."""
    states = []
    for goal in (NEVER, ALWAYS):
        played = Played("begin", changed(full(N, NEVER), N - 1, goal) if where == "begin" else None)
        if where == "enqueue":
            _core.enqueue(played.state, keys(1), full(1, goal))
        states.append(played.state)
    (place,) = np.flatnonzero((states[0] != states[1]) & (states[1] == ALWAYS))
    return changed(states[1], place, len(GOALS))


def with_the_player_nowhere(state: np.ndarray) -> np.ndarray:
    """A state with the last game's player far out of the map: the column lies where two states differ."""
    fields, states = _core.export_env(state.copy(), N - 1), []
    for column in (20, 21):
        states.append(state.copy())
        _core.import_env(states[-1], N - 1, fields | {"player_position": np.array([7, column], np.int32)})
    (place,) = np.flatnonzero((states[0] != states[1]) & (states[1] == 21))
    return changed(states[1], place + 3, 0x70)


WRONG = {
    "actions too short": ("actions", lambda a: a[1:], r"actions has shape \[36\], but must be int32\[37\]"),
    "actions of two axes": ("actions", lambda a: a[None], r"actions has shape \[1, 37\]"),
    "actions of another type": ("actions", lambda a: a.astype(np.int64), "actions has elements of type int64"),
    "actions with gaps": ("actions", lambda a: np.repeat(a, 2)[::2], "actions has gaps"),
    "actions in a list": ("actions", lambda a: a.tolist(), "actions is a list, but must be an array of int32"),
    "no actions": ("actions", lambda a: None, "actions is a NoneType"),
    "an action too large": ("actions", lambda a: changed(a, 36, 43), "actions contain 43, but must be from 0 to 42"),
    "a negative action": ("actions", lambda a: changed(a, 0, -1), "actions contain -1"),
    "cells of another shape": ("cells", lambda a: a[:, :8].copy(), r"cells has shape \[37, 8, 11, 8\]"),
    "cells to be read only": ("cells", read_only, "cells is read-only"),
    "features in doubles": ("features", lambda a: a.astype(float), "features has elements of type float64"),
    "features in columns": ("features", np.asfortranarray, "features has gaps"),
    "features in the other byte order": ("features", lambda a: a.astype(">f4"), "features has elements of type >f4"),
    "success in bytes": ("success", lambda a: a.view(np.uint8), "success has elements of type uint8"),
    "terminated of nobody": ("terminated", lambda a: a[:0], r"terminated has shape \[0\]"),
    "truncated to be read only": ("truncated", read_only, "truncated is read-only"),
    "no threads": ("threads", lambda a: 0, "threads is 0, but must be from 1 to 1024"),
    "fewer than no threads": ("threads", lambda a: -3, "threads is -3"),
    "too many threads": ("threads", lambda a: 1025, "threads is 1025"),
    "threads that are no integer": ("threads", lambda a: 1.5, "threads is a float, but must be an integer"),
    "more threads than any integer": ("threads", lambda a: 2**70, "threads is 1180591620717411303424, but must be"),
    "a state to be read only": ("state", read_only, "state is read-only"),
    "a state cut short": ("state", lambda a: a[:-64], "state is not a batch of games: it is not whole"),
    "a state with a tail": ("state", lambda a: np.concatenate([a, a[:64]]), "it is not whole"),
    "hardly a state": ("state", lambda a: a[:7].copy(), "it is too short to be one"),
    "no state": ("state", lambda a: a[:0].copy(), "it is too short to be one"),
    "a state of zeros": ("state", np.zeros_like, r"it was not made by new_state\(\)"),
    "a state off its place": ("state", lambda a: a[1:], "must start at a multiple of 8 bytes"),
    "a state of another version": ("state", lambda a: changed(a, 8, 99), "of another version of the engine"),
    "a state of other sizes": ("state", lambda a: changed(a, 24, 36), "its header is damaged"),
    "a state with a goal that is none": ("state", lambda a: with_a_wrong_goal(a, "begin"), "state is damaged"),
    "a state with a goal that is none in its queue": (
        "state",
        lambda a: with_a_wrong_goal(a, "enqueue"),
        "state is damaged",
    ),
    "a state with nobody on any floor": ("state", lambda a: with_the_player_nowhere(a), "a game in it is damaged"),
    "a state as integers": ("state", lambda a: a.view(np.int32), "state has elements of type int32"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_named_and_nothing_is_changed(case):
    name, spoil, message = WRONG[case]
    given = arguments()
    given[name] = spoil(given[name])
    arrays = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
    with pytest.raises((TypeError, ValueError), match=message):
        _core.step(**given)
    for name, before in arrays.items():
        np.testing.assert_array_equal(given[name], before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0, but must be from 1 to"),
        ({"num_envs": 2**40}, "num_envs is 1099511627776"),
        ({"num_envs": 2, "episode_limit": 0}, "episode_limit is 0"),
        ({"num_envs": 2, "queue_capacity": -1}, "queue_capacity is -1"),
        ({"num_envs": 2, "goals": GOALS[:, :3]}, r"goals has shape \[3, 3\], but must be uint8\[any, 4\]"),
        ({"num_envs": 2, "goals": GOALS + 50}, "goals contain in row 0 the codes 50 50 51 49, which are no goal's"),
    ],
)
def test_a_batch_that_cannot_be_made_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        _core.new_state(**given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: _core.reset(s, keys(N)[:5], full(N, 0), *craftax_native.new_observations(N)), r"keys has shape"),
        (lambda s: _core.reset(s, keys(N), full(N, 3), *craftax_native.new_observations(N)), "goals contain 3"),
        (lambda s: _core.begin(s, keys(N), full(N, -1), *craftax_native.new_observations(N)), "goals contain -1"),
        (lambda s: _core.enqueue(s, keys(5), full(4, 0)), r"goals has shape \[4\], but must be int32\[5\]"),
        (lambda s: _core.enqueue(s, keys(51), full(51, 0)), "51 episodes to queue, but there is room for 50 of 50"),
        (lambda s: _core.export_env(s, N), "env is 37, but must be from 0 to 36"),
        (lambda s: _core.import_env(s, -1, {}), "env is -1"),
        (lambda s: _core.import_env(s, 0, {}), "the field map is missing"),
        (lambda s: _core.generate(s, keys(N).view(np.int32)), "keys has elements of type int32"),
        (lambda s: _core.export_all(s, []), "out is a list, but must be a dict of arrays"),
        (lambda s: _core.import_env(s, 0, None), "fields is a NoneType, but must be a dict of arrays"),
        (
            lambda s: _core.step_games(s, full(N, 0), None, np.zeros(N, np.float32), np.zeros(N, bool)),
            "not plain games",
        ),
    ],
)
def test_a_call_that_cannot_be_is_refused(call, message):
    state = Played("begin").state
    before = state.copy()
    with pytest.raises((TypeError, ValueError), match=message):
        call(state)
    np.testing.assert_array_equal(state, before)


def test_episodes_are_queued_in_evaluation_only():
    with pytest.raises(ValueError, match=r"after begin\(\), but this state comes from reset\(\)"):
        _core.enqueue(Played("reset").state, keys(1), full(1, 0))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("map", np.full((9, 48, 48), 37, np.int32), "map contains 37, but must be from 0 to 36"),
        ("item_map", np.full((9, 48, 48), -1, np.int32), "item_map contains -1"),
        ("light_map", np.full((9, 48, 48), np.inf, np.float32), "light_map contains inf, but must be finite"),
        ("player_level", np.array(9, np.int32), "player_level contains 9, but must be from 0 to 8"),
        ("player_position", np.array([3, 48], np.int32), "player_position contains 48"),
        ("inventory.pickaxe", np.array(5, np.int32), "inventory.pickaxe contains 5"),
        ("melee_mobs.type_id", np.full((9, 3), 8, np.int32), "melee_mobs.type_id contains 8"),
        ("timestep", np.array([1], np.int32), r"timestep has shape \[1\], but must be int32\[\]"),
        ("player_food", np.array(9.0, np.float32), "player_food has elements of type float32"),
        ("player_foot", np.array(9, np.int32), "a game has no field player_foot"),
    ],
)
def test_a_field_that_cannot_be_is_named_and_the_game_stays(field, value, message):
    state = Played("reset").state
    fields = _core.export_env(state, 3)
    for name in fields:
        if name.endswith(".mask"):
            fields[name] = np.ones_like(fields[name])
    before = state.copy()
    with pytest.raises(ValueError, match=message):
        _core.import_env(state, 3, fields | {field: value})
    np.testing.assert_array_equal(state, before)


def test_a_game_comes_back_as_it_was_exported():
    games = Games(N)
    games.reset(keys(N))
    for actions in random_actions(60):
        games.step(actions)
    fields = games.export_states()
    other = Games(N)
    other.import_states(fields)
    again = other.export_states()
    assert list(again) == list(fields)
    for name, values in fields.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
        assert again[name].dtype == values.dtype
    for actions in random_actions(60, seed=1):
        np.testing.assert_array_equal(games.step(actions)[0], other.step(actions)[0])


def test_the_place_of_an_empty_slot_does_not_matter():
    state = Played("reset").state
    fields = _core.export_env(state, 0)
    fields["melee_mobs.mask"][:] = False
    fields["melee_mobs.position"][:] = 100_000
    fields["melee_mobs.type_id"][:] = -7
    _core.import_env(state, 0, fields)
    assert not _core.export_env(state, 0)["melee_mobs.mask"].any()


@pytest.mark.parametrize("start", ["reset", "begin"])
@pytest.mark.parametrize("threads", [2, 3, 16])
def test_the_number_of_threads_changes_nothing(start, threads):
    one, many = (Played(start, np.arange(N, dtype=np.int32) % 3, threads=count) for count in (1, threads))
    assert many.outcome() == one.outcome()
    for actions in random_actions(3 * LIMIT):
        if start == "begin":
            for played in (one, many):
                _core.enqueue(played.state, keys(1), full(1, WOOD))
        assert many.step(actions).outcome() == one.step(actions).outcome()


def test_games_do_not_depend_on_threads_or_on_their_neighbours():
    games = [Games(N, threads=1), Games(N, threads=4), Games(1, threads=4)]
    for batch in games:
        batch.reset(keys(N)[-batch.num_envs :])
    for actions in random_actions(100):
        for batch in games:
            batch.step(actions[-batch.num_envs :])
    assert games[0].save() == games[1].save()
    alone, together = games[2].export_states(), games[0].export_states()
    for name, values in alone.items():
        np.testing.assert_array_equal(values[0], together[name][-1], err_msg=name)


def test_steps_given_the_keys_that_games_carry_are_the_same():
    carried, given = Games(N), Games(N)
    for games in (carried, given):
        games.reset(keys(N))
    for actions in random_actions(30):
        rng = np.array([_core.export_env(given.state, env)["state_rng"] for env in range(N)])
        np.testing.assert_array_equal(carried.step(actions)[0], given.step(actions, rng)[0])
    # Exporting has made floors that the other batch has not.
    for name, values in carried.export_states().items():
        np.testing.assert_array_equal(values, given.export_states()[name], err_msg=name)


def test_batches_do_not_touch_each_other():
    alone = Played("reset", seed=1)
    others = [Played("reset", seed=1), Played("begin", seed=2)]
    for actions in random_actions(2 * LIMIT):
        alone.step(actions)
        others[1].step(actions[::-1].copy())
        others[0].step(actions)
    assert others[0].outcome() == alone.outcome()


def test_batches_may_step_at_the_same_time_in_several_threads():
    batches = [Played("reset", seed=seed % 2, threads=3) for seed in range(6)]

    def play(played: Played) -> None:
        for actions in random_actions(50):
            played.step(actions)

    workers = [threading.Thread(target=play, args=(batch,)) for batch in batches]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({batch.outcome() for batch in batches}) == 2
    assert batches[0].outcome() == batches[2].outcome()


def test_a_copy_of_the_bytes_goes_on_like_the_original():
    played = Played("reset")
    for actions in random_actions(5):
        played.step(actions)
    copy = Played("reset", seed=5)
    copy.state = np.frombuffer(bytearray(played.state.tobytes()), np.uint8)
    for actions in random_actions(2 * LIMIT, seed=3):
        assert copy.step(actions).outcome() == played.step(actions).outcome()


def test_saved_games_go_on_and_damaged_ones_are_refused():
    games = Games(3)
    games.reset(keys(3))
    games.step(full(3, 5))
    saved = games.save()
    games.step(full(3, 4))
    after = games.save()
    games.load(saved)
    games.step(full(3, 4))
    assert games.save() == after
    with pytest.raises(ValueError, match=r"5 bytes given, but 3 games take \d+"):
        games.load(saved[:5])
    damaged = bytearray(saved)
    damaged[-20_000:] = b"\xff" * 20_000
    with pytest.raises(ValueError, match="state is damaged: environment 2: "):
        games.load(bytes(damaged))
    assert games.save() == after


def test_in_training_each_episode_has_a_world_of_its_own():
    played = Played("reset")
    first = played.assignment
    np.testing.assert_array_equal(first[1], keys(N))
    played.step(full(N, 0)).kill(4, 30).step(full(N, 0))
    np.testing.assert_array_equal(np.flatnonzero(played.flags[1]), [4, 30])
    goal, key, step, active = played.assignment
    assert active.all()
    assert (goal == NEVER).all()
    np.testing.assert_array_equal(step, np.where(played.flags[1], 0, 2))
    np.testing.assert_array_equal((key != first[1]).any(1), played.flags[1])
    assert _core.counts(played.state) == {
        "steps": 2 * N,
        "episodes": 2,
        "successes": 0,
        "successes_at_start": 0,
        "worlds_used": N + 2,
        "worlds_reused": 0,
    }
    maps = {_core.export_env(played.state, env)["map"].tobytes() for env in range(N)}
    assert len(maps) == N
    # The restarted game is the one that its key starts anywhere else.
    other = Played("begin")
    again = keys(N)
    again[7] = key[30]
    _core.begin(other.state, again, full(N, NEVER), *other.seen)
    for name, values in _core.export_env(other.state, 7).items():
        np.testing.assert_array_equal(values, _core.export_env(played.state, 30)[name], err_msg=name)


def test_a_goal_reached_on_the_step_of_death_or_of_the_limit_counts():
    goals = full(N, NEVER)
    goals[:4] = ALWAYS
    played = Played("reset", goals).kill(0, 5)
    played.step(full(N, 0))
    success, terminated, truncated = played.flags
    np.testing.assert_array_equal(np.flatnonzero(success), range(4))
    np.testing.assert_array_equal(np.flatnonzero(terminated), [0, 5])
    assert not truncated.any()
    counts = _core.counts(played.state)
    assert (counts["episodes"], counts["successes"], counts["successes_at_start"]) == (5, 4, 4)
    for step in range(2, LIMIT + 1):
        played.step(full(N, 0))
        assert played.flags[2][6] == (step == LIMIT)


def test_finished_environments_take_queued_episodes_in_order_and_then_idle():
    played = Played("begin")
    episodes = keys(4, seed=9)
    _core.enqueue(played.state, episodes[:3], np.array([WOOD, NEVER, NEVER], np.int32))
    played.kill(20).step(full(N, 0)).kill(5, 3, 8).step(full(N, 0))
    goal, key, step, active = played.assignment
    np.testing.assert_array_equal(key[[20, 3, 5]], episodes[:3])
    assert goal[20] == WOOD
    np.testing.assert_array_equal(np.flatnonzero(~active), [8])
    np.testing.assert_array_equal(step[[20, 3, 5]], [1, 0, 0])

    idle = _core.export_env(played.state, 8)
    played.step(full(N, 0))
    assert not played.flags[:, 8].any()
    for name, values in _core.export_env(played.state, 8).items():
        np.testing.assert_array_equal(values, idle[name], err_msg=name)
    _core.enqueue(played.state, episodes[3:], full(1, WOOD))
    played.step(full(N, 0))
    goal, key, step, active = played.assignment
    assert active.all()
    assert (goal[8], step[8]) == (WOOD, 0)
    np.testing.assert_array_equal(key[8], episodes[3])
    assert _core.counts(played.state)["episodes"] == 4


def test_the_environment_idle_for_longest_takes_the_first_episode():
    played = Played("begin").kill(20).step(full(N, 0)).kill(4).step(full(N, 0))
    episodes = keys(3, seed=9)
    _core.enqueue(played.state, episodes, full(3, NEVER))
    played.kill(0).step(full(N, 0))
    np.testing.assert_array_equal(played.assignment[1][[20, 4, 0]], episodes)


def test_the_queue_goes_round():
    played = Played("begin")
    _core.enqueue(played.state, keys(CAPACITY, seed=1), np.arange(CAPACITY, dtype=np.int32) % 2)
    everyone = range(N)
    played.kill(*everyone).step(full(N, 0))
    np.testing.assert_array_equal(played.assignment[0], np.arange(N) % 2)
    _core.enqueue(played.state, keys(30, seed=2), full(30, ALWAYS))
    assert _core.describe(played.state)["waiting"] == CAPACITY - N + 30
    played.kill(*everyone).step(full(N, 0))
    np.testing.assert_array_equal(played.assignment[0], [*((np.arange(N, CAPACITY)) % 2), *[ALWAYS] * 24])
    assert played.assignment[3].all()


def test_importing_starts_no_thread():
    code = (
        "import os, numpy as np, craftax_native as c\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "g = c.Games(64, threads=3)\n"
        "assert threads() == before\n"
        "g.reset(np.zeros((64, 2), np.uint32))\n"
        "assert threads() == before + 2, (before, threads())\n"
    )
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_where_no_thread_can_be_had_one_does_the_work():
    code = (
        "import os, resource, numpy as np, craftax_native as c\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "g = c.Games(64, threads=8); keys = np.zeros((64, 2), np.uint32); before = threads()\n"
        "used = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmSize')) * 1024\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, -1))\n"  # no room for a stack
        "g.reset(keys)\n"
        "assert threads() == before, (before, threads())\n"
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n"
        "g.reset(keys)\n"
        "assert threads() > before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_forked_process_starts_threads_of_its_own():
    code = (
        "import os, numpy as np, craftax_native as c\n"
        "g = c.Games(64, threads=3); g.reset(np.zeros((64, 2), np.uint32))\n"
        "a = np.full(64, 5, np.int32)\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    for _ in range(10): g.step(a)\n"
        "    if child == 0:\n"
        "        grandchild = os.fork()\n"
        "        g.step(a)\n"
        "        if grandchild == 0: os._exit(0)\n"
        "        os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_another_process_plays_the_same():
    code = (
        "import io, sys, numpy as np, craftax_native as c\n"
        "given = io.BytesIO(sys.stdin.buffer.read()); actions = np.load(given)\n"
        "g = c.Games(actions.shape[1], threads=2); g.load(given.read())\n"
        "for a in actions: g.step(a)\n"
        "sys.stdout.buffer.write(g.save())\n"
    )
    games, actions, given = Games(N, threads=2), np.stack(list(random_actions(20))), io.BytesIO()
    games.reset(keys(N))
    np.save(given, actions)
    given.write(games.save())
    other = subprocess.run([sys.executable, "-c", code], input=given.getvalue(), stdout=subprocess.PIPE, check=True)
    for row in actions:
        games.step(row)
    assert other.stdout == games.save()


def test_the_examples_run():
    assert doctest.testmod(craftax_native.games).attempted
    assert not doctest.testmod(craftax_native.games).failed
