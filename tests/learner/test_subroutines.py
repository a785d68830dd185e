"""Calls of learned behaviour: their deadlines, the policy relative to its reference, what learns from them."""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.environment import Assignment, Observation, Outcome
from forethought.learner import NetworkConfig
from forethought.learner.acting import Step, empty_memory, evaluate_step, sample
from forethought.learner.learner import _call_counts
from forethought.learner.network import Conditioning, make_network
from forethought.learner.ppo import loss, make_batch
from forethought.learner.rollout import Experience, collect
from forethought.learner.subroutines import (
    CALL_STEPS,
    Calls,
    divergence,
    entropy,
    follow,
    hang_up,
    log_policy,
    log_reference,
    no_calls,
)
from forethought.spec import CellTable, ObservationSpec
from forethought.toy import ToyEnvironment

ACTIONS = 5
GOALS = 9


def _call(goal):
    return ACTIONS + goal


def _play(script, done_at=()):
    """Goals pursued and steps left before each step of one environment that chooses as the script says."""
    assigned = jnp.asarray([8])
    calls, pursued, remaining = no_calls(1), [], []
    for step, choice in enumerate(script):
        pursued.append(int(calls.active(assigned)[0]))
        remaining.append(int(calls.remaining[0]))
        calls = follow(calls, jnp.asarray([choice], jnp.int32), ACTIONS)
        calls = hang_up(calls, jnp.asarray([step in done_at]))
    return pursued, remaining


def test_a_call_takes_one_step_and_then_lasts_32():
    pursued, remaining = _play([1, _call(3)] + [0] * 40)
    assert pursued == [8, 8] + [3] * 32 + [8] * 8
    assert remaining == [0, 0, *range(32, 0, -1)] + [0] * 8


def test_a_nested_call_changes_the_goal_and_not_the_deadline():
    pursued, remaining = _play([_call(3)] + [0] * 9 + [_call(5)] + [0] * 30)
    assert pursued == [8] + [3] * 10 + [5] * 22 + [8] * 8
    assert remaining == [0, *range(32, 0, -1)] + [0] * 8


def test_a_call_in_the_last_step_of_a_call_returns_to_the_episodes_goal():
    pursued, _ = _play([_call(3)] + [0] * 31 + [_call(5)] + [0] * 3)
    assert pursued == [8] + [3] * 32 + [8] * 3


def test_the_step_after_a_call_block_can_call_again():
    pursued, _ = _play([_call(3)] + [0] * 32 + [_call(4)] + [0] * 5)
    assert pursued == [8] + [3] * 32 + [8] + [4] * 5


@pytest.mark.parametrize("last", [0, 1, 20, 32])
def test_the_end_of_the_episode_ends_the_call(last):
    pursued, remaining = _play([_call(3)] + [0] * 40, done_at=(last,))
    assert pursued == [8] + [3] * last + [8] * (40 - last)
    assert not any(remaining[last + 1 :])


def test_calls_are_remembered_until_the_episode_ends():
    calls = follow(no_calls(2), jnp.asarray([_call(1), 0]), ACTIONS)
    assert calls.used.tolist() == [True, False]
    assert hang_up(calls, jnp.asarray([True, True])).used.tolist() == [False, False]


