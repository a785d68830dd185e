"""An episode is played again from its seed and actions, and refused where it turns out otherwise."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.replay import Recording, read_recording, replay
from forethought.toy.environment import ToyEnvironment
from forethought.toy.goals import GOAL_IDS
from forethought.trace import episode_key

NORTH, STAY = 1, 0


@pytest.fixture(scope="module")
def environment():
    return ToyEnvironment(1, GOAL_IDS, episode_limit=6)


def line(step, action, **end):
    calls = "move" if action is None else None
    return {"step": step, "pursuing": "gem", "remaining": 0, "action": action, "calls": calls, "value": 0.0} | end


TIMEOUT = {"success": False, "terminated": False, "truncated": True}
STEPS = [*(line(number, None if number == 2 else STAY) for number in range(5)), line(5, STAY, **TIMEOUT)]


def test_what_was_seen_is_seen_again(environment):
    seen = list(replay(Recording("gem", 1, 4, STEPS), environment, GOAL_IDS))
    keys = jax.random.wrap_key_data(jnp.asarray(episode_key(4, "gem", 1)))
    _, expected = environment.begin(keys, jnp.asarray([GOAL_IDS.index("gem")]))
    np.testing.assert_array_equal(seen[0][0].cells, expected.cells[0])
    assert len(seen) == 7
    assert seen[0][1] is None
    assert bool(seen[-1][1].truncated[0])
    times = [float(observation.features[3]) for observation, _ in seen[:-1]]
    np.testing.assert_allclose(times, np.arange(6) / 6, rtol=1e-6)


@pytest.mark.parametrize(
    ("steps", "number"),
    [
        ([*STEPS[:5], line(5, STAY, **TIMEOUT | {"success": True})], 6),
        ([line(0, STAY, **TIMEOUT)], 1),
        ([*STEPS[:5], line(5, STAY)], 6),
    ],
)
def test_an_episode_that_ends_otherwise_is_refused(environment, steps, number):
    with pytest.raises(ValueError, match=f"step {number} of the episode ends otherwise than it did"):
        list(replay(Recording("gem", 1, 4, steps), environment, GOAL_IDS))


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


HEADER = {"goal": "gem", "episode": 1, "seed": 4, "call_steps": 32}


def test_a_trace_is_a_recording(tmp_path):
    assert read_recording(write(tmp_path / "t.jsonl", HEADER, *STEPS)) == Recording("gem", 1, 4, STEPS)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "line 1"),
        ([{"goal": "gem"}], "line 1: not an episode of forethought eval --trace: 'episode'"),
        ([7], "line 1"),
        ([HEADER], "the episode has no end"),
        ([HEADER, *STEPS[:3]], "line 4: .*the episode has no end"),
        ([HEADER, STEPS[0], *STEPS[2:]], "line 3: .*a step is missing"),
        ([HEADER, *STEPS[:2], {"step": 2}], "line 4: .*a step is missing"),
    ],
)
def test_a_file_that_is_no_whole_trace_is_refused_with_its_line(tmp_path, records, message):
    with pytest.raises(ValueError, match=message):
        read_recording(write(tmp_path / "t.jsonl", *records))
    with pytest.raises(ValueError, match="no such file"):
        read_recording(tmp_path / "nothing")


def test_the_end_is_told_in_words():
    def end(**last):
        return Recording("gem", 0, 0, [*STEPS[:2], line(2, STAY, **TIMEOUT | last)]).outcome

    assert end() == "not reached within 3 steps"
    assert end(terminated=True) == "died after 3 steps"
    assert end(terminated=True, success=True) == "reached after 3 steps"
