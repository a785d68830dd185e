import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from minigrid.minigrid_env import MiniGridEnv
from minigrid.utils.baby_ai_bot import BabyAIBot

from forethought.minigrid import MissionEnv, tasks
from forethought.minigrid.environment import EPISODE_LIMIT
from forethought.minigrid.levels import LEVELS
from forethought.tasks import Task, TaskSet

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)


@pytest.mark.parametrize("task", range(len(LEVELS)), ids=list(LEVELS))
def test_the_library_s_bot_accomplishes_every_mission(task):
    env = MissionEnv(tasks(), task)
    env.see_through_walls = False  # The bot plans paths to whatever it sees.
    for seed in range(5):
        env.reset(seed=seed)
        bot, action, info, terminated, truncated = BabyAIBot(env), None, {}, False, False
        while not (terminated or truncated):
            action = bot.replan(action)
            _, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated, reward, info["is_success"]) == (True, False, 1.0, True)
        assert env.step_count <= 60


def test_the_kept_map_gives_the_library_s_observation_in_every_step():
    rng, carried, opened = np.random.default_rng(0), 0, 0
    for task in range(len(LEVELS)):
        env = MissionEnv(tasks(), task)
        observation, _ = env.reset(seed=task)
        for _ in range(200):
            expected = MiniGridEnv.gen_obs(env)
            np.testing.assert_array_equal(observation["image"], expected["image"])
            assert observation["direction"] == expected["direction"]
            observation, _, terminated, truncated, _ = env.step(int(rng.integers(6)))
            carried += env.carrying is not None
            opened += env.get_room(0, 0).doors[0].is_open
            if terminated or truncated:
                observation, _ = env.reset()
    assert carried > 100
    assert opened > 100


@pytest.mark.parametrize(("id", "level"), LEVELS.items())
def test_a_level_is_set_up_as_its_task_says(id, level):
    env = MissionEnv(tasks(), tasks().index(id))
    for seed in range(3):
        env.reset(seed=seed)
        for room, names in enumerate((level.here, level.middle, level.far)):
            found = {f"{thing.color} {thing.type}" for thing in env.get_room(room, 0).objs}
            assert found == set(names)
        for room, name, state in ((0, "yellow door", level.door), (1, "purple door", level.far_door)):
            door = env.get_room(room, 0).doors[0]
            assert f"{door.color} {door.type}" == name
            assert (door.is_open, door.is_locked) == (state == "open", state == "locked")
        assert env.room_from_pos(*env.agent_pos) is env.get_room(0, 0)
        text = tasks()[env.task].text.lower()
        for thing in {name for step in level.steps for name in step[1:]}:
            assert thing in text
            assert thing in env.mission


def test_a_task_counts_from_the_next_reset_on():
    env = MissionEnv(tasks())
    env.reset(seed=0)
    env.set_task(tasks().index("open_door"))
    env.step(LEFT)
    assert env.mission == "go to the red ball"
    env.reset()
    assert env.mission == "open the yellow door"


def test_task_numbers_are_those_of_the_task_set_given():
    env = MissionEnv(tasks().restrict(["pickup_key", "goto_door"]), 1)
    env.reset(seed=0)
    assert env.mission == "go to the yellow door"
    with pytest.raises(ValueError, match=r"task is 2; allowed: 0 to 1"):
        env.set_task(2)
    with pytest.raises(ValueError, match=r"task is -1"):
        env.set_task(-1)


def test_a_mission_that_is_unknown_is_named():
    with pytest.raises(ValueError, match=r"'fly' is no mission; allowed: goto_ball"):
        MissionEnv(TaskSet([Task("fly", "Fly.")]))
    with pytest.raises(ValueError, match=r"max_steps is 0"):
        MissionEnv(max_steps=0)


def test_an_episode_is_cut_off_after_its_limit_without_success():
    env = MissionEnv(tasks(), tasks().index("pickup_box_far"))
    env.reset(seed=0)
    for step in range(1, EPISODE_LIMIT + 1):
        _, reward, terminated, truncated, info = env.step(LEFT)
        assert (reward, terminated, info["is_success"]) == (0.0, False, False)
        assert truncated == (step == EPISODE_LIMIT)


def test_the_same_seed_gives_the_same_rooms():
    def first(seed):
        return MissionEnv(tasks(), 9).reset(seed=seed)[0]["image"]

    np.testing.assert_array_equal(first(3), first(3))
    assert any((first(3) != first(seed)).any() for seed in (4, 5))


def test_gymnasium_s_checker_is_content():
    check_env(MissionEnv(tasks(), 3), skip_render_check=True)