def test_the_reference_gives_a_34th_to_all_calls_together():
    eligible = jnp.zeros(GOALS, bool).at[jnp.asarray([1, 4, 6])].set(True)
    mu = np.exp(np.asarray(log_reference(eligible, 43), np.float64))
    np.testing.assert_allclose(mu[:43], 33 / 34 / 43, rtol=1e-6)
    np.testing.assert_allclose(mu[43:], np.asarray(eligible) / 3 / 34, rtol=1e-6)
    np.testing.assert_allclose(mu.sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("goals", [0, GOALS])
def test_with_nothing_to_call_the_reference_is_uniform_over_actions(goals):
    mu = np.exp(np.asarray(log_reference(jnp.zeros(goals, bool), 43), np.float64))
    np.testing.assert_allclose(mu[:43], 1 / 43, rtol=1e-6)
    assert (mu[43:] == 0).all()


def test_policy_is_the_reference_weighted_by_exponentials():
    eligible = np.array([True, False, True, False])
    mu = np.r_[np.full(ACTIONS, 33 / 34 / ACTIONS), eligible / 2 / 34]
    logits = np.random.default_rng(0).normal(size=(3, ACTIONS + 4))
    wanted = mu * np.exp(logits)
    wanted /= wanted.sum(-1, keepdims=True)
    reference = log_reference(jnp.asarray(eligible), ACTIONS)
    log_probs = log_policy(jnp.asarray(logits, jnp.float32), reference)
    np.testing.assert_allclose(np.exp(np.asarray(log_probs, np.float64)), wanted, rtol=2e-6)
    kl = (wanted * np.log(np.where(mu > 0, wanted, 1) / np.where(mu > 0, mu, 1))).sum(-1)
    np.testing.assert_allclose(divergence(log_probs, reference), kl, atol=1e-6)
    assert np.isfinite(np.asarray(log_probs)).all()


def test_what_may_not_be_called_has_probability_zero_and_no_gradient():
    eligible = jnp.asarray([True, False, False])
    reference = log_reference(eligible, ACTIONS)

    def score(logits):
        log_probs = log_policy(logits, reference)
        return divergence(log_probs, reference) + entropy(log_probs) + log_probs[0], log_probs

    for scale in (1.0, 80.0):
        logits = scale * jax.random.normal(jax.random.key(1), (ACTIONS + 3,))
        gradient, log_probs = jax.grad(score, has_aux=True)(logits)
        assert jnp.isfinite(gradient).all()
        assert (gradient[-2:] == 0).all()
        assert (jnp.exp(log_probs[-2:]) == 0).all()
        choices = jax.vmap(jax.random.categorical, (0, None))(jax.random.split(jax.random.key(2), 500), log_probs)
        assert (choices < ACTIONS + 1).all()


def test_with_nothing_to_call_the_penalty_is_log_of_the_actions_less_the_entropy():
    reference = log_reference(jnp.zeros(GOALS, bool), 43)
    plain = jax.random.normal(jax.random.key(0), (4, 43))
    logits = jnp.concatenate([plain, jax.random.normal(jax.random.key(1), (4, GOALS))], axis=-1)

    def penalty(logits):
        return divergence(log_policy(logits, reference), reference).mean()

    def bonus(logits):
        log_probs = jax.nn.log_softmax(logits[:, :43])
        return -(jnp.exp(log_probs) * log_probs).sum(-1).mean()

    np.testing.assert_allclose(penalty(logits), np.log(43) - bonus(logits), atol=1e-6)
    np.testing.assert_allclose(jax.grad(penalty)(logits), -jax.grad(bonus)(logits), atol=1e-7)


@pytest.fixture(scope="module")
def caller(tiny):
    """A learner that calls often: every goal is eligible, and calls have high logits."""
    learner, state = tiny(ToyEnvironment(4, episode_limit=50), subroutines=True)
    network = eqx.tree_at(
        lambda network: network.actor.layers[-1].bias, state.network, replace_fn=lambda bias: bias.at[ACTIONS:].add(2.0)
    )
    return learner, state._replace(network=network)


def _collect(learner, network, length, eligible=None, goals=(7, 7, 3, 8)):
    rollout = learner.begin(
        jax.random.key(5), np.asarray(goals), np.ones(GOALS, bool) if eligible is None else eligible
    )
    run = jax.jit(lambda n, r, k: collect(learner.environment, n, r, learner.goal_embeddings, k, length))
    return rollout, *run(network, rollout, jax.random.key(6))


@pytest.fixture(scope="module")
def played(caller):
    learner, state = caller
    return _collect(learner, state.network, 128)


def test_the_rollout_follows_the_rules_of_calls(played):
    _, _, experience, _ = played
    choice, calls, done = (np.asarray(x) for x in (experience.choice, experience.calls.remaining, experience.done))
    assert (choice >= ACTIONS).sum() > 10
    assert done.sum() > 2
    for env in range(4):
        expected = no_calls(1)
        for t in range(128):
            assert calls[t, env] == expected.remaining[0]
            if expected.remaining[0]:
                assert experience.calls.goal[t, env] == expected.goal[0]
            expected = follow(expected, jnp.asarray([choice[t, env]]), ACTIONS)
            assert experience.called[t, env] == expected.used[0]
            expected = hang_up(expected, jnp.asarray([done[t, env]]))


def test_training_sees_what_acting_saw_with_calls_across_windows_and_episodes(caller, played):
    learner, state = caller
    rollout, _, experience, last_value = played
    config = learner.ppo.model_copy(update={"rollout_length": 128, "window": 4})
    batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
    calls = np.asarray(batch.calls.remaining)
    assert ((calls[:, 0] > 0) & (calls[:, 0] < CALL_STEPS)).any(), "no call crosses a window"
    assigned = jnp.broadcast_to(batch.goals, batch.choice.shape)
    told = Conditioning(assigned, batch.calls.active(assigned), batch.calls.remaining / CALL_STEPS)
    terms = state.network.goal_tables(learner.goal_embeddings).at(told)
    window = jax.jit(lambda n, *a: n.window(*a))
    logits, value = window(state.network, batch.observation, terms, batch.memory, batch.age)
    reference = log_reference(rollout.eligible, ACTIONS)
    all_log_probs = log_policy(logits, reference)
    log_probs = jnp.take_along_axis(all_log_probs, batch.choice[..., None], axis=-1)[..., 0]
    assert jnp.abs(log_probs - batch.log_prob).max() < 1e-5
    assert jnp.abs(value - batch.value).max() < 1e-5

    # The loss looks at the same, and its means run over the decisions outside calls.
    advantage = jnp.arange(batch.choice.size, dtype=jnp.float32).reshape(batch.choice.shape) / batch.choice.size
    known = batch._replace(target=batch.value, advantage=advantage)
    total, means = jax.jit(lambda n, b: loss(n, b, learner.goal_embeddings, reference, config))(state.network, known)
    assert means["ratio_error"] < 1e-5
    assert means["value_loss"] < 1e-9
    outside = ~np.asarray(batch.calls.inside)
    penalty = np.asarray(divergence(all_log_probs, reference), np.float64)[outside].mean()
    gain = np.asarray(advantage, np.float64)[outside].mean()
    np.testing.assert_allclose(means["reference_divergence"], penalty, rtol=1e-4)
    np.testing.assert_allclose(means["policy_loss"], -gain, rtol=1e-4)
    np.testing.assert_allclose(total, config.entropy_coefficient * penalty - gain, rtol=1e-4)


def test_a_call_goes_on_in_the_next_rollout(caller, played):
    learner, state = caller
    _, following, _, last_value = played
    assert following.calls.inside.any()
    run = jax.jit(lambda n, r, k: collect(learner.environment, n, r, learner.goal_embeddings, k, 2))
    _, experience, _ = run(state.network, following, jax.random.key(7))
    assert (experience.calls.remaining[0] == following.calls.remaining).all()
    assert (experience.calls.goal[0] == following.calls.goal)[following.calls.inside].all()
    assert (experience.calls.used[0] == following.calls.used).all()
    assert jnp.abs(experience.value[0] - last_value).max() < 1e-5


def test_a_call_executes_the_action_that_does_nothing(caller):
    network = replace(caller[1].network, noop_action=2)
    wanted = jnp.asarray([3, _call(6), _call(0), 0])
    logits = 100 * jax.nn.one_hot(wanted, ACTIONS + GOALS)
    step = Step(logits, jnp.zeros(4), empty_memory(network, 4), jnp.zeros((2, 4, 16)))
    reference = log_reference(jnp.ones(GOALS, bool), ACTIONS)
    chosen = sample(network, step, reference, jax.random.split(jax.random.key(0), 4))
    assert chosen.choice.tolist() == wanted.tolist()
    assert chosen.action.tolist() == [3, 2, 2, 0]
    assert chosen.memory.calls.remaining.tolist() == [0, CALL_STEPS, CALL_STEPS, 0]


def test_the_metrics_count_calls_and_the_episodes_with_one(played):
    # The first episode calls and succeeds three steps after it has returned; the second one does not call; the third
    # calls, and calls again meanwhile, in the step in which it fails.
    choice = jnp.zeros(60, jnp.int32).at[jnp.asarray([4, 50, 55])].set(_call(1))
    remaining = jnp.zeros(60, jnp.int32).at[5:37].set(jnp.arange(32, 0, -1)).at[51:56].set(jnp.arange(32, 27, -1))
    called = jnp.zeros(60, bool).at[4:40].set(True).at[50:56].set(True)
    success = jnp.zeros(60, bool).at[39].set(True).at[45].set(True)
    failure = jnp.zeros(60, bool).at[55].set(True)
    experience = played[2]._replace(
        choice=choice[:, None],
        calls=Calls(*(x[:, None] for x in (choice, remaining, called))),
        called=called[:, None],
        outcome=Outcome(*(x[:, None] for x in (success, failure, jnp.zeros(60, bool)))),
    )
    counts = {name: int(count) for name, count in _call_counts(experience, ACTIONS).items()}
    assert counts == {"calls": 3, "steps_in_calls": 33 + 6, "episodes_with_call": 2, "successes_with_call": 1}


def test_the_actor_is_told_the_active_goal_and_the_critic_both_and_the_time(caller):
    learner, state = caller
    network = state.network
    observation = learner.environment.reset(jax.random.key(0), jnp.zeros(4, jnp.int32))[1]
    tables = network.goal_tables(learner.goal_embeddings)
    goals = jnp.asarray([0, 0, 0, 0])
    step = jax.jit(evaluate_step)

    def outputs(assigned, active, remaining):
        told = Conditioning(goals + assigned, goals + active, jnp.full(4, remaining, jnp.float32))
        result = step(network, empty_memory(network, 4), observation, tables.at(told))
        return result.logits, result.value, result.hidden

    base = outputs(0, 1, 0.5)
    other = outputs(2, 1, 0.5)
    assert (base[0] == other[0]).all()
    assert (base[1] != other[1]).all()
    time = outputs(0, 1, 0.25)
    assert (base[0] == time[0]).all()
    assert (base[1] != time[1]).all()
    active = outputs(0, 2, 0.5)
    assert (base[0] != active[0]).any()
    assert (base[1] != active[1]).all()
    # What is remembered does not depend on goals.
    assert (base[2] == active[2]).all()
    assert (base[2] == other[2]).all()


def test_only_decisions_outside_calls_move_the_actor_and_every_step_moves_the_critic(caller, played):
    learner, state = caller
    rollout, _, experience, last_value = played
    config = learner.ppo.model_copy(update={"rollout_length": 128, "entropy_coefficient": 0.0})
    batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
    reference = log_reference(rollout.eligible, ACTIONS)
    inside = batch.calls.inside
    assert 0.2 < float(inside.mean()) < 1
    measure = jax.jit(jax.grad(lambda n, b: loss(n, b, learner.goal_embeddings, reference, config)[0]))
    base = measure(state.network, batch)
    # Another advantage or another stored probability inside calls changes nothing of the actor.
    changed = batch._replace(
        advantage=jnp.where(inside, 100.0, batch.advantage), log_prob=jnp.where(inside, -9.0, batch.log_prob)
    )
    again = measure(state.network, changed)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), base, again)
    assert all(jax.tree.leaves(same))
    # Another target inside calls moves the critic.
    other = measure(state.network, batch._replace(target=jnp.where(inside, 5.0, batch.target)))
    assert (other.critic.layers[-1].bias != base.critic.layers[-1].bias).all()


