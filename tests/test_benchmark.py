"""Anything that acts is measured on the episodes of `forethought eval`, and told clearly what it does wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import forethought
from forethought.cli import run as run_command
from forethought.config import load_config
from forethought.craftax import Goal
from forethought.domains import load_domain
from forethought.policies import GoalBatch, RandomPolicy
from forethought.progress import SilentReporter
from forethought.rundir import RunDirectory
from forethought.toy.goals import GOAL_IDS, GOALS
from forethought.training import train

# Of the sizes of test_training, so that both share compiled programs.
TINY = {
    "iterations": 1, "seed": 3, "tasks.goals_per_iteration": 4, "environment.envs_per_goal": 2,
    "environment.steps_per_iteration": 16, "environment.episode_limit": 8,
    "ppo.rollout_length": 8, "ppo.window": 4, "ppo.minibatches": 2,
    "network.cell_embedding": 4, "network.cell_features": 4, "network.channels": 4,
    "network.feature_units": 8, "network.observation_units": 8, "network.fuse_units": 8,
    "network.width": 8, "network.heads": 2, "network.memory": 4, "network.feedforward": 8,
    "network.head_units": 8, "network.head_layers": 1,
    "evaluation.every": 9, "evaluation.episodes": 3, "evaluation.num_envs": 16, "evaluation.chunk": 8,
}  # fmt: skip
SETTINGS = {"num_envs": 16, "chunk": 8}


@pytest.fixture(scope="module", params=["primitive", "subroutines"])
def run(request, tmp_path_factory):
    """A short run in the tiny domain, and what its own last evaluation found."""
    path = tmp_path_factory.mktemp("runs") / request.param
    config = load_config("toy", overrides=TINY | {"learner": request.param})
    result = train(config, path, reporter=SilentReporter())
    return path, result.evaluation


@pytest.fixture(scope="module")
def domain():
    return load_domain(load_config("toy"))


def measured(act, goals=("move", "corner-nw"), episodes=6, **settings):
    return forethought.evaluate(act, goals, episodes, **(SETTINGS | {"seed": 5} | settings))


def walk(observation, goal, memory, key):
    """Go north and west in turn, by what it is asked for."""
    counts = memory + 1
    return np.where(counts % 2, 1, 3), counts


def zeros(num_envs):
    return np.zeros(num_envs, np.int64)


def test_the_agent_of_a_run_does_what_its_own_evaluation_found(run):
    path, expected = run
    policy = forethought.load_policy(path)
    found = forethought.evaluate(policy, episodes=3, **SETTINGS)
    assert found.goals == expected.goals == GOAL_IDS
    for name in ("successes", "first_step_successes", "episodes_with_call", "successes_with_call"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert policy.iteration == 1
    assert policy.steps == 128
    assert (policy.eligible.size > 0) == (policy.config.learner == "subroutines")


def test_an_agent_takes_goals_by_their_ids_only(run):
    policy = forethought.load_policy(run[0])
    with pytest.raises(ValueError, match="goal 'have_3_wood': a run's goals of one's own are those in its file"):
        forethought.evaluate(policy, [Goal("have_3_wood", "Have 3 wood")])


def test_an_agent_acts_outside_of_evaluations_too(run):
    policy = forethought.load_policy(run[0])
    environment = policy.domain().make_environment(2)
    _, observation = environment.begin(jax.random.split(jax.random.key(0), 2), jnp.array([0, 4]))
    tasks = policy.domain().tasks
    goal = GoalBatch(np.array([0, 4]), policy.vectors, tasks.ids, tasks.texts)
    action, memory = policy(observation, goal, policy.initial_memory(2), jax.random.split(jax.random.key(1), 2))
    assert action.shape == (2,)
    assert memory.age.tolist() == [1, 1]
    assert policy.restart(memory, jnp.array([True, False])).age.tolist() == [0, 1]
    narrow = GoalBatch(np.array([0, 4]), np.zeros((9, 3), np.float32), tasks.ids, tasks.texts)
    with pytest.raises(ValueError, match="goal vectors have width 3, but those of the run have 16"):
        policy(observation, narrow, memory, jax.random.split(jax.random.key(1), 2))
    if policy.eligible.size:
        other = GoalBatch(np.array([0, 4]), policy.vectors, tasks.ids[::-1], tasks.texts)
        with pytest.raises(ValueError, match="needs them first among"):
            policy(observation, other, memory, jax.random.split(jax.random.key(1), 2))


def test_an_episode_of_a_run_is_drawn(run, tmp_path, capsys):
    path = tmp_path / "gem.webp"
    command = ["replay", str(run[0]), "gem", "--episode", "1", "--out", str(path)]
    assert run_command(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("gem, episode 1: ")
    steps = int(said.split(" steps")[0].split()[-1])
    with Image.open(path) as image:
        assert image.n_frames == steps + 1
    for wrong, message in (
        (["--out", str(tmp_path / "no" / "x.webp")], "--out"),
        (["--episode", "-1"], "--episode: -1 given"),
        (["--fps", "0"], "--fps"),
        (["--trace", "nothing.jsonl"], "nothing.jsonl: no such file"),
    ):
        assert run_command([*command, *wrong]) == 2
        assert message in capsys.readouterr().err
    assert run_command(["replay", str(run[0]), "gme"]) == 2
    assert "unknown task id 'gme'" in capsys.readouterr().err
    assert run_command(["replay", str(tmp_path), "gem"]) == 2
    assert "is not a run directory" in capsys.readouterr().err


def test_episodes_depend_on_the_seed_alone(domain):
    def noting(keys):
        def act(observation, goal, memory, key):
            keys.update(map(tuple, key.tolist()))
            return np.zeros(len(goal.number), np.int32), memory

        return act

    few, many, other = set(), set(), set()
    measured(noting(few), domain=domain, num_envs=2, chunk=3)
    measured(noting(many), domain=domain, num_envs=12)
    measured(noting(other), domain=domain, seed=6)
    # Idle environments are shown too, so there are keys besides those of episodes.
    assert len(few & many) > 12
    assert not many & other


def test_a_function_of_numpy_and_the_same_in_jax_do_the_same(domain):
    def compiled(observation, goal, memory, key):
        counts = memory + 1
        return jnp.where(counts % 2 == 1, 1, 3), counts

    slow = measured(walk, domain=domain, memory=zeros)
    fast = measured(compiled, domain=domain, memory=lambda n: jnp.zeros(n, jnp.int32), compiled=True)
    np.testing.assert_array_equal(slow.successes, fast.successes)
    assert slow.successes[0] == 6
    assert slow.successes[1] > 0


def test_memory_starts_anew_with_every_episode(domain):
    seen = []

    def act(observation, goal, memory, key):
        seen.append((memory.copy(), observation.features[:, 3] == 0))
        memory += 1
        return np.ones(len(goal.number), np.int32), memory

    measured(act, goals=["move"], episodes=20, domain=domain, memory=zeros, num_envs=3)
    assert len(seen) > 5
    assert all((memory[first] == 0).all() for memory, first in seen)
    assert any(memory.max() > 0 for memory, _ in seen)


def test_a_policy_may_start_anew_in_its_own_way(domain):
    class Own:
        def initial_memory(self, num_envs):
            return {"log": [[] for _ in range(num_envs)]}

        def restart(self, memory, fresh):
            return {"log": [[] if new else log for log, new in zip(memory["log"], fresh, strict=True)]}

        def __call__(self, observation, goal, memory, key):
            for log in memory["log"]:
                log.append("north")
            lengths.update(map(len, memory["log"]))
            return np.ones(len(goal.number), np.int32), memory

    lengths = set()
    measured(Own(), goals=["move"], episodes=20, domain=domain, num_envs=3)
    assert min(lengths) == 1


def test_a_policy_sees_its_goals(domain):
    seen = {}

    def act(observation, goal, memory, key):
        assert observation.cells.shape[1:] == (5, 5, 2)
        assert isinstance(observation.cells, np.ndarray)
        assert key.dtype == np.uint32
        for env, number in enumerate(goal.number):
            seen[goal.ids[number]] = goal.text(env), goal.embedding[env].argmax()
        return np.zeros(len(goal.number), np.uint8), memory

    measured(act, goals=["gem", "move"], episodes=2, domain=domain)
    texts = dict(GOALS)
    assert seen == {goal: (texts[goal], GOAL_IDS.index(goal)) for goal in ("gem", "move")}


def test_a_module_of_equinox_is_compiled_with_its_arrays_as_inputs(domain):
    class Biased(eqx.Module):
        action: jax.Array
        compiled: bool = eqx.field(static=True, default=True)

        def __call__(self, observation, goal, memory, key):
            return jnp.broadcast_to(self.action, goal.number.shape), memory

    still = measured(Biased(jnp.asarray(0)), domain=domain)
    north = measured(Biased(jnp.asarray(1)), domain=domain)
    assert still.successes.tolist() == [0, 0]
    assert north.successes[0] >= 5  # Who starts in the northernmost row stays there.


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda *_: np.zeros(12, np.int32), "act gave a ndarray; it must give a pair"),
        (lambda o, g, m, k: (1, m), r"actions of int64 and shape \(\); they must be 12 integers"),
        (lambda o, g, m, k: (np.zeros(12), m), "actions of float64"),
        (lambda o, g, m, k: (np.full(12, 5), m), "gave the action 5; allowed are 0 to 4"),
        (lambda o, g, m, k: (np.full(12, -1), m), "gave the action -1; allowed are 0 to 4"),
        (lambda o, g, m, k: (np.full(12, 2**32 + 1), m), "gave the action 4294967297"),
    ],
)
def test_what_a_policy_does_wrong_is_said(domain, act, message):
    with pytest.raises(ValueError, match=message):
        measured(act, domain=domain)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda o, g, m, k: (jnp.full(12, 5, jnp.int32), m), "gave the action 5; allowed are 0 to 4"),
        (lambda o, g, m, k: (jnp.zeros(12), m), "actions of float32"),
    ],
)
def test_a_compiled_policy_is_held_to_the_same(domain, act, message):
    with pytest.raises(ValueError, match=message):
        measured(act, domain=domain, compiled=True)


def test_memory_of_another_shape_is_refused(domain):
    with pytest.raises(ValueError, match=r"array of shape \(3,\).*begin with the 12 environments"):
        measured(walk, domain=domain, memory=lambda n: np.zeros(3))


def test_a_memory_that_only_the_first_step_makes_is_named(domain):
    def act(observation, goal, memory, key):
        memory = {"steps": zeros(len(goal.number))} if memory is None else memory
        return np.zeros(len(goal.number), np.int32), memory

    with pytest.raises(ValueError, match=r"structure PyTreeDef\(.*steps.*\), .* start it is PyTreeDef\(None\); say"):
        measured(act, domain=domain)

    def growing(observation, goal, memory, key):
        return np.zeros(len(goal.number), np.int32), [*memory, 1]

    with pytest.raises(ValueError, match=r"structure PyTreeDef\(\[\*\]\), .* restart where it changes"):
        measured(growing, domain=domain, memory=lambda count: [])
    found = measured(act, domain=domain, memory=lambda count: {"steps": zeros(count)})
    assert found.episodes.tolist() == [6, 6]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"goals": ["gold"]}, KeyError, "unknown task id 'gold'"),
        ({"goals": ["gem", "gem"]}, ValueError, "none twice"),
        ({"goals": []}, ValueError, "at least one"),
        ({"episodes": 0}, ValueError, "episodes is 0"),
        ({"goals": "gem"}, ValueError, "goals is 'gem'; it must be a list of goals"),
        ({"episode_limit": 3}, ValueError, "episode_limit is 3, but the domain, .* decides it"),
        ({"backend": "jax"}, ValueError, "backend is 'jax'"),
        ({"own_goals": "mine.py"}, ValueError, "own_goals is 'mine.py'"),
        ({"embeddings": None}, ValueError, "embeddings is None"),
    ],
)
def test_what_cannot_be_played_is_said(domain, settings, error, message):
    with pytest.raises(error, match=message):
        measured(walk, domain=domain, memory=zeros, **settings)


def test_a_directory_without_an_agent_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a run directory"):
        forethought.load_policy(tmp_path)
    RunDirectory.create(tmp_path / "new", load_config("toy").to_toml(), {})
    with pytest.raises(ValueError, match="no checkpoint yet; train it first: forethought train"):
        forethought.load_policy(tmp_path / "new")


def test_a_random_policy_takes_every_action():
    keys = jax.random.split(jax.random.key(0), 500)
    action, memory = RandomPolicy(5)(None, None, None, keys)
    assert memory is None
    counts = np.bincount(action, minlength=5)
    assert len(counts) == 5
    assert counts.min() > 60
