import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.learner.ppo import make_batch, take
from forethought.learner.rollout import collect
from forethought.learner.subroutines import log_reference
from forethought.toy import ToyEnvironment

GOALS = np.arange(4)
REFERENCE = log_reference(jnp.zeros(0, bool), ToyEnvironment.num_actions)


def _run(learner, state, updates, goals=GOALS, begin_at=()):
    rollout = learner.begin(jax.random.key(7), goals)
    reports = []
    for number in range(updates):
        if number in begin_at:
            rollout = learner.begin(jax.random.key(8 + number), goals)
        key = jax.random.fold_in(jax.random.key(1), number)
        state, rollout, update = learner.update(state, rollout, key)
        reports.append(update)
    return state, rollout, reports


@pytest.fixture(scope="module")
def trained(tiny):
    learner, state = tiny(ToyEnvironment(4, episode_limit=9))
    return learner, *_run(learner, state, 4, begin_at=(2,))


def test_first_minibatch_has_ratio_one_in_every_update(trained):
    reports = trained[3]
    assert all(float(report.metrics["first_ratio_error"]) < 1e-5 for report in reports)


def test_one_compilation_serves_all_updates(trained):
    assert trained[0]._update._cache_size() == 1


def test_metrics_count_the_rollout(trained):
    for report in trained[3]:
        metrics = {name: float(value) for name, value in report.metrics.items()}
        assert metrics["steps"] == 64
        assert metrics["episodes"] == report.done.sum()
        assert metrics["successes"] == report.success.sum()
        assert metrics["episodes"] == metrics["successes"] + metrics["deaths"] + metrics["timeouts"]
        assert np.isfinite(list(metrics.values())).all()


def test_no_episode_end_gives_no_nan(tiny):
    learner, state = tiny(ToyEnvironment(4, episode_limit=1000))
    _, _, reports = _run(learner, state, 1, goals=np.full(4, 7))
    metrics = {name: float(value) for name, value in reports[0].metrics.items()}
    assert np.isfinite(list(metrics.values())).all()


def test_state_round_trips_exactly_and_stays_usable(trained):
    learner, state = trained[:2]
    nested = learner.to_dict(state)
    again = learner.from_dict(nested)
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all() & (a.dtype == b.dtype), state, again))
    assert jax.tree.structure(state) == jax.tree.structure(again)
    one, _, _ = _run(learner, learner.from_dict(nested), 1)
    two, _, _ = _run(learner, learner.from_dict(nested), 1)
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), one, two))
    assert learner._update._cache_size() == 1


def test_a_wrong_state_is_named(trained):
    learner, state = trained[:2]
    nested = learner.to_dict(state)
    lacking = {"optimiser": nested["optimiser"]}
    with pytest.raises(KeyError, match="network/"):
        learner.from_dict(lacking)
    wrong = jax.tree.map(lambda x: x, nested)
    wrong["network"]["fuse"]["bias"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="network/fuse/bias"):
        learner.from_dict(wrong)


def _minibatch(learner, network):
    rollout = learner.begin(jax.random.key(7), GOALS)

    @jax.jit
    def make(network, rollout):
        following, experience, last_value = collect(
            learner.environment, network, rollout, learner.goal_embeddings, jax.random.key(2), 16
        )
        batch = make_batch(experience, following.goals, rollout.hidden, last_value, learner.ppo)
        return take(batch, jnp.asarray([2, 0]))

    return make(network, rollout)


@pytest.fixture(scope="module")
def one_step(tiny):
    learner, state = tiny(ToyEnvironment(4, episode_limit=9))
    return learner, state, _minibatch(learner, state.network), jax.jit(learner.learn)