def test_advantages_are_normalised_over_decisions_outside_calls(caller, played):
    learner, _ = caller
    rollout, _, experience, last_value = played
    config = learner.ppo.model_copy(update={"rollout_length": 128})
    batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
    outside = np.asarray(batch.advantage)[~np.asarray(batch.calls.inside)].astype(np.float64)
    np.testing.assert_allclose([outside.mean(), outside.std()], [0, 1], atol=1e-4)


def test_a_minibatch_inside_calls_adds_no_actor_loss_and_no_nan(caller, played):
    learner, state = caller
    rollout, _, experience, last_value = played
    config = learner.ppo.model_copy(update={"rollout_length": 128})
    batch = make_batch(experience, rollout.goals, rollout.hidden, last_value, config)
    batch = batch._replace(calls=batch.calls._replace(remaining=jnp.ones_like(batch.calls.remaining)))
    reference = log_reference(rollout.eligible, ACTIONS)
    gradient, means = jax.jit(
        jax.grad(lambda n: loss(n, batch, learner.goal_embeddings, reference, config), has_aux=True)
    )(state.network)
    assert means["policy_loss"] == 0
    assert means["reference_divergence"] == 0
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))
    assert all((layer.weight == 0).all() for layer in gradient.actor.layers)


def test_a_reward_inside_a_call_credits_the_decision_that_made_it(caller):
    learner, _ = caller
    config = learner.ppo.model_copy(update={"rollout_length": 16, "window": 4})
    steps, envs = 16, 2
    remaining = np.zeros((steps, envs), np.int32)
    remaining[4:10, 0] = np.arange(32, 26, -1)  # called at step 3, succeeds at step 9
    success = np.zeros((steps, envs), bool)
    success[9, 0] = True
    never = np.zeros_like(success)
    zeros = jnp.zeros((steps, envs), jnp.int32)
    observation = jax.tree.map(
        lambda x: jnp.zeros((steps, envs, *x.shape[1:]), x.dtype),
        learner.environment.reset(jax.random.key(0), jnp.zeros(4, jnp.int32))[1],
    )
    experience = Experience(
        observation,
        zeros,
        Calls(zeros, jnp.asarray(remaining), jnp.asarray(remaining > 0)),
        zeros,
        jnp.zeros((steps, envs)),
        jnp.zeros((steps, envs)),
        jnp.zeros((steps, 2, envs, 16)),
        Outcome(*(jnp.asarray(x) for x in (success, never, never))),
        jnp.asarray(never),
    )
    batch = make_batch(experience, jnp.zeros(envs, jnp.int32), jnp.zeros((4, 2, envs, 16)), jnp.zeros(envs), config)
    target = np.asarray(batch.target).reshape(steps, envs)
    np.testing.assert_allclose(target[3, 0], (config.discount * config.gae_lambda) ** 6, rtol=1e-5)
    advantage = np.asarray(batch.advantage).reshape(steps, envs)
    assert advantage[3, 0] == advantage[remaining == 0].max()


