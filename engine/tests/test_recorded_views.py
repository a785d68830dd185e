"""In Craftax's own recorded games, the engine reaches the goals and sees the cells that forethought's own code does."""

from pathlib import Path

import jax
import numpy as np
import pytest
from conformance.fields import one
from conformance.recording import Recording
from conformance.reference import unflatten

from craftax_native import _core
from forethought.craftax.goal_specs import goal_ids, goal_specs
from forethought.craftax.goal_table import goal_table
from forethought.craftax.observation import observe
from forethought.craftax.success import benchmark_success

GOALS = goal_ids()
EVERY = 5
"""Steps from one comparison to the next; the engine plays them all."""


@pytest.mark.craftax
def test_goals_and_observations_of_craftaxs_own_games(recorded_games: Path):
    recording = Recording.load(recorded_games)
    count = recording.num_envs
    reference = jax.jit(lambda before, after: (jax.vmap(benchmark_success)(before, after), jax.vmap(observe)(after)))
    state = _core.new_state(count, goal_table(GOALS), recording.max_timesteps)
    for env in range(count):
        _core.import_env(state, env, one(recording.first, env))
    reward, done = np.zeros(count, np.float32), np.zeros(count, bool)
    reached = np.zeros((count, len(GOALS)), bool)
    cells, features = np.zeros((count, 9, 11, 8), np.uint8), np.zeros((count, 51), np.float32)
    ever = np.zeros(len(GOALS), bool)

    for step in recording:
        for env in step.renewed:
            _core.import_env(state, env, one(step.before, env))
        _core.step_games(state, step.actions, None, reward, done, reached=reached)
        if step.number % EVERY:
            continue
        flags, seen = jax.tree.map(np.asarray, reference(unflatten(step.before), unflatten(step.after)))
        differing = [(recording.places[env], GOALS[goal]) for env, goal in np.argwhere(reached != flags)]
        assert not differing, (step.number, differing[:10])
        _core.observe(state, cells, features)
        np.testing.assert_array_equal(cells, seen.cells, f"step {step.number}")
        np.testing.assert_array_equal(features.view(np.uint32), seen.features.view(np.uint32), f"step {step.number}")
        ever |= flags.any(0)

    families = {spec.family for spec, once in zip(goal_specs(), ever, strict=True) if once}
    assert families == {spec.family for spec in goal_specs()}
    assert ever.sum() > 200
