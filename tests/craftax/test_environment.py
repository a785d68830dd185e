"""The Craftax environment: worlds of their own, the queue, limits, and goals as data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.craftax.environment import CraftaxEnvironment

# One number for pool and queue, so that training and evaluation share one compiled step.
NUM_ENVS, LIMIT, POOL = 40, 12, 90
CAPACITY = POOL
GOALS = ("reach_floor_8", "have_1_wood", "have_2_wood", "see_diamond")
NEVER = jnp.zeros(NUM_ENVS, jnp.int32)
NOOP = jnp.zeros(NUM_ENVS, jnp.int32)


@pytest.fixture(scope="module")
def env():
    return CraftaxEnvironment(NUM_ENVS, GOALS, LIMIT, POOL, CAPACITY)


@pytest.fixture(scope="module")
def trained(env):
    """A training state one step in, before anyone has finished."""
    state, _ = env.reset(jax.random.key(1), NEVER)
    return env.step(state, NOOP)[0]


@pytest.fixture(scope="module")
def evaluated(env):
    """An evaluation state at its beginning."""
    return env.begin(jax.random.split(jax.random.key(2), NUM_ENVS), NEVER)[0]


def edit(state, which, **fields):
    """Write one value into fields of the chosen environments' games."""
    changed = {name: getattr(state.game, name).at[np.asarray(which)].set(v) for name, v in fields.items()}
    return state._replace(game=state.game.replace(**changed))


def kill(state, which):
    return edit(state, which, player_health=-50.0)


def maps(state):
    return np.asarray(state.game.map).reshape(NUM_ENVS, -1)


