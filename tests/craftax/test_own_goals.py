"""Goals of one's own: read, refused, judged like the engine judges, and played."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import forethought
from forethought.cli import run
from forethought.config import load_config
from forethought.craftax import CraftaxEnvironment, Goal, goals, load_goals
from forethought.craftax.goal_table import _BLOCKS as ENGINE_BLOCKS
from forethought.craftax.judge import check_predicate, make_judge
from forethought.craftax.own_goals import checked, chosen_goals, digest, engine_rows, with_own
from forethought.craftax.success import _BLOCKS as JAX_BLOCKS
from forethought.domains import choose_backend, load_domain
from forethought.embeddings import Embeddings
from forethought.graphs import LearningConnectivity
from forethought.progress import SilentReporter
from forethought.rundir import RunDirectory
from forethought.training import train

FILE = """
from forethought.craftax import Goal

def stocked_up(before, after):
    return (after.inventory.wood >= 3) & (after.inventory.stone >= 3)

GOALS = [Goal("have_3_wood", "Have 3 wood"), Goal("stocked_up", "Have 3 wood and 3 stone ☃", stocked_up)]
"""
FORMS = (
    *("have_3_wood", "have_7_arrows", "kill_5_on_floor_2", "reach_dexterity_1"),
    *("see_water", "see_stone", "see_torch", "see_fire_grass"),
)


def stand_still(before, after):
    return (before.player_position == after.player_position).all()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_file_gives_its_goals_after_the_benchmarks(file):
    own = load_goals(file)
    assert [goal.id for goal in own] == ["have_3_wood", "stocked_up"]
    tasks = with_own(own)
    assert len(tasks) == 258
    assert tasks[257].text == "Have 3 wood and 3 stone ☃"
    assert chosen_goals((), own) == tasks.ids
    assert chosen_goals(("stocked_up", "see_cow"), own) == ("stocked_up", "see_cow")
    with pytest.raises(KeyError, match=r"'stocked_op'; the nearest are 'stocked_up'"):
        chosen_goals(("stocked_op",), own)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "mine.py: no such file of goals"),
        ("", "mine.py: it defines no GOALS"),
        ("import nothing_of_that_name", "mine.py: it fails: ModuleNotFoundError: No module named"),
        ("GOALS = [1 / 0]", "mine.py: it fails: ZeroDivisionError"),
        ("GOALS = ().GOALS", "mine.py: it defines no GOALS|it fails"),
        ("GOALS = (", "mine.py: it fails: SyntaxError"),
        ("GOALS = 'see_water'", r"mine.py: goals of one's own are 'see_water'; they must be a list of Goal"),
        ("GOALS = ['see_water']", "mine.py: goal number 0 of one's own is 'see_water'; it must be a Goal"),
        (
            "from forethought.craftax import Goal\nGOALS = 2 * [Goal('see_water', 'See water')]",
            "mine.py: goal 'see_water' occurs more than once",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_fault(tmp_path, text, message):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_goals(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "text"), "a goal's id is ''"),
        (("x", " "), "a goal's text is ' '"),
        (("have_1_wood", "text"), "goal 'have_1_wood' is one of the benchmark's"),
        (("see_cow", "text", stand_still), "goal 'see_cow' is one of the benchmark's"),
        (("be_good", "text"), "goal 'be_good' has no predicate, and its id says nothing by itself"),
        (("have_3_wodo", "text"), "has no predicate"),
        (("have_2_pickaxe", "text"), "has no predicate"),
        (("see_ladder_down_floor_8", "text"), "has no predicate"),
        (("have_100_wood", "text"), "its number must be from 1 to 99"),
        (("have_0_wood", "text"), "its number must be from 1 to 99"),
        (("reach_floor_9", "text"), "its number must be from 1 to 8"),
        (("reach_strength_6", "text"), "its number must be from 1 to 5"),
        (("kill_3_on_floor_9", "text"), "what the game does not have"),
    ],
)
def test_a_goal_that_cannot_be_judged_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Goal(*arguments)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (lambda before, after: after.inventory.wood > 0 and after.inventory.coal > 0, "write & | ~ for and, or, not"),
        (lambda before, after: np.asarray(after.inventory.wood) > 0, "jax.numpy for NumPy"),
        (lambda before, after: after.inventory.wood, r"gives int32 of shape \(\); it must give one truth value"),
        (lambda before, after: after.map == 2, r"gives bool of shape \(9, 48, 48\); it must give one"),
        (lambda before, after: None, "gives a NoneType; it must give one truth value"),
        (lambda before, after: after.wood > 0, "AttributeError: 'EnvState' object has no attribute 'wood'"),
        (lambda after: True, "takes 1 positional argument but 2 were given"),
    ],
)
def test_a_predicate_that_cannot_be_compiled_is_named_before_anything_runs(predicate, message):
    with pytest.raises(ValueError, match=f"goal 'mine': its predicate .*{message}"):
        check_predicate(Goal("mine", "text", predicate))


def test_the_engine_refuses_predicates_it_is_to_play_and_no_others(file):
    own = load_goals(file)
    with pytest.raises(ValueError, match="goal 'stocked_up' has a predicate, which the fast engine cannot judge; play"):
        engine_rows(with_own(own).ids, own)
    assert engine_rows(("have_3_wood", "have_4_wood"), own).tolist() == [[0, 0, 3, 255], [0, 0, 4, 255]]


def test_both_environments_know_the_same_blocks():
    assert set(JAX_BLOCKS) == set(ENGINE_BLOCKS)


@pytest.fixture(scope="module")
def walked():
    """64 games of the engine after random steps, bags and kills filled at random, before and after one more step."""
    native = pytest.importorskip("craftax_native")
    random = np.random.default_rng(0)
    own = [Goal(id, id) for id in FORMS]
    state = native.new_state(64, engine_rows(FORMS, own))
    native.generate(state, random.integers(0, 2**32, (64, 2), dtype=np.uint32))
    reward, done = np.zeros(64, np.float32), np.zeros(64, bool)
    for _ in range(60):
        native.step_games(state, random.integers(0, 19, 64).astype(np.int32), None, reward, done)
    fields = native.export_all(state)
    for name in ("inventory.wood", "inventory.arrows"):
        fields[name] = random.integers(0, 9, 64).astype(np.int32)
    fields["monsters_killed"] = random.integers(0, 9, (64, 9)).astype(np.int32)
    for game in range(64):
        at = tuple(fields["player_position"][game] + random.integers(-2, 3, 2))
        fields["item_map"][game, fields["player_level"][game]][at] = random.integers(0, 2)
        native.import_env(state, game, {name: values[game] for name, values in fields.items()})
    before = state.copy()
    native.step_games(state, random.integers(0, 5, 64).astype(np.int32), None, reward, done)
    return own, before, state


def test_forms_are_judged_as_the_engine_judges_them(walked):
    native = pytest.importorskip("craftax_native")
    own, before, after = walked
    expected = native.reached(before, after)
    states = [native.to_envstate(native.export_all(state)) for state in (before, after)]
    found = np.asarray(jax.jit(jax.vmap(make_judge(own)))(*states))[:, 256:]
    np.testing.assert_array_equal(found, expected)
    # Each form is met and missed, but one that every game begins with, and one that lies far below.
    share = dict(zip(FORMS, expected.mean(0), strict=True))
    assert [id for id in FORMS if share[id] == 0] == ["see_fire_grass"]
    assert [id for id in FORMS if share[id] == 1] == ["reach_dexterity_1"]


@pytest.mark.craftax
@pytest.mark.slow
def test_a_predicate_is_judged_before_the_restart_and_at_the_start():
    def rich(before, after):
        return (after.inventory.wood >= 3) & (before.inventory.wood >= 3)

    own = [Goal("rich", "Have had 3 wood for a step", rich), Goal("stand_still", "Stand still", stand_still)]
    env = CraftaxEnvironment(4, ("rich", "stand_still", "have_1_wood"), 9, 8, 4, own_goals=own)
    keys = jax.random.split(jax.random.key(0), 5)
    state, _ = env.begin(keys[:4], jnp.array([0, 0, 1, 2]))
    np.testing.assert_array_equal(state.held, [False, False, True, False])
    state = env.enqueue(state, keys[4:], jnp.array([0]))
    state = state._replace(game=state.game.replace(player_health=state.game.player_health.at[1].set(-50.0)))
    bag = state.game.inventory
    state = state._replace(game=state.game.replace(inventory=bag.replace(wood=jnp.array([3, 3, 0, 0], jnp.int32))))
    state, _, outcome = env.step(state, jnp.zeros(4, jnp.int32))
    np.testing.assert_array_equal(outcome.success, [True, True, True, False])
    np.testing.assert_array_equal(outcome.terminated, [False, True, False, False])
    episode = env.assignment(state)
    np.testing.assert_array_equal(episode.active, [True, False, False, True])
    np.testing.assert_array_equal(episode.goal[:1], [0])
    assert state.game.inventory.wood[0] == 0
    assert float(env.metrics(state)["successes_at_start"]) == 1


def own_config(file, **changes):
    plain = {"tasks.own_goals": str(file), "method": "alp", "evaluation.goals": (), "tasks.target": None}
    return load_config("laptop", overrides=plain | changes)


@pytest.fixture
def vectors(file, tmp_path):
    """Goal vectors for the benchmark and one's own."""
    texts = with_own(load_goals(file)).texts
    path = tmp_path / "vectors.npz"
    Embeddings("made up", texts, np.eye(len(texts), dtype=np.float32)).save(path)
    return str(path)


