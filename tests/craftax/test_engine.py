"""The engine as an environment: the same episodes as in JAX, the same errors, pure, in loops and on several devices."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("craftax_native")

from forethought.craftax.engine import EngineEnvironment
from forethought.craftax.environment import CraftaxEnvironment
from forethought.craftax.interface import goal_numbers

# Those of test_environment, so that both share one compiled step.
NUM_ENVS, LIMIT, POOL = 40, 12, 90
CAPACITY = POOL
GOALS = ("reach_floor_8", "have_1_wood", "have_2_wood", "see_diamond")
NEVER = np.zeros(NUM_ENVS, np.int32)
NOOP = np.zeros(NUM_ENVS, np.int32)


@pytest.fixture(scope="module")
def env():
    return EngineEnvironment(NUM_ENVS, GOALS, LIMIT, CAPACITY, threads=2)


def numbers(array):
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array)


def assert_same(got, expected, which=np.s_[:]):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(numbers(a)[which], numbers(b)[which])


def random_actions(steps, seed=0):
    return np.random.default_rng(seed).integers(0, 43, (steps, NUM_ENVS), dtype=np.int32)


@pytest.mark.craftax
def test_an_evaluation_is_the_same_as_in_jax_step_by_step(env):
    reference = CraftaxEnvironment(NUM_ENVS, GOALS, LIMIT, POOL, CAPACITY)
    random = np.random.default_rng(1)
    keys = jax.random.split(jax.random.key(3), 200)  # one of the worlds shows a diamond at the start
    goals = jnp.asarray(random.integers(0, len(GOALS), 200), jnp.int32)
    (state, seen), (expected, expected_seen) = (
        environment.begin(keys[:NUM_ENVS], goals[:NUM_ENVS]) for environment in (env, reference)
    )
    assert_same(seen, expected_seen)
    queued, idled = NUM_ENVS, False
    for step, actions in enumerate(random_actions(5 * LIMIT)):
        if step % 9 == 8 and queued < 120:
            part = slice(queued, queued + 20)
            state, expected = (
                environment.enqueue(s, keys[part], goals[part])
                for environment, s in ((env, state), (reference, expected))
            )
            queued += 20
        state, seen, outcome = env.step(state, actions)
        expected, expected_seen, expected_outcome = reference.step(expected, jnp.asarray(actions))
        assert_same(outcome, expected_outcome)
        episode, expected_episode = env.assignment(state), reference.assignment(expected)
        active = np.asarray(episode.active)
        np.testing.assert_array_equal(active, expected_episode.active)
        assert_same((episode, seen), (expected_episode, expected_seen), active)
        idled |= not active.all()
    assert idled
    counts, expected_counts = env.metrics(state), reference.metrics(expected)
    assert {name: float(n) for name, n in counts.items()} == {name: float(n) for name, n in expected_counts.items()}
    assert float(counts["successes_at_start"]) > 0


@pytest.mark.craftax
def test_training_starts_in_the_worlds_that_it_starts_in_with_jax(env):
    reference = CraftaxEnvironment(NUM_ENVS, GOALS, LIMIT, POOL, CAPACITY)
    goals = jnp.arange(NUM_ENVS, dtype=jnp.int32) % len(GOALS)
    (state, seen), (expected, expected_seen) = (e.reset(jax.random.key(6), goals) for e in (env, reference))
    assert_same(seen, expected_seen)
    assert_same(env.assignment(state), reference.assignment(expected))


def test_training_goes_from_episode_to_episode_with_a_new_key_each(env):
    goals = np.arange(NUM_ENVS, dtype=np.int32) % 3
    state, _ = env.reset(jax.random.key(3), goals)
    first = env.assignment(state)
    for step in range(1, LIMIT + 1):
        state, observation, outcome = env.step(state, NOOP)
        assert bool(outcome.truncated.all()) == (step == LIMIT)
        assert not outcome.success.any()
    episode = env.assignment(state)
    np.testing.assert_array_equal(episode.goal, goals)
    assert (episode.step == 0).all()
    assert_same(episode.key, jax.vmap(lambda key: jax.random.fold_in(key, 1))(first.key))
    assert_same(observation, env.begin(episode.key, goals)[1])
    metrics = {name: float(value) for name, value in env.metrics(state).items()}
    assert metrics["worlds_used"] == 2 * NUM_ENVS
    assert metrics["worlds_reused"] == 0
    assert metrics["episodes"] == NUM_ENVS


def test_step_and_enqueue_leave_the_state_given_as_it_was(env):
    state, _ = env.begin(jax.random.split(jax.random.key(0), NUM_ENVS), NEVER)
    before = np.array(state)
    queued = env.enqueue(state, jax.random.split(jax.random.key(1), 3), np.zeros(3, np.int32))
    once = env.step(queued, random_actions(1)[0])
    np.testing.assert_array_equal(state, before)
    assert_same(env.step(queued, random_actions(1)[0]), once)


def test_a_compiled_loop_that_gives_the_state_up_plays_the_same(env):
    def play(state, actions):
        def step(state, chosen):
            episode = env.assignment(state)
            state, observation, outcome = env.step(state, chosen)
            return state, (observation, outcome, episode.step)

        return jax.lax.scan(step, state, actions)

    actions = random_actions(2 * LIMIT)
    state, _ = env.reset(jax.random.key(1), NEVER)
    looped, (observations, outcomes, steps) = jax.jit(play, donate_argnums=0)(jnp.copy(state), actions)
    for time, chosen in enumerate(actions):
        np.testing.assert_array_equal(steps[time], env.assignment(state).step)
        state, observation, outcome = env.step(state, chosen)
        assert_same(jax.tree.map(lambda a, time=time: a[time], (observations, outcomes)), (observation, outcome))
    np.testing.assert_array_equal(looped, state)


def test_changing_goals_compiles_nothing(env):
    state, _ = env.reset(jax.random.key(1), NEVER)
    env.step(state, NOOP)
    programs = env._advance._cache_size()
    state, _ = env.reset(jax.random.key(5), np.arange(NUM_ENVS, dtype=np.int32) % 4)
    env.step(state, jnp.asarray(NOOP))
    assert env._advance._cache_size() == programs == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_envs": 0}, ValueError, "num_envs is 0, but must be at least 1"),
        ({"num_envs": 2, "episode_limit": 0}, ValueError, "episode_limit is 0"),
        ({"num_envs": 4, "queue_capacity": 0}, ValueError, "queue_capacity is 0"),
        ({"num_envs": 4, "threads": 0}, ValueError, "threads is 0"),
        ({"num_envs": 4, "goal_ids": ("have_1_woods",)}, KeyError, "have_1_woods.*nearest are 'have_1_wood',"),
    ],
)
def test_a_bad_argument_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        EngineEnvironment(**arguments)


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ([0, 4], "contain 4, but must be from 0 to 3"),
        ([-1, 0], "contain -1"),
        ([0], r"shape \(1,\)"),
    ],
)
def test_goals_out_of_range_are_named(goals, message):
    env = EngineEnvironment(2, GOALS)
    with pytest.raises(ValueError, match=message):
        env.reset(jax.random.key(0), np.array(goals))
    with pytest.raises(ValueError, match=message):
        env.begin(jax.random.split(jax.random.key(0), len(goals)), np.array(goals))


def test_goals_are_integers():
    with pytest.raises(ValueError, match="goals are float64 of shape"):
        goal_numbers(np.array([0.5, 0]), 2, 4)


def test_the_queue_refuses_more_than_it_holds_and_training_altogether(env):
    keys = jax.random.split(jax.random.key(9), CAPACITY)
    state = env.enqueue(env.begin(keys[:NUM_ENVS], NEVER)[0], keys, np.zeros(CAPACITY, np.int32))
    with pytest.raises(ValueError, match="1 episodes to queue, but there is room for 0 of 90"):
        env.enqueue(state, keys[:1], np.zeros(1, np.int32))
    with pytest.raises(ValueError, match=r"queued after begin\(\), but this state comes from reset\(\)"):
        env.enqueue(env.reset(jax.random.key(0), NEVER)[0], keys[:1], np.zeros(1, np.int32))


def test_wrong_actions_and_foreign_states_are_errors_of_the_program(env):
    state, _ = env.reset(jax.random.key(0), NEVER)
    wrong = [
        (state, np.full(NUM_ENVS, 43), "actions contain 43, but must be from 0 to 42"),
        (state, NOOP[1:], "actions has 39 elements, but must have 40"),
        (state[:-64], NOOP, "state is not a batch of games: it is not whole"),
        (jnp.zeros_like(state), NOOP, r"it was not made by new_state\(\)"),
        (state.at[8].set(77), NOOP, "it is of another version of the engine"),
    ]
    for given, actions, message in wrong:
        with pytest.raises(Exception, match=message):
            jax.block_until_ready(EngineEnvironment(NUM_ENVS, GOALS).step(given, actions))
    assert float(env.metrics(env.step(state, NOOP)[0])["steps"]) == NUM_ENVS


SHARDED = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from forethought.craftax.engine import EngineEnvironment

env = EngineEnvironment(6, ("have_1_wood",), episode_limit=9, threads=2)
states = [env.reset(jax.random.key(seed), np.zeros(6, np.int32))[0] for seed in range(2)]
mesh = jax.make_mesh((2,), ("device",), axis_types=(AxisType.Auto,))
spec = PartitionSpec("device")
actions = np.random.default_rng(0).integers(0, 43, (30, 12), dtype=np.int32)

def play(state, actions):
    def step(state, chosen):
        state, observation, outcome = env.step(state, chosen)
        return state, (observation, outcome, env.assignment(state).step)
    return jax.lax.scan(step, state, actions)

program = jax.shard_map(play, mesh=mesh, in_specs=(spec, PartitionSpec(None, "device")),
                        out_specs=(spec, PartitionSpec(None, "device")))
whole = jax.device_put(np.concatenate([np.asarray(state) for state in states]), NamedSharding(mesh, spec))
after, seen = jax.jit(program, donate_argnums=0)(whole, actions)
assert len(after.sharding.device_set) == 2
parts = [jax.jit(play)(state, actions[:, 6 * i : 6 * i + 6]) for i, state in enumerate(states)]
np.testing.assert_array_equal(after, np.concatenate([np.asarray(part[0]) for part in parts]))
for got, *expected in zip(*map(jax.tree.leaves, (seen, parts[0][1], parts[1][1]))):
    np.testing.assert_array_equal(got, np.concatenate([np.asarray(e) for e in expected], axis=1))
"""


def test_a_state_spread_over_devices_plays_what_its_parts_play():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SHARDED], env=flags, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
