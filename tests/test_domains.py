"""A configuration leads to its goals, graphs, vectors and environments, all in one order."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from forethought import toy
from forethought.config import ConfigError, load_config
from forethought.domains import choose_backend, load_domain
from forethought.graphs import LearningConnectivity


def toy_config(**overrides):
    return load_config("toy", overrides={name.replace("__", "."): value for name, value in overrides.items()})


@pytest.mark.filterwarnings("ignore:no evidence is left")
def test_everything_follows_the_order_of_the_goals_named():
    goals = ("gem", "wood", "stone")
    domain = load_domain(toy_config(tasks__goals=goals, tasks__target="gem", tasks__target_share=0.5))
    assert domain.tasks.ids == domain.connectivity.ids == domain.feasibility.ids == goals
    np.testing.assert_allclose(domain.tasks.weights / domain.tasks.weights.sum(), [0.5, 0.25, 0.25])
    whole = load_domain(toy_config())
    places = whole.tasks.indices(goals)
    np.testing.assert_array_equal(domain.goal_embeddings, whole.goal_embeddings[places])
    np.testing.assert_array_equal(
        domain.connectivity.weights.toarray(), whole.connectivity.weights.toarray()[np.ix_(places, places)]
    )
    environment = domain.make_environment(6, queue_capacity=8)
    assert environment.num_envs == 6
    assert environment.queue_capacity == 8


@pytest.mark.parametrize(("method", "warned"), [("unif", False), ("alp+d", False), ("alp+f", True)])
def test_goals_without_evidence_are_a_matter_of_methods_that_use_it(method, warned):
    chosen = {"method": method, "tasks.goals": ("have_1_wood", "defeat_troll"), "tasks.target": None}
    config = load_config("laptop", overrides=chosen | {"evaluation.goals": ()})
    with pytest.warns(UserWarning, match="no evidence is left") if warned else nullcontext():
        load_domain(config)


def test_without_a_target_all_goals_count_the_same():
    domain = load_domain(toy_config())
    assert domain.tasks.ids == toy.tasks().ids
    assert len(set(domain.tasks.weights.tolist())) == 1


@pytest.mark.parametrize("learner", ["primitive", "subroutines"])
def test_the_graphs_are_those_judged_for_the_learner(learner: str):
    domain = load_domain(load_config("paper", overrides={"learner": learner, "embeddings": "minilm"}))
    assert domain.connectivity.provenance.learner == domain.feasibility.provenance.learner == learner


@pytest.mark.parametrize("field", ["tasks.goals", "evaluation.goals"])
def test_an_unknown_goal_is_named_with_its_field(field: str):
    with pytest.raises(ConfigError, match=rf"{field}: 'stome' given.*did you mean stone\?"):
        load_domain(load_config("toy", overrides={field: ["stome"]}))


def test_an_unknown_target_is_named():
    with pytest.raises(ConfigError, match=r"tasks.target: 'goldd' given"):
        load_domain(toy_config(tasks__target="goldd"))


@pytest.mark.filterwarnings("ignore:no evidence is left")
def test_graphs_come_from_files_and_are_matched_by_id(tmp_path):
    goals = ("gem", "wood", "stone")
    connectivity = LearningConnectivity.from_weights(
        ("stone", "gem", "wood"), np.array([[0, 1, 0], [0, 0, 0], [0.5, 0, 0]])
    )
    connectivity.save(tmp_path / "c.json")
    domain = load_domain(toy_config(tasks__goals=goals, connectivity=str(tmp_path / "c.json")))
    assert domain.connectivity.ids == goals
    np.testing.assert_array_equal(domain.connectivity.weights.toarray(), [[0, 0, 0], [0, 0, 0.5], [1, 0, 0]])
    shipped = load_domain(toy_config(tasks__goals=goals))
    np.testing.assert_array_equal(domain.feasibility.weights.toarray(), shipped.feasibility.weights.toarray())


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("connectivity", r"connectivity: .*c.json given, but the learning_connectivity graph does not know .*move"),
        ("feasibility", r"feasibility: .*c.json given, but it cannot be used: .*'feasibility_evidence' is needed"),
    ],
)
def test_foreign_graphs_are_refused(tmp_path, field, message):
    LearningConnectivity.from_weights(("stone", "gem"), np.zeros((2, 2))).save(tmp_path / "c.json")
    with pytest.raises(ConfigError, match=message):
        load_domain(toy_config(**{field: str(tmp_path / "c.json")}))
    with pytest.raises(ConfigError, match=rf"{field}: nowhere.json given, but there is no such file"):
        load_domain(toy_config(**{field: "nowhere.json"}))


def test_vectors_come_from_a_file(tmp_path):
    file = tmp_path / "mine.npz"
    toy.embeddings().save(file)
    domain = load_domain(toy_config(embeddings=str(file)))
    np.testing.assert_array_equal(domain.goal_embeddings, load_domain(toy_config()).goal_embeddings)


def test_vectors_of_other_goals_are_refused(tmp_path):
    file = tmp_path / "mine.npz"
    toy.embeddings().save(file)
    with pytest.raises(ConfigError, match=r"embeddings: .*mine\.npz given, but"):
        load_domain(load_config("demo", overrides={"embeddings": str(file)}))


def test_a_broken_file_of_vectors_is_refused(tmp_path):
    file = tmp_path / "mine.npz"
    file.write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"embeddings: .*mine\.npz given, but it cannot be read"):
        load_domain(toy_config(embeddings=str(file)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["demo", "laptop"])
def test_the_small_presets_name_goals_of_the_benchmark(name: str):
    domain = load_domain(load_config(name))
    assert len(domain.tasks) == 32
    assert domain.goal_embeddings.shape == (32, 384)
    np.testing.assert_allclose(np.linalg.norm(domain.goal_embeddings, axis=1), 1, atol=1e-5)


def test_the_paper_runs_on_all_goals_with_other_vectors():
    domain = load_domain(load_config("paper", overrides={"embeddings": "minilm"}))
    assert len(domain.tasks) == 256
    assert domain.connectivity.ids == domain.feasibility.ids == domain.tasks.ids


def test_loading_needs_no_jax():
    code = (
        "import sys; from forethought.config import load_config; from forethought.domains import load_domain\n"
        "load_domain(load_config('paper', overrides={'embeddings': 'minilm'}))\n"
        "print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setitem(sys.modules, "craftax_native", None)


def test_the_engine_plays_where_it_is_installed(capsys):
    pytest.importorskip("craftax_native")
    chosen = choose_backend(load_config("demo"))
    assert chosen.environment.backend == "engine"
    assert choose_backend(chosen) == chosen
    assert choose_backend(load_config("demo", overrides={"environment.backend": "jax"})).environment.backend == "jax"
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("no_engine")
def test_without_the_engine_jax_plays_and_one_line_says_how_to_get_it(capsys):
    assert choose_backend(load_config("demo")).environment.backend == "jax"
    said = capsys.readouterr().err
    assert said.startswith("playing Craftax with JAX, which is slower: the fast engine is not installed; pip install")
    assert said.count("\n") == 1
    choose_backend(load_config("demo", overrides={"environment.backend": "jax"}))
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("no_engine")
def test_an_engine_asked_for_but_missing_is_an_error():
    with pytest.raises(
        ConfigError, match=r"environment.backend: 'engine' given, but the fast engine is not installed;"
    ):
        load_domain(load_config("demo", overrides={"environment.backend": "engine"}))


def test_other_domains_have_no_engine():
    assert choose_backend(toy_config()).environment.backend == "jax"
    with pytest.raises(ConfigError, match="the fast engine plays Craftax, not toy"):
        choose_backend(toy_config(environment__backend="engine"))


@pytest.fixture
def own_domain(tmp_path, monkeypatch):
    (tmp_path / "own_domain_of_a_test.py").write_text(
        "from forethought import Task, TaskSet\n"
        "from forethought.domains import DomainParts\n"
        "def domain(config):\n"
        "    tasks = TaskSet([Task('b', 'B.'), Task('a', 'A.'), Task('c', 'C.')])\n"
        "    return DomainParts(tasks, lambda num_envs, ids, settings: (num_envs, ids, settings.episode_limit))\n"
        "def nothing(config):\n"
        "    return None\n"
    )
    monkeypatch.chdir(tmp_path)
    yield "own_domain_of_a_test"
    sys.modules.pop("own_domain_of_a_test", None)


def test_a_domain_of_ones_own_is_found_in_the_current_directory_and_cut_to_the_goals(own_domain):
    before = list(sys.path)
    settings = {"tasks.domain": f"{own_domain}:domain", "tasks.goals": ("c", "b"), "method": "alp"}
    domain = load_domain(load_config("toy", overrides=settings))
    assert domain.tasks.ids == ("c", "b")
    assert domain.make_environment(5) == (5, ("c", "b"), 32)
    # Without vectors of the texts, goals differ, and keep theirs whichever are chosen.
    np.testing.assert_array_equal(domain.goal_embeddings, [[0, 0, 1], [1, 0, 0]])
    assert domain.connectivity is None
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "method", "complaint"),
    [
        (
            "{}:domain",
            "alp+d",
            "connectivity: shipped given, but {}:domain brings none, and the method alp.d needs",
        ),
        ("{}:gone", "alp", "tasks.domain: '{}:gone' given, but {} has no function gone"),
        ("{}:nothing", "alp", "tasks.domain: '{}:nothing' given, but it returns a NoneType; allowed is a DomainParts"),
        ("no_such_module:domain", "alp", "there is no module 'no_such_module' here"),
        ("craftex", "alp", "tasks.domain: 'craftex' given; allowed are craftax, toy, and module:function for your own"),
        ("a b:c", "alp", "allowed are craftax"),
    ],
)
def test_a_domain_of_ones_own_that_cannot_be_used_is_named(own_domain, name, method, complaint):
    with pytest.raises(ConfigError, match=complaint.format(own_domain, own_domain)):
        load_domain(load_config("toy", overrides={"tasks.domain": name.format(own_domain), "method": method}))