def test_a_run_can_train_on_them_with_vectors_and_without_graphs(file, vectors, capsys):
    chosen = {"tasks.goals": ("have_3_wood", "stocked_up", "have_4_wood"), "embeddings": vectors}
    config = choose_backend(own_config(file, **chosen))
    domain = load_domain(config)
    assert domain.tasks.ids == chosen["tasks.goals"]
    assert domain.connectivity is domain.feasibility is None
    assert domain.goal_embeddings.argmax(1).tolist() == [256, 257, goals().index("have_4_wood")]
    assert config.environment.backend == "jax"
    assert "goal 'stocked_up' has a predicate, which the fast engine cannot judge" in capsys.readouterr().err


def test_goals_told_by_their_id_are_played_by_the_engine(file, vectors, capsys):
    pytest.importorskip("craftax_native")
    config = own_config(file, **{"tasks.goals": ("have_3_wood", "have_4_wood"), "embeddings": vectors})
    assert choose_backend(config).environment.backend == "engine"
    environment = load_domain(config).make_environment(2)
    assert environment.goal_ids == ("have_3_wood", "have_4_wood")
    assert environment.on_host
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "alp+d"}, "connectivity: shipped given, but 'have_3_wood' is a goal of your own, .*judge plan DIR"),
        ({"method": "alp+f"}, "feasibility: shipped given, but 'have_3_wood' is a goal of your own"),
        ({}, "hold no vector for the texts of have_3_wood"),
        ({"environment.backend": "engine", "tasks.goals": ("stocked_up",)}, "has a predicate, which the fast engine"),
        ({"tasks.own_goals": "nowhere.py"}, "tasks.own_goals: nowhere.py: no such file of goals"),
        ({"tasks.domain": "toy", "tasks.goals": ()}, "are Craftax's"),
    ],
)
def test_what_a_run_lacks_for_them_is_named(file, changes, message):
    chosen = {"tasks.goals": ("have_3_wood", "have_4_wood")}
    with pytest.raises(ValueError, match=message):
        load_domain(own_config(file, **(chosen | changes)))


