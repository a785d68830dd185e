import json

import equinox as eqx
import jax
import numpy as np
import pytest

from forethought.evaluation import Evaluator
from forethought.learner import Learner, NetworkConfig, PPOConfig
from forethought.learner.subroutines import CALL_STEPS
from forethought.toy.environment import ToyEnvironment
from forethought.toy.goals import GOAL_IDS
from forethought.trace import write_trace

TINY = NetworkConfig(
    cell_embedding=4, cell_features=4, convolutions=1, channels=4, feature_units=8, observation_units=8,
    fuse_units=8, width=8, blocks=1, heads=2, memory=4, feedforward=8, head_units=8, head_layers=1,
)  # fmt: skip
ELIGIBLE = np.isin(GOAL_IDS, ["move", "wood", "corner-nw"])
GOAL = GOAL_IDS.index("gem-se")


def make_environment(num_envs, *, queue_capacity=8):
    return ToyEnvironment(num_envs, GOAL_IDS, episode_limit=90, queue_capacity=queue_capacity)


@pytest.fixture(scope="module")
def caller():
    vectors = np.eye(len(GOAL_IDS), 16, dtype=np.float32)
    learner = Learner(make_environment(2), vectors, TINY, PPOConfig(minibatches=1), subroutines=True)
    state = learner.init(jax.random.key(0))
    network = eqx.tree_at(
        lambda network: network.actor.layers[-1].bias, state.network, replace_fn=lambda bias: bias.at[5:].add(2.0)
    )
    return learner, state._replace(network=network)


@pytest.fixture(scope="module")
def trace(caller, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "episode.jsonl"
    steps = write_trace(path, *caller, make_environment(1), GOAL_IDS, GOAL, ELIGIBLE, seed=3)
    header, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == steps
    return header, lines


def test_each_line_follows_from_the_one_before(trace):
    header, lines = trace
    assert header["goal"] == "gem-se"
    assert header["eligible"] == ["move", "corner-nw", "wood"]
    pursuing, remaining = "gem-se", 0
    for number, line in enumerate(lines):
        assert (line["step"], line["pursuing"], line["remaining"]) == (number, pursuing, remaining)
        assert (line["action"] is None) == (line["calls"] is not None)
        remaining = max(remaining - 1, 0) if remaining or line["calls"] is None else CALL_STEPS
        pursuing = (line["calls"] or pursuing) if remaining else "gem-se"
    assert {line["calls"] for line in lines} == {None, "move", "corner-nw", "wood"}


def test_only_the_last_line_ends_the_episode(trace):
    _, lines = trace
    assert not any("success" in line for line in lines[:-1])
    assert lines[-1]["success"] or lines[-1]["terminated"] or lines[-1]["truncated"]


def test_the_episode_is_the_evaluations_first(caller, trace):
    learner, state = caller
    evaluator = Evaluator(learner, make_environment, GOAL_IDS, goals=[GOAL], episodes=1, seed=3)
    result = evaluator.run(state, ELIGIBLE)
    assert result.successes.sum() == trace[1][-1]["success"]
    assert result.episodes_with_call.sum() == 1
    assert result.successes_with_call.sum() == result.successes.sum()
    assert evaluator.run(state).episodes_with_call.sum() == 0


def test_one_environment_is_asked_for(caller, tmp_path):
    with pytest.raises(ValueError, match="1 environment, not 2"):
        write_trace(tmp_path / "x", *caller, make_environment(2), GOAL_IDS, GOAL)
