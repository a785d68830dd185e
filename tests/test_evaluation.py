from functools import lru_cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.evaluation import EvaluationResult, Evaluator, evaluate, wilson_interval
from forethought.learner.acting import act, empty_memory
from forethought.learner.config import NetworkConfig
from forethought.learner.network import make_network
from forethought.toy.environment import ToyEnvironment
from forethought.toy.goals import GOAL_IDS

TINY = NetworkConfig(
    cell_embedding=4, cell_features=4, convolutions=1, channels=4, feature_units=8, observation_units=8,
    fuse_units=8, width=8, blocks=1, heads=2, memory=4, feedforward=8, head_units=8, head_layers=1,
)  # fmt: skip
LIMIT = 24


@lru_cache
def agent():
    vectors = jnp.eye(len(GOAL_IDS), 16, dtype=jnp.float32)
    no_calls = jnp.zeros(0, bool)
    return SimpleNamespace(goal_embeddings=vectors, network=lambda state: state, callable_goals=lambda _: no_calls)


@lru_cache
def network(seed=0):
    spec, actions = ToyEnvironment.observation_spec, ToyEnvironment.num_actions
    made = make_network(jax.random.key(seed), spec, actions, 16, TINY)
    # Larger weights, since a fresh network acts almost at random whatever it sees and remembers.
    return jax.tree.map(lambda leaf: 4 * leaf, made)


def make_environment(num_envs, *, queue_capacity):
    return ToyEnvironment(num_envs, GOAL_IDS, episode_limit=LIMIT, queue_capacity=queue_capacity)


def run(**settings):
    return evaluate(agent(), network(), make_environment, GOAL_IDS, **({"episodes": 6, "num_envs": 16} | settings))


@lru_cache
def reference():
    return run(chunk=8)


def same(a, b):
    return a.goals == b.goals and all(np.array_equal(x, y) for x, y in zip(a[1:], b[1:], strict=True))


@pytest.mark.parametrize(("num_envs", "chunk"), [(2, 32), (7, 3)])
def test_the_outcome_depends_on_neither_environments_nor_chunk(num_envs, chunk):
    assert same(run(num_envs=num_envs, chunk=chunk), reference())


def test_every_goal_gets_its_episodes():
    result = reference()
    assert result.goals == GOAL_IDS
    assert (result.episodes == 6).all()
    assert (result.first_step_successes <= result.successes).all()
    assert (result.successes <= 6).all()
    assert result.successes.sum() > 0


def test_a_goal_meets_the_same_episodes_in_every_subset():
    goals = [5, 0, 3]
    result = run(goals=goals)
    assert result.goals == tuple(GOAL_IDS[goal] for goal in goals)
    assert np.array_equal(result.successes, reference().successes[goals])


def test_another_seed_meets_other_episodes():
    assert not same(run(seed=1), reference())


def test_episodes_are_those_played_one_by_one():
    evaluator = Evaluator(agent(), make_environment, GOAL_IDS, goals=[3], episodes=4, num_envs=2, chunk=5)
    environment = ToyEnvironment(1, GOAL_IDS, episode_limit=LIMIT)
    step, play = jax.jit(environment.step), jax.jit(act)
    goals = jnp.array([3], jnp.int32)
    successes = 0
    for key in jax.random.wrap_key_data(evaluator._player.keys[0]):
        state, observation = environment.begin(key[None], goals)
        memory = empty_memory(network(), 1)
        for time in range(LIMIT):
            action_key = jax.random.fold_in(jax.random.fold_in(key, 1), time)[None]
            action = play(network(), memory, observation, goals, agent().goal_embeddings, action_key)
            state, observation, outcome = step(state, action.action)
            memory = action.memory
            if outcome.done[0]:
                break
        successes += int(outcome.success[0])
    assert evaluator.run(network()).successes.tolist() == [successes]


def test_one_evaluator_compiles_once_and_repeats_itself(compilations):
    evaluator = Evaluator(agent(), make_environment, GOAL_IDS, episodes=6, num_envs=16, chunk=8)
    first = evaluator.run(network())
    other = evaluator.run(network(1))
    compilations.clear()
    again = evaluator.run(network())
    assert compilations == []
    assert same(first, again)
    assert same(first, reference())
    assert not same(first, other)


@pytest.fixture
def compilations():
    seen = []

    def listen(event, *_args, **_kwargs):
        if "backend_compile" in event:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def test_an_evaluation_can_be_given_up():
    evaluator = Evaluator(agent(), make_environment, GOAL_IDS, episodes=6, num_envs=16, chunk=8)
    assert evaluator.run(network(), stop=lambda: True) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes is 0; it must be at least 1"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"chunk": -1}, "chunk is -1"),
        ({"goals": []}, "at least one"),
        ({"goals": [1, 1]}, "none twice"),
        ({"goals": [99]}, "allowed are 0 to 8"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        run(**settings)


def test_wilson_against_the_closed_form():
    # Roots of (p - x)^2 = z^2 x (1 - x) / n, found without the rearranged formula.
    z = 1.959963984540054
    for successes, episodes in ((0, 128), (1, 128), (64, 128), (127, 128), (128, 128), (3, 7)):
        p = successes / episodes
        roots = np.sort(np.roots([1 + z * z / episodes, -(2 * p + z * z / episodes), p * p]).real)
        low, high = wilson_interval(successes, episodes)
        np.testing.assert_allclose([low, high], roots, atol=1e-7)
    low, high = wilson_interval(np.array([0, 10]), np.array([10, 10]))
    assert low[0] == 0
    assert high[1] == 1
    # Known values (Wilson 1927 as tabulated in many texts): 8 of 10.
    np.testing.assert_allclose(wilson_interval(8, 10), (0.4901625, 0.9433178), atol=1e-6)


@pytest.mark.parametrize(("successes", "episodes"), [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_impossible_counts(successes, episodes):
    with pytest.raises(ValueError, match="at least 1 episode"):
        wilson_interval(successes, episodes)


def test_columns_match_the_record():
    from forethought.rundir import EVALUATION_COLUMNS

    result = EvaluationResult(("a",), *(np.array([count]) for count in (4, 1, 0, 2, 1)))
    columns = result.columns(3, 2**40)
    assert list(columns) == list(EVALUATION_COLUMNS)
    assert columns["steps"] == [2**40]
    assert columns["success_rate"].tolist() == [0.25]