def test_no_call_survives_a_new_start_and_eligibility_is_data(caller):
    learner, state = caller
    update = learner.update
    rollout = learner.begin(jax.random.key(1), np.arange(4), np.ones(GOALS, bool))
    state = jax.tree.map(jnp.copy, state)
    state, rollout, report = update(state, rollout, jax.random.key(2))
    assert rollout.calls.inside.any()
    assert report.metrics["first_ratio_error"] < 1e-5
    assert int(report.calls.sum()) == int(report.metrics["calls"]) > 0
    again = learner.begin(jax.random.key(1), np.arange(4), np.arange(GOALS) == 3)
    assert not again.calls.inside.any()
    assert not again.calls.used.any()
    state, again, report = update(state, again, jax.random.key(2))
    assert int(report.calls[3]) == int(report.metrics["calls"])
    none = learner.begin(jax.random.key(1), np.arange(4))
    assert report.metrics["first_ratio_error"] < 1e-5
    state, none, report = update(state, none, jax.random.key(2))
    assert report.metrics["first_ratio_error"] < 1e-5
    assert int(report.metrics["calls"]) == int(report.metrics["steps_in_calls"]) == 0
    assert learner._update._cache_size() == 1


class RelayState(NamedTuple):
    goal: jax.Array
    step: jax.Array
    streak: jax.Array
    signal: jax.Array
    key: jax.Array


