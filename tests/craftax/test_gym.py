"""The Gymnasium face: Gymnasium's own check, tasks, worlds of evaluations, both backends, goals of one's own."""

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from forethought.craftax import Goal, embeddings, goals
from forethought.craftax.gym import ENV_ID, CraftaxGoals
from forethought.craftax.interface import ACTIONS

pytest.importorskip("craftax_native")

DO, NOOP = ACTIONS.index("do"), 0


def make(goals=("have_1_wood", "see_cow", "see_coal"), **settings):
    return CraftaxGoals(goals, **({"episode_limit": 30} | settings))


def play(env, actions):
    """Observations and ends of an episode."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((observation, reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return seen


def test_it_passes_gymnasiums_check():
    env = gymnasium.make(ENV_ID, goals=["have_1_wood", "see_cow"], render_mode="rgb_array")
    assert isinstance(env.unwrapped, CraftaxGoals)
    assert env.unwrapped.backend == "engine"
    check_env(env.unwrapped, skip_close_check=True)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original_does(copied):
    """As planners and processes need it."""
    env = make(("reach_floor_8", "see_cow"))
    env.reset(seed=3, options={"goal": "reach_floor_8"})
    actions = np.random.default_rng(2).integers(0, 43, 20)
    play(env, actions[:6])
    other = copied(env)
    for a, b in zip(play(env, actions), play(other, actions), strict=True):
        np.testing.assert_array_equal(a[0]["cells"], b[0]["cells"])
        assert a[1:] == b[1:]
    np.testing.assert_array_equal(env.reset()[0]["cells"], other.reset()[0]["cells"])


def test_every_goal_of_the_benchmark_is_there_with_its_text_and_vector():
    env = CraftaxGoals()
    assert len(env.tasks) == 256
    observation, info = env.reset(seed=0, options={"goal": "defeat_troll"})
    number = goals().index("defeat_troll")
    assert info == {"task": number, "goal": "defeat_troll", "text": goals()[number].text, "is_success": 0.0}
    np.testing.assert_array_equal(observation["goal"], embeddings().for_tasks(goals())[number])
    assert observation["cells"].shape == (9, 11, 8)


def test_a_task_holds_from_the_next_reset_on():
    env = make()
    env.reset(seed=0, options={"goal": 0})
    env.set_task(2)
    assert env.step(NOOP)[4]["task"] == 0
    assert env.reset()[1]["task"] == 2
    assert env.reset(options={"goal": "see_cow"})[1]["task"] == 1
    assert env.reset()[1]["goal"] == "see_coal"
    env.set_task(None)
    assert {env.reset()[1]["task"] for _ in range(30)} == {0, 1, 2}


def test_a_seed_repeats_worlds_chances_and_goals():
    def episode(env):
        observation, info = env.reset(seed=7)
        return [(observation, info), *play(env, np.random.default_rng(0).integers(0, 43, 25))]

    first, again = episode(make(("reach_floor_8",))), episode(make(("reach_floor_8",)))
    assert len(first) == 26
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a[0]["cells"], b[0]["cells"])
        np.testing.assert_array_equal(a[0]["features"], b[0]["features"])
    env = make()
    worlds = {env.reset()[0]["cells"].tobytes() for _ in range(5)}
    assert len(worlds) == 5


def test_the_goal_ends_the_episode_with_reward_1_and_the_limit_truncates():
    own = [Goal("have_3_wood", "Have at least 3 wood at once")]
    own.append(Goal("reach_dexterity_1", "Be nimble"))
    env = make(("reach_dexterity_1", "have_3_wood"), own_goals=own, embeddings=None)
    env.reset(seed=0, options={"goal": "reach_dexterity_1"})
    _, reward, terminated, truncated, info = env.step(NOOP)
    assert (reward, terminated, truncated, info["is_success"]) == (1.0, True, False, 1.0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(NOOP)
    env.reset(options={"goal": "have_3_wood"})
    ends = play(env, [NOOP] * 40)
    assert len(ends) == 30
    assert ends[-1][1:4] == (0.0, False, True)
    assert ends[-1][4]["is_success"] == 0.0


def test_the_engine_judges_predicates_from_the_states_it_hands_over():
    calls = []

    def turned(before, after):
        calls.append((int(before.timestep), int(after.timestep)))
        # No program could be compiled from this.
        return int(after.timestep) >= 2 and before.player_direction != after.player_direction

    env = make(("turn", "see_cow"), own_goals=[Goal("turn", "Turn after the first step", turned)], embeddings=None)
    observation, _ = env.reset(seed=3, options={"goal": "turn"})
    assert set(observation) == {"cells", "features"}
    walk = [1, 1, 1, 2, 1]
    ends = play(env, walk)
    assert len(ends) == 4
    assert ends[-1][1:4] == (1.0, True, False)
    assert calls == [(0, 1), (1, 2), (2, 3), (3, 4)]
    env.reset(options={"goal": "see_cow"})
    env.step(NOOP)
    assert len(calls) == 4


def test_an_evaluations_key_gives_its_world():
    from forethought.craftax import EngineEnvironment
    from forethought.evaluation import episode_keys

    key = episode_keys(5, ["have_1_wood"], 2)[0, 1]
    observation, _ = make().reset(options={"goal": "have_1_wood", "key": key})
    import jax

    _, expected = EngineEnvironment(1, ["have_1_wood"]).begin(jax.random.wrap_key_data(key[None]), np.array([0]))
    np.testing.assert_array_equal(observation["cells"], expected.cells[0])


@pytest.mark.craftax
@pytest.mark.slow
def test_both_backends_play_the_same_episode():
    actions = np.random.default_rng(1).integers(0, 43, 30)
    played = []
    for backend in ("engine", "jax"):
        env = make(("reach_floor_8", "see_cow"), backend=backend)
        observation, info = env.reset(seed=4)
        played.append([(observation, 0.0, False, False, info), *play(env, actions)])
    for a, b in zip(*played, strict=True):
        for name in a[0]:
            np.testing.assert_array_equal(a[0][name], b[0][name])
        assert a[1:] == b[1:]


PROCESSES = """
import sys, gymnasium, numpy as np
from forethought.craftax.gym import ENV_ID

