"""A run on Craftax itself: training, evaluation, continuing."""

import jax
import numpy as np
import pytest
from polars.testing import assert_frame_equal

from forethought import checkpoint
from forethought.config import load_config
from forethought.progress import SilentReporter
from forethought.rundir import RunDirectory
from forethought.training import train

SMALL = {
    "iterations": 3, "checkpoint_minutes": 0, "curriculum.warmup": 1, "environment.pool_size": 8,
    "tasks.goals_per_iteration": 4, "environment.envs_per_goal": 1,
    "environment.steps_per_iteration": 32, "environment.episode_limit": 16,
    "ppo.rollout_length": 16, "ppo.window": 8, "ppo.minibatches": 2, "network.memory": 8,
    "evaluation.every": 3, "evaluation.episodes": 2, "evaluation.num_envs": 4, "evaluation.chunk": 8,
    "evaluation.goals": ("have_1_wood", "have_4_wood"),
}  # fmt: skip


class StopAfter(SilentReporter):
    def __init__(self, iteration):
        self.last = iteration

    def iteration(self, row, top):
        if row["iteration"] == self.last:
            raise ConnectionError("killed")


@pytest.mark.craftax
@pytest.mark.parametrize(("backend", "learner"), [("jax", "primitive"), ("engine", "subroutines")])
def test_an_interrupted_run_on_craftax_continues_exactly(tmp_path, backend, learner):
    if backend == "engine":
        pytest.importorskip("craftax_native")
    config = load_config("demo", overrides=SMALL | {"environment.backend": backend, "learner": learner})
    compiled_at, now = [], [0]

    class Count(SilentReporter):
        def iteration(self, row, top):
            now[0] = row["iteration"]

    def listen(event, seconds, **_):
        if "backend_compile" in event:
            compiled_at.append(now[0])

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        train(config, tmp_path / "whole", reporter=Count())
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled_at
    assert max(compiled_at) == 0

    with pytest.raises(ConnectionError):
        train(config, tmp_path / "cut", reporter=StopAfter(2))
    train(config, tmp_path / "cut", resume=True, reporter=SilentReporter())

    whole, cut = (RunDirectory(tmp_path / name) for name in ("whole", "cut"))
    assert_frame_equal(whole.curriculum(), cut.curriculum())
    assert_frame_equal(whole.evaluations(), cut.evaluations())
    assert whole.metrics()["iteration"].to_list() == cut.metrics()["iteration"].to_list() == [1, 2, 3]
    states = [checkpoint.load_latest(run.checkpoints) for run in (whole, cut)]
    assert states[0] is not None
    assert states[1] is not None
    jax.tree.map(np.testing.assert_array_equal, states[0].arrays, states[1].arrays)
    assert states[0].info == states[1].info
    assert whole.evaluations()["episodes"].to_list() == [2] * 4