def test_graphs_judged_for_them_are_taken(file, vectors, tmp_path):
    ids = ("have_3_wood", "have_4_wood")
    LearningConnectivity.from_weights(ids, np.array([[0, 0.5], [0, 0]])).save(tmp_path / "c.json")
    changes = {"tasks.goals": ids, "embeddings": vectors}
    domain = load_domain(own_config(file, method="alp+d", connectivity=str(tmp_path / "c.json"), **changes))
    assert domain.connectivity.weights[0, 1] == 0.5
    assert domain.feasibility is None


def test_commands_take_them_beside_the_benchmark(file, capsys):
    assert run(["goals", "stocked", "--own-goals", str(file)]) == 0
    assert "1 of 258 goals" in capsys.readouterr().out
    assert run(["judge", "plan", "--own-goals", str(file)]) == 0
    assert capsys.readouterr().out.startswith("258 tasks, learner primitive")
    file.write_text(FILE.replace("&", "and"), encoding="utf-8")
    for arguments in (["goals", "--own-goals", str(file)], ["goals", "--toy", "--own-goals", str(file)]):
        assert run(arguments) == 2
        assert "error: " in capsys.readouterr().err
    for arguments in (["embed", "--model", "x", "--tasks", "t.json"], ["judge", "plan", "--tasks", "t.json"]):
        assert run([*arguments, "--own-goals", str(file)]) == 2
        assert "--own-goals" in capsys.readouterr().err


@pytest.mark.craftax
@pytest.mark.slow
def test_a_run_trains_and_is_evaluated_on_them(file, vectors, tmp_path):
    config = own_config(
        file,
        **{"tasks.goals": ("have_3_wood", "stocked_up"), "embeddings": vectors, "iterations": 1},
        **{"tasks.goals_per_iteration": 2, "environment.envs_per_goal": 2},
        **{"environment.steps_per_iteration": 16, "ppo.rollout_length": 16, "ppo.window": 8, "ppo.minibatches": 1},
        **{"network.convolutions": 0, "environment.episode_limit": 12, "environment.pool_size": 4},
        **{"evaluation.episodes": 2, "evaluation.num_envs": 4, "evaluation.chunk": 16},
    )
    result = train(config, tmp_path / "run", reporter=SilentReporter())
    assert result.evaluation.goals == ("have_3_wood", "stocked_up")
    assert RunDirectory(tmp_path / "run").meta["hashes"]["own_goals"] == digest(file)
    found = forethought.evaluate(forethought.load_policy(tmp_path / "run"), episodes=2, num_envs=4, chunk=16)
    np.testing.assert_array_equal(found.successes, result.evaluation.successes)
    file.write_text(FILE + "# changed", encoding="utf-8")
    with pytest.raises(ValueError, match="own_goals changed since"):
        train(config, tmp_path / "run", resume=True, reporter=SilentReporter())


def test_reading_goals_takes_no_jax(file):
    code = (
        "import sys; from forethought.craftax import load_goals; load_goals(sys.argv[1]);"
        "print(sorted({'jax', 'craftax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ids_are_unique_in_a_list_too():
    with pytest.raises(ValueError, match="must be a list of Goal"):
        checked(Goal("see_water", "See water"))
