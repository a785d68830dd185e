import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.toy import ToyEnvironment
from forethought.toy.environment import GEM, LAVA, STONE, TREE, World, advance, generate, successes
from forethought.toy.goals import GOAL_IDS

STAY, NORTH, SOUTH, WEST, EAST = range(5)


def _world(**cells):
    tiles = np.zeros((5, 5), np.int32)
    for name, (row, column) in cells.items():
        if name != "agent":
            tiles[row, column] = {"lava": LAVA, "tree": TREE, "stone": STONE, "gem": GEM}[name]
    return World(jnp.asarray(tiles), jnp.asarray(cells["agent"], jnp.int32), jnp.zeros(3, bool))


@jax.jit
def _move(world, action):
    after = advance(world, action)
    return after, successes(world, after)


def _walk(world, actions):
    reached = set()
    for action in actions:
        after, success = _move(world, jnp.asarray(action))
        reached |= {GOAL_IDS[i] for i in np.flatnonzero(success)}
        world = after
    return reached


@pytest.mark.parametrize(
    ("cells", "actions", "expected"),
    [
        ({"agent": (2, 2)}, [STAY], set()),
        ({"agent": (2, 2)}, [NORTH], {"move"}),
        ({"agent": (0, 2)}, [NORTH], set()),
        ({"agent": (0, 1)}, [WEST], {"move", "corner-nw"}),
        ({"agent": (4, 3)}, [EAST], {"move", "corner-se"}),
        ({"agent": (0, 2), "tree": (0, 1)}, [WEST], {"move", "wood"}),
        ({"agent": (0, 2), "tree": (0, 1)}, [WEST, WEST], {"move", "wood", "corner-nw", "wood-nw"}),
        ({"agent": (0, 2), "stone": (0, 1)}, [WEST], {"move"}),
        (
            {"agent": (4, 0), "tree": (4, 1), "stone": (4, 2), "gem": (4, 3)},
            [EAST] * 4,
            {"move", "wood", "stone", "gem", "corner-se", "gem-se"},
        ),
        ({"agent": (4, 0), "gem": (4, 1)}, [EAST], {"move"}),
        ({"agent": (2, 1), "lava": (2, 2)}, [EAST], {"move", "lava"}),
    ],
)
def test_goals(cells, actions, expected):
    assert _walk(_world(**cells), actions) == expected


def test_worlds_hold_one_of_each_and_two_lava_cells():
    worlds = jax.vmap(generate)(jax.random.split(jax.random.key(0), 200))
    tiles = np.asarray(worlds.tiles)
    for tile, count in ((LAVA, 2), (TREE, 1), (STONE, 1), (GEM, 1)):
        assert ((tiles == tile).sum((1, 2)) == count).all()
    lava = tiles == LAVA
    assert not lava[:, [0, 4], :].any()
    assert not lava[:, :, [0, 4]].any()
    position = np.asarray(worlds.position)
    assert (tiles[np.arange(200), position[:, 0], position[:, 1]] == 0).all()
    assert len({t.tobytes() for t in tiles}) > 190


def _place(state, index, world):
    put = jax.tree.map(lambda all_, one: all_.at[index].set(one), state.world, world)
    return state._replace(world=put)


def test_success_on_the_step_of_death_and_on_the_last_step_counts():
    env = ToyEnvironment(3, episode_limit=1)
    goals = jnp.asarray([GOAL_IDS.index(g) for g in ("lava", "corner-se", "corner-nw")])
    state, _ = jax.jit(env.reset)(jax.random.key(0), goals)
    state = _place(state, 0, _world(agent=(2, 1), lava=(2, 2)))
    state = _place(state, 1, _world(agent=(2, 1), lava=(2, 2)))
    state = _place(state, 2, _world(agent=(0, 1)))
    _, _, outcome = jax.jit(env.step)(state, jnp.asarray([EAST, EAST, WEST]))
    assert outcome.success.tolist() == [True, False, True]
    assert outcome.terminated.tolist() == [True, True, False]
    assert outcome.truncated.tolist() == [True, True, True]