def rows(tree, which):
    """Some environments' arrays, in NumPy: JAX would compile an indexing program for every leaf."""

    def numbers(leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(lambda leaf: numbers(leaf)[which], tree)


def assert_same(got, expected):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.craftax
@pytest.mark.parametrize("finished", [[7], range(3, 36), range(NUM_ENVS)], ids=["one", "33", "all"])
def test_each_finished_environment_gets_a_world_of_its_own_and_no_other_is_touched(env, trained, finished):
    finished = np.array(finished)
    others = np.setdiff1d(np.arange(NUM_ENVS), finished)
    peaceful = env.step(trained, NOOP)[0]
    state, observation, outcome = env.step(kill(trained, finished), NOOP)
    np.testing.assert_array_equal(np.flatnonzero(outcome.terminated), finished)
    assert not outcome.success.any()
    assert not outcome.truncated.any()
    assert_same(rows(state.game, finished), rows(state.shelf.world, NUM_ENVS + np.arange(len(finished))))
    untouched = [rows((s.game, s.key, s.goal), others) for s in (state, peaceful)]
    assert_same(*untouched)
    assert len(np.unique(maps(state), axis=0)) == NUM_ENVS
    steps = np.asarray(env.assignment(state).step)
    assert (steps[finished] == 0).all()
    assert (steps[others] == 2).all()
    assert env.assignment(state).active.all()
    assert observation.cells.shape == (NUM_ENVS, 9, 11, 8)
    assert float(env.metrics(state)["worlds_used"]) == NUM_ENVS + len(finished)


@pytest.mark.craftax
def test_a_pool_used_up_is_gone_round_again_without_sharing_and_with_other_chances(env, trained):
    state = trained
    for _ in range(2):
        state = env.step(kill(state, range(NUM_ENVS)), NOOP)[0]
        assert len(np.unique(maps(state), axis=0)) == NUM_ENVS
    metrics = {name: float(value) for name, value in env.metrics(state).items()}
    assert metrics["worlds_used"] == 3 * NUM_ENVS
    assert metrics["worlds_reused"] == 3 * NUM_ENVS - POOL
    assert metrics["episodes"] == 2 * NUM_ENVS
    reused = state.key == trained.key[0]
    assert int(reused.sum()) == 1
    chances = jax.random.key_data(state.game.state_rng)
    fresh = jax.random.key_data(state.shelf.world.state_rng)
    place = int(jnp.argmax(reused))
    np.testing.assert_array_equal(state.game.map[place], state.shelf.world.map[0])
    assert (chances[place] != fresh[0]).any()


@pytest.mark.craftax
def test_the_time_limit_truncates_and_goals_stay(env):
    goals = jnp.arange(NUM_ENVS, dtype=jnp.int32) % 3
    state, _ = env.reset(jax.random.key(3), goals)
    for step in range(1, LIMIT + 1):
        state, _, outcome = env.step(state, NOOP)
        assert bool(outcome.truncated.all()) == (step == LIMIT)
        assert not outcome.success.any()
        assert not outcome.terminated.any()
    np.testing.assert_array_equal(env.assignment(state).goal, goals)
    assert (env.assignment(state).step == 0).all()


@pytest.mark.craftax
def test_a_goal_reached_on_the_step_of_death_or_of_the_limit_counts(env, trained):
    state = trained._replace(goal=jnp.ones(NUM_ENVS, jnp.int32))
    inventory = state.game.inventory.replace(wood=state.game.inventory.wood.at[:3].set(1))
    state = state._replace(game=state.game.replace(inventory=inventory))
    state = edit(kill(state, [0, 3]), [1, 4], timestep=LIMIT - 1)
    state, _, outcome = env.step(state, NOOP)
    np.testing.assert_array_equal(outcome.success[:5], [True, True, True, False, False])
    np.testing.assert_array_equal(outcome.terminated[:5], [True, False, False, True, False])
    np.testing.assert_array_equal(outcome.truncated[:5], [False, True, False, False, True])
    np.testing.assert_array_equal(np.flatnonzero(outcome.done), range(5))
    assert int(state.game.inventory.wood.sum()) == 0


@pytest.mark.craftax
def test_beating_the_boss_terminates(env, trained):
    outcome = env.step(edit(trained, [2], boss_progress=8), NOOP)[2]
    np.testing.assert_array_equal(np.flatnonzero(outcome.terminated), [2])


@pytest.mark.craftax
def test_finished_environments_take_queued_episodes_in_order_and_then_idle(env, evaluated):
    keys = jax.random.split(jax.random.key(9), 4)
    state = env.enqueue(evaluated, keys[:3], jnp.array([1, 2, 3], jnp.int32))
    state = env.step(kill(state, [20]), NOOP)[0]
    state = env.step(kill(state, [5, 3, 8]), NOOP)[0]
    assignment = env.assignment(state)
    np.testing.assert_array_equal(assignment.goal[np.array([20, 3, 5])], [1, 2, 3])
    np.testing.assert_array_equal(assignment.key[np.array([20, 3, 5])] == keys[:3], [True] * 3)
    np.testing.assert_array_equal(np.flatnonzero(~assignment.active), [8])
    np.testing.assert_array_equal(assignment.step[np.array([20, 3, 5])], [1, 0, 0])

    dead = kill(state, [8])
    state, _, outcome = env.step(dead, NOOP)
    assert not outcome.done[8]
    assert float(env.metrics(state)["episodes"]) == 4
    state = env.enqueue(state, keys[3:], jnp.array([2], jnp.int32))
    state, _, outcome = env.step(state, NOOP)
    assert not outcome.done.any()
    assignment = env.assignment(state)
    assert assignment.active.all()
    assert assignment.goal[8] == 2
    assert assignment.step[8] == 0


@pytest.mark.craftax
def test_the_environment_idle_for_longest_takes_the_first_episode(env, evaluated):
    state = env.step(kill(evaluated, [20]), NOOP)[0]
    state = env.step(kill(state, [4]), NOOP)[0]
    state = env.enqueue(state, jax.random.split(jax.random.key(9), 3), jnp.array([1, 2, 3], jnp.int32))
    state = env.step(kill(state, [0]), NOOP)[0]
    np.testing.assert_array_equal(env.assignment(state).goal[np.array([20, 4, 0])], [1, 2, 3])


@pytest.mark.craftax
def test_an_episode_is_a_function_of_its_key_and_actions_wherever_it_runs(env, evaluated):
    key = evaluated.key[17]
    other = env.begin(jax.random.split(jax.random.key(50), NUM_ENVS).at[4].set(key), NEVER)[0]
    later = env.enqueue(evaluated, key[None], jnp.array([0], jnp.int32))
    later = env.step(kill(later, [30]), NOOP)[0]
    runs = [(evaluated, 17), (other, 4), (later, 30)]
    for action in range(1, 6):
        runs = [(env.step(state, jnp.full(NUM_ENVS, action))[0], place) for state, place in runs]
        first, *rest = (rows(state.game, place) for state, place in runs)
        for game in rest:
            assert_same(game, first)


@pytest.mark.craftax
def test_the_queue_wraps_and_refuses_more_than_it_holds(env, evaluated):
    keys = jax.random.split(jax.random.key(9), CAPACITY)
    state = env.enqueue(evaluated, keys, jnp.arange(CAPACITY, dtype=jnp.int32) % 2)
    with pytest.raises(ValueError, match="1 episodes to queue, but there is room for 0 of 90"):
        env.enqueue(state, keys[:1], jnp.zeros(1, jnp.int32))
    state = env.step(kill(state, range(NUM_ENVS)), NOOP)[0]
    state = env.step(kill(state, range(NUM_ENVS)), NOOP)[0]
    state = env.enqueue(state, keys[:20], jnp.full(20, 3, jnp.int32))
    state = env.step(kill(state, range(NUM_ENVS)), NOOP)[0]
    np.testing.assert_array_equal(env.assignment(state).goal[:30], [0, 1] * 5 + [3] * 20)
    np.testing.assert_array_equal(env.assignment(state).active, np.arange(NUM_ENVS) < 30)


@pytest.mark.craftax
def test_a_goal_that_held_at_the_start_succeeds_at_once_and_is_counted_apart(env, trained):
    held = np.flatnonzero(np.asarray(trained.shelf.holds).any(1))
    assert held.size
    fresh, _ = env.reset(jax.random.key(1), jnp.full(NUM_ENVS, 3, jnp.int32))
    fresh = fresh._replace(held=fresh.held.at[:2].set(True))
    diamond = 10
    fresh = fresh._replace(game=fresh.game.replace(map=fresh.game.map.at[:3, 0, 24, 27].set(diamond)))
    before = int(fresh.held.sum())
    state, _, outcome = env.step(fresh, NOOP)
    assert outcome.success[:3].all()
    assert float(env.metrics(state)["successes_at_start"]) == before
    assert float(env.metrics(state)["successes"]) == int(outcome.success.sum()) >= before + 1


@pytest.mark.craftax
def test_changing_goals_compiles_nothing(env, trained):
    programs = env._advance._cache_size()
    env.step(trained._replace(goal=jnp.arange(NUM_ENVS, dtype=jnp.int32) % 4), NOOP)
    state, _ = env.reset(jax.random.key(5), jnp.arange(NUM_ENVS, dtype=jnp.int32) % 4)
    env.step(state, NOOP)
    assert env._advance._cache_size() == programs == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_envs": 0}, ValueError, "num_envs is 0, but must be at least 1"),
        ({"num_envs": 2, "episode_limit": 0}, ValueError, "episode_limit is 0"),
        ({"num_envs": 4, "pool_size": 3}, ValueError, "pool_size is 3, but must be at least 4"),
        ({"num_envs": 4, "queue_capacity": 0}, ValueError, "queue_capacity is 0"),
        ({"num_envs": 4, "goal_ids": ("have_1_woods",)}, KeyError, "have_1_woods.*nearest are 'have_1_wood',"),
    ],
)
def test_a_bad_argument_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        CraftaxEnvironment(**arguments)


@pytest.mark.parametrize(
    ("goals", "message"),
    [([0, 4], "contain 4, but must be from 0 to 3"), ([-1, 0], "contain -1"), ([0], r"shape \(1,\)")],
)
def test_goals_out_of_range_are_named_before_any_work(goals, message):
    env = CraftaxEnvironment(2, GOALS)
    with pytest.raises(ValueError, match=message):
        env.reset(jax.random.key(0), jnp.array(goals, jnp.int32))
    with pytest.raises(ValueError, match=message):
        env.begin(jax.random.split(jax.random.key(0), len(goals)), jnp.array(goals, jnp.int32))