class Relay:
    """A signal of four values changes at random with every step.

    Goals 1 and 2 take three answers in a row, to the signal or to its successor. Goal 0 takes `STREAK` answers to the
    signal in a row: not to be hit upon by chance, but easy for one who has goal 1 and calls it.
    """

    num_actions = 5
    noop_action = 0
    observation_spec = ObservationSpec(1, 1, (CellTable("cell", 2),), 4)
    queue_capacity = 1
    STREAK = 20
    LIMIT = 40

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def reset(self, key, goals):
        zeros = jnp.zeros(self.num_envs, jnp.int32)
        keys = jax.random.split(key, self.num_envs)
        state = RelayState(jnp.array(goals), zeros, jnp.copy(zeros), self._draw(keys), keys)
        return state, self._observe(state)

    def begin(self, keys, goals):
        raise NotImplementedError

    def enqueue(self, state, keys, goals):
        raise NotImplementedError

    def _draw(self, keys):
        return jax.vmap(lambda key: jax.random.randint(key, (), 0, 4))(keys)

    def _observe(self, state):
        cells = jnp.zeros((self.num_envs, 1, 1, 1), jnp.uint8)
        return Observation(cells, jax.nn.one_hot(state.signal, 4))

    def step(self, state, actions):
        answers = actions == 1 + (state.signal + (state.goal == 2)) % 4
        streak = jnp.where(answers, state.streak + 1, 0)
        success = streak >= jnp.where(state.goal == 0, self.STREAK, 3)
        outcome = Outcome(success, jnp.zeros_like(success), state.step + 1 >= self.LIMIT)
        keys = jax.vmap(jax.random.fold_in, (0, None))(state.key, 1)
        fresh = RelayState(
            state.goal,
            jnp.where(outcome.done, 0, state.step + 1),
            jnp.where(outcome.done, 0, streak),
            self._draw(keys),
            keys,
        )
        return fresh, self._observe(fresh), outcome

    def assignment(self, state):
        return Assignment(state.goal, state.key, state.step, state.step >= 0)

    def metrics(self, state):
        return {}