@pytest.mark.parametrize("finishing", [[], [1], [0, 2], [0, 1, 2, 3]])
def test_finished_environments_get_their_own_world_and_touch_no_other(finishing):
    env = ToyEnvironment(4)
    goals = jnp.full(4, GOAL_IDS.index("lava"))
    state, _ = jax.jit(env.reset)(jax.random.key(1), goals)
    for index in finishing:
        state = _place(state, index, _world(agent=(2, 1), lava=(2, 2)))
    actions = jnp.where(jnp.isin(jnp.arange(4), jnp.asarray(finishing, jnp.int32)), EAST, STAY)
    after, observation, outcome = jax.jit(env.step)(state, actions)
    assert np.flatnonzero(outcome.done).tolist() == finishing
    assert len({np.asarray(t).tobytes() for t in after.world.tiles}) == 4
    for index in range(4):
        if index in finishing:
            expected = generate(jax.random.fold_in(env.assignment(after).key[index], 0))
            assert jax.tree.all(jax.tree.map(lambda a, b, i=index: (a[i] == b).all(), after.world, expected))
            assert after.step[index] == 0
        else:
            assert (after.world.tiles[index] == state.world.tiles[index]).all()
            assert after.step[index] == 1
    assert (observation.cells[..., 0] == after.world.tiles).all()
    assert observation.cells[..., 1].sum((1, 2)).tolist() == [1] * 4


def test_queue_is_taken_in_order_and_then_environments_idle():
    env = ToyEnvironment(3, episode_limit=2, queue_capacity=4)
    keys = jax.random.split(jax.random.key(2), 8)
    state, _ = jax.jit(env.begin)(keys[:3], jnp.full(3, 7))
    state = env.enqueue(state, keys[3:7], jnp.asarray([1, 2, 7, 7]))
    step = jax.jit(env.step)
    stay = jnp.zeros(3, jnp.int32)
    for _ in range(2):
        state, _, outcome = step(state, stay)
    assert outcome.truncated.all()
    assert env.assignment(state).goal.tolist() == [1, 2, 7]
    assert (jax.random.key_data(env.assignment(state).key) == jax.random.key_data(keys[3:6])).all()
    for _ in range(2):
        state, _, outcome = step(state, stay)
    assert env.assignment(state).active.tolist() == [True, False, False]
    before = state
    state, _, outcome = step(state, jnp.full(3, EAST))
    assert not outcome.done.any()
    assert (state.world.position[1:] == before.world.position[1:]).all()
    assert state.step[1:].tolist() == before.step[1:].tolist()
    state, _, outcome = step(state, stay)
    assert outcome.done.tolist() == [True, False, False]
    assert not env.assignment(state).active.any()
    assert env.metrics(state)["episodes_finished"] == 7


def test_episode_depends_on_its_key_alone():
    env = ToyEnvironment(2, queue_capacity=2)
    key = jax.random.key(5)
    _, observation = jax.jit(env.begin)(jnp.stack([key, key]), jnp.asarray([0, 1]))
    assert (observation.cells[0] == observation.cells[1]).all()


@pytest.mark.parametrize("wrong", [{"num_envs": 0}, {"episode_limit": 0}, {"queue_capacity": -1}])
def test_bad_numbers_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ToyEnvironment(**({"num_envs": 1} | wrong))


def test_unknown_goal_is_named():
    with pytest.raises(KeyError, match="fly"):
        ToyEnvironment(1, ["fly"])


def test_goal_numbers_refer_to_the_ids_given():
    env = ToyEnvironment(1, ["wood", "move"])
    state, _ = jax.jit(env.reset)(jax.random.key(0), jnp.asarray([1]))
    state = _place(state, 0, _world(agent=(2, 2)))
    _, _, outcome = jax.jit(env.step)(state, jnp.asarray([EAST]))
    assert outcome.success.all()
