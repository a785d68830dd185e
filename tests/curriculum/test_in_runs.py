"""The methods of others in a run: their inputs come from the configuration, their state lies in the checkpoints."""

import numpy as np
import pytest

from forethought import toy
from forethought.config import ConfigError, load_config
from forethought.curriculum import Curriculum
from forethought.domains import load_domain
from forethought.graphs import Interestingness, LearningConnectivity

OTHERS = ("learnability", "plr", "mastering-rate", "thompson", "omni")

SMALL = {
    "iterations": 4, "checkpoint_minutes": 0, "curriculum.warmup": 1,
    "tasks.goals_per_iteration": 4, "environment.envs_per_goal": 2,
    "environment.steps_per_iteration": 16, "environment.episode_limit": 8,
    "ppo.rollout_length": 8, "ppo.window": 4, "ppo.minibatches": 2,
    "network.cell_embedding": 4, "network.cell_features": 4, "network.channels": 4,
    "network.feature_units": 8, "network.observation_units": 8, "network.fuse_units": 8,
    "network.width": 8, "network.heads": 2, "network.memory": 4, "network.feedforward": 8,
    "network.head_units": 8, "network.head_layers": 1,
    "evaluation.every": 4, "evaluation.episodes": 2, "evaluation.num_envs": 16, "evaluation.chunk": 8,
}  # fmt: skip


@pytest.fixture
def judged(tmp_path):
    """A file over the toy's goals, in another order: the last goal named makes the first boring."""
    ids = toy.tasks().ids[::-1]
    interesting = np.ones((len(ids), len(ids)))
    interesting[0, -1] = 0
    Interestingness.from_judgments(ids, interesting).save(tmp_path / "boring.json")
    return str(tmp_path / "boring.json")


@pytest.mark.parametrize("method", OTHERS)
def test_a_run_finds_what_each_method_needs(method, judged):
    config = load_config("toy", overrides={"method": method, "interestingness": judged})
    domain = load_domain(config)
    curriculum = Curriculum(
        domain.tasks,
        connectivity=domain.connectivity,
        feasibility=domain.feasibility,
        interestingness=domain.interestingness,
        method=config.method,
        config=config.curriculum,
    )
    assert curriculum.sample(4).shape == (4,)


@pytest.mark.filterwarnings("ignore:no evidence is left")
def test_judgments_are_matched_by_id_and_cut_to_the_goals(judged):
    ids = toy.tasks().ids
    goals = (ids[0], ids[2], ids[-1])
    domain = load_domain(load_config("toy", overrides={"tasks.goals": goals, "interestingness": judged}))
    assert domain.interestingness is not None
    assert domain.interestingness.ids == goals
    assert domain.interestingness.weights.toarray().tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert load_domain(load_config("toy")).interestingness is None


def test_a_bad_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"interestingness: nowhere\.json given, but there is no such file"):
        load_domain(load_config("toy", overrides={"interestingness": "nowhere.json"}))
    file = tmp_path / "c.json"
    LearningConnectivity.from_weights(("a", "b"), np.zeros((2, 2))).save(file)
    with pytest.raises(ConfigError, match=r"cannot be used: .*'interestingness' is needed"):
        load_domain(load_config("toy", overrides={"interestingness": str(file)}))
    Interestingness.from_judgments(("a", "b"), np.ones((2, 2))).save(file)
    with pytest.raises(ConfigError, match="interestingness graph does not know this task"):
        load_domain(load_config("toy", overrides={"interestingness": str(file)}))


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_a_run_that_was_stopped_goes_on_exactly(method, judged, tmp_path):
    from polars.testing import assert_frame_equal

    from forethought.progress import SilentReporter
    from forethought.rundir import RunDirectory
    from forethought.training import train

    class Stop(SilentReporter):
        def iteration(self, row, top):
            import os
            import signal

            if row["iteration"] == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    config = load_config("toy", overrides=SMALL | {"method": method, "interestingness": judged})
    train(config, tmp_path / "whole", reporter=SilentReporter())
    assert train(config, tmp_path / "cut", reporter=Stop()).interrupted
    train(config, tmp_path / "cut", resume=True, reporter=SilentReporter())
    whole, cut = (RunDirectory(tmp_path / name) for name in ("whole", "cut"))
    assert_frame_equal(whole.curriculum(), cut.curriculum(), check_exact=True)
    assert "interestingness" in whole.meta["hashes"]


def test_a_suite_names_the_methods_of_others(judged, tmp_path):
    from forethought.experiments.suites import load_suite

    suite = tmp_path / "others.toml"
    suite.write_text(
        f"[settings.laptop]\ninterestingness = {judged!r}\n[[blocks]]\nover = 'uniform'\n"
        f"methods = {['alp', *OTHERS]}\nseeds = [0, 1]\n",
        encoding="utf-8",
    )
    runs = load_suite(suite, "laptop").runs
    assert [run.method for run in runs] == ["alp", *OTHERS] * 2
    assert len({run.directory for run in runs}) == 12
    assert all(run.config.interestingness == judged for run in runs)
