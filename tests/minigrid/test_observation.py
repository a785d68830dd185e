import numpy as np
import pytest
from minigrid.core.world_object import Ball, Door, Wall

from forethought.minigrid import FlatObservation, MissionEnv, tasks
from forethought.minigrid.levels import LEVELS
from forethought.minigrid.observation import WORDS


@pytest.fixture
def env():
    return FlatObservation(MissionEnv(tasks()))


def flat(env, cell, direction=0, mission=""):
    image = np.zeros((7, 7, 3), np.uint8)
    image[..., 0] = 1
    image[2, 5] = cell
    return env.observation({"image": image, "direction": direction, "mission": mission})


def test_a_cell_tells_kind_colour_and_state(env):
    start = 12 * (7 * 2 + 5)
    for thing, ones in (
        (Wall(), [0]),
        (Ball("blue"), [3, 6]),
        (Door("yellow", is_locked=True), [1, 7, 11]),
        (Door("purple", is_open=True), [1, 8, 9]),
        (Door("purple"), [1, 8, 10]),
    ):
        vector = flat(env, thing.encode())
        assert np.flatnonzero(vector[: 12 * 49]).tolist() == [start + one for one in ones]


def test_direction_and_words_follow_the_view(env):
    vector = flat(env, (1, 0, 0), direction=2, mission="pick up the red ball, then open the yellow door")
    assert np.flatnonzero(vector[588:592]).tolist() == [2]
    said = [word for word, present in zip(WORDS, vector[592:], strict=True) if present]
    assert said == ["pick", "up", "open", "then", "red", "yellow", "ball", "door"]


def test_the_vocabulary_holds_every_word_of_every_mission(env):
    said = set()
    for task in range(len(LEVELS)):
        env.unwrapped.set_task(task)
        observation, _ = env.reset(seed=task)
        assert env.observation_space.contains(observation)
        said |= set(env.unwrapped.mission.replace(",", " ").split())
    assert said - {"the"} == set(WORDS)


def test_own_words_make_own_numbers():
    env = FlatObservation(MissionEnv(tasks()), words=("ball", "moon"))
    observation, _ = env.reset(seed=0)
    assert observation.shape == (12 * 49 + 4 + 2,)
    assert observation[-2:].tolist() == [1, 0]