@pytest.mark.parametrize("subroutines", [True, False])
def test_what_only_a_call_can_solve_is_solved_by_calling(tiny, subroutines):
    goals = np.repeat([0, 1, 2], 8)
    learner, state = tiny(
        Relay(24),
        {"blocks": 1, "convolutions": 0, "memory": 2, "head_units": 64, "width": 32},
        {
            "rollout_length": 40,
            "window": 8,
            "minibatches": 4,
            "learning_rate": 2e-3,
            "discount": 0.99,
            "entropy_coefficient": 0.05,
        },
        jitter=0.0,
        subroutines=subroutines,
    )
    rates = []
    for number in range(240):
        if number in (0, 50):
            rollout = learner.begin(jax.random.key(1), goals, np.isin(np.arange(GOALS), [1, 2]) & (number > 0))
        state, rollout, update = learner.update(state, rollout, jax.random.key(number))
        done, success = np.asarray(update.done), np.asarray(update.success)
        rates.append([x[:, part].sum() for part in (slice(8), slice(8, 24)) for x in (done, success)])
    ended, reached, short_ended, short_reached = np.sum(rates[-30:], axis=0)
    assert short_reached / short_ended > 0.9
    if subroutines:
        assert reached / ended > 0.6
    else:
        assert reached == 0


def test_a_wrong_number_of_flags_is_named(caller):
    with pytest.raises(ValueError, match=r"eligible has shape \(3,\), but there are 9 goals"):
        caller[0].begin(jax.random.key(0), np.arange(4), np.ones(3, bool))


def test_calls_need_an_action_that_does_nothing(tiny, probe):
    with pytest.raises(ValueError, match="noop_action is None"):
        tiny(probe(4, "constant"), subroutines=True)


def test_parameter_total_is_the_papers():
    tables = (CellTable("block", 37), CellTable("item", 5), CellTable("creature", 41, 5), CellTable("visible", 2))
    spec = ObservationSpec(9, 11, tables, 51)
    made = jax.eval_shape(lambda k: make_network(k, spec, 43, 512, NetworkConfig(), calls=256), jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(made)) == 6_038_748