def make_one():
    return gymnasium.make(ENV_ID, goals=["have_1_wood", "see_cow"], episode_limit=5)

envs = gymnasium.vector.AsyncVectorEnv([make_one, make_one])
envs.reset(seed=0)
envs.call("set_task", 1)
for _ in range(7):
    observation, *_, info = envs.step(np.zeros(2, np.int64))
print(observation["cells"].shape, info["task"].tolist(), "jax" in sys.modules)
envs.close()
"""


def test_it_runs_in_the_processes_of_a_vector_environment_without_jax():
    command = [sys.executable, "-W", "error", "-c", PROCESSES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 9, 11, 8) [1, 1] False\n", done.stderr


def test_a_picture_shows_the_world():
    env = make(render_mode="rgb_array")
    assert env.render() is None
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape[1:] == (11 * 32, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50
    assert make().render() is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"goals": ["have_1_woods"]}, KeyError, "have_1_woods"),
        ({"goals": "see_cow"}, ValueError, "goals is 'see_cow'; it must be a list of ids"),
        ({"backend": "fast"}, ValueError, "backend is 'fast'; allowed are auto, engine and jax"),
        ({"episode_limit": 0}, ValueError, "episode_limit is 0"),
        ({"render_mode": "human"}, ValueError, "render_mode is 'human'"),
        ({"own_goals": "nowhere.py"}, ValueError, "nowhere.py: no such file"),
        (
            {"goals": ["have_3_wood"], "own_goals": [Goal("have_3_wood", "Have 3 wood")]},
            ValueError,
            "no vector for the texts of have_3_wood",
        ),
    ],
)
def test_bad_settings_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        make(**settings)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"goals": 1}, ValueError, "option 'goals' is unknown; allowed are goal and key"),
        ({"goal": 3}, IndexError, "task is 3; allowed are 0 to 2"),
        ({"goal": -1}, IndexError, "task is -1"),
        ({"goal": True}, IndexError, "task is True"),
        ({"goal": "see_cows"}, KeyError, "see_cows"),
        ({"key": [1, 2, 3]}, ValueError, "option key is .* must be two whole numbers"),
        ({"key": [-1, 2]}, ValueError, "two whole numbers below"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        make().reset(seed=0, options=options)


def test_bad_actions_and_tasks_are_named():
    env = make()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(NOOP)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action is 43; it must be a whole number from 0 to 42"):
        env.step(43)
    with pytest.raises(IndexError, match="task is 7; allowed are 0 to 2"):
        env.set_task(7)