def test_everything_receives_gradient(one_step):
    learner, state, batch, learn = one_step
    after, _ = learn(state, batch, learner.goal_embeddings, REFERENCE)
    found, _ = jax.tree_util.tree_flatten_with_path(after.optimiser)
    moments = {jax.tree_util.keystr(p): leaf for p, leaf in found if ".mu" in jax.tree_util.keystr(p)}
    assert len(moments) == len(jax.tree.leaves(state.network))
    assert [name for name, moment in moments.items() if not (moment != 0).any()] == []
    for name, moment in moments.items():
        if "gate" in name or "expand" in name or "contract" in name:
            assert (moment != 0).mean() > 0.5, name


def test_a_huge_gradient_is_clipped_to_global_norm_one(one_step):
    learner, state, batch, learn = one_step
    huge = batch._replace(target=batch.target + 1e6)
    after, means = learn(state, huge, learner.goal_embeddings, REFERENCE)
    assert means["gradient_norm"] > 1e3
    moments = jax.tree.leaves(after.optimiser[1][0].mu)
    norm = np.sqrt(sum(float((m.astype(np.float64) ** 2).sum()) for m in map(np.asarray, moments)))
    assert norm / 0.1 == pytest.approx(1.0, rel=1e-4)


def test_advantages_are_normalised_over_the_whole_rollout(tiny):
    learner, state = tiny(ToyEnvironment(4, episode_limit=9))
    rollout = learner.begin(jax.random.key(7), GOALS)
    following, experience, last_value = jax.jit(
        lambda n, r: collect(learner.environment, n, r, learner.goal_embeddings, jax.random.key(2), 16)
    )(state.network, rollout)
    batch = make_batch(experience, following.goals, rollout.hidden, last_value, learner.ppo)
    assert abs(float(batch.advantage.mean())) < 1e-5
    assert float(batch.advantage.std()) == pytest.approx(1.0, abs=1e-5)
    part = take(batch, jnp.asarray([1]))
    assert (part.advantage[:, :, 0] == batch.advantage[:, :, 1]).all()
    assert (part.observation.cells[:, :, 0] == batch.observation.cells[:, :, 1]).all()
    assert (part.memory[:, :, 0] == batch.memory[:, :, 1]).all()


def test_bfloat16_runs_with_float32_parameters(tiny):
    learner, state = tiny(ToyEnvironment(4, episode_limit=9), {"compute_dtype": "bfloat16"}, jitter=0.05)
    state, rollout, reports = _run(learner, state, 2)
    assert {leaf.dtype for leaf in jax.tree.leaves(state.network)} == {jnp.dtype("float32")}
    assert rollout.hidden.dtype == jnp.bfloat16
    assert all(np.isfinite(float(v)) for report in reports for v in report.metrics.values())
    assert float(reports[0].metrics["first_ratio_error"]) < 0.2


def test_one_environment_in_64_bit_mode(tiny):
    with jax.enable_x64(True):
        ppo = {"rollout_length": 4, "window": 4, "minibatches": 1}
        learner, _ = tiny(ToyEnvironment(1, episode_limit=5), ppo=ppo)
        state = learner.init(jax.random.key(0))
        state, _, reports = _run(learner, state, 2, goals=np.asarray([3]))
        assert {leaf.dtype for leaf in jax.tree.leaves(state.network)} == {jnp.dtype("float32")}
        assert learner._update._cache_size() == 1
        assert float(reports[1].metrics["first_ratio_error"]) < 1e-5


@pytest.mark.parametrize("goals", [np.arange(3), np.asarray([0, 1, 2, 9]), np.asarray([0, 1, 2, -1])])
def test_wrong_goals_are_named(tiny, goals):
    learner, _ = tiny(ToyEnvironment(4))
    with pytest.raises(ValueError, match="goals"):
        learner.begin(jax.random.key(0), goals)


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="minibatches is 3"):
        Learner(ToyEnvironment(4), np.eye(9), NetworkConfig(), PPOConfig(minibatches=3))
    with pytest.raises(ValueError, match="finite"):
        Learner(ToyEnvironment(4), np.full((9, 2), np.nan), NetworkConfig(), PPOConfig(minibatches=2))
    with pytest.raises(ValueError, match="window is 7"):
        PPOConfig(window=7)
