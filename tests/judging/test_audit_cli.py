"""`forethought judge build`, `judge audit` and `judge compare-transfer`."""

import json

import numpy as np
import pytest

from forethought import toy
from forethought.cli import run as forethought
from forethought.config import load_config
from forethought.craftax import shipped
from forethought.graphs import LearningConnectivity, load_graph
from forethought.judging.replies import Reply
from forethought.rundir import CURRICULUM_COLUMNS, RunDirectory


def judge(*words):
    return forethought(["judge", *map(str, words)])


@pytest.fixture
def answered(make, run_of, records):
    """`answered(name, kind, leave_out=0)`: a run with valid replies to all but some of its queries."""

    def build(name, kind="learning_connectivity", leave_out=0):
        plan = make(kind, 6, target_block=3, repetitions=2)
        run = run_of(plan, name)
        with run.writing("a test") as writer:
            for query in plan.queries[leave_out:]:
                writer.reply(Reply(query.id, 1, query.targets, json.dumps(records(plan, query)), model_served="m"))
        return run

    return build


def test_build_makes_the_graph_of_a_run(answered, capsys):
    run = answered("run")
    assert judge("build", run.path) == 0
    path = run.path / "learning_connectivity.json"
    graph = load_graph(path)
    assert capsys.readouterr().out == f"{path}: 6 tasks, {graph.weights.nnz} edges\n"
    assert graph.provenance.model_served == "m"


def test_build_makes_both_graphs_of_a_folder_elsewhere(answered, tmp_path, capsys):
    (tmp_path / "both").mkdir()
    for kind in ("learning_connectivity", "feasibility_evidence"):
        answered(f"both/{kind}", kind)
    assert judge("build", tmp_path / "both", "--out", tmp_path / "made" / "here") == 0
    assert sorted(path.name for path in (tmp_path / "made" / "here").iterdir()) == [
        "feasibility_evidence.json",
        "learning_connectivity.json",
    ]


def test_an_unfinished_run_is_built_only_on_request(answered, capsys):
    run = answered("run", leave_out=1)
    assert judge("build", run.path) == 2
    error = capsys.readouterr().err
    assert "lacks 3 of 12 judgments" in error
    assert error.count("\n") == 1
    assert judge("build", run.path, "--partial") == 0


def test_audit_of_a_shipped_graph_for_a_target(capsys):
    assert judge("audit", "connectivity.primitive", "--target", "place_furnace", "--top", "2", "--horizon", "1") == 0
    text = capsys.readouterr().out
    assert "no path of at most 1 edge to a weighted task" in text
    assert "0.730" in text
    assert "reach_floor_5 (145), reach_floor_4 (143)\n" in text


def test_audit_of_files_with_a_page(tmp_path, capsys):
    for learner in shipped.LEARNERS:
        shipped.evidence(learner).save(tmp_path / f"{learner}.json")
    files = [tmp_path / f"{learner}.json" for learner in shipped.LEARNERS]
    assert judge("audit", *files, "--html", tmp_path / "page.html") == 0
    text = capsys.readouterr().out
    assert f"{files[0]} against {files[1]}" in text
    assert text.endswith(f"page: {tmp_path / 'page.html'}\n")
    assert "<canvas" in (tmp_path / "page.html").read_text()


def test_audit_for_the_tasks_of_a_file(tmp_path, capsys):
    LearningConnectivity.from_weights("abc", [[0, 1, 0], [0, 0, 0], [0, 1, 0]]).save(tmp_path / "g.json")
    tasks = [{"id": "b", "text": "B.", "weight": 1}, {"id": "a", "text": "A.", "weight": 0}]
    (tmp_path / "t.json").write_text(json.dumps(tasks))
    assert judge("audit", tmp_path / "g.json", "--tasks", tmp_path / "t.json") == 0
    assert "learning connectivity, 2 tasks" in capsys.readouterr().out


def test_a_run_is_compared_with_its_own_graph_unless_told_otherwise(tmp_path, capsys):
    tasks, rng = toy.tasks(), np.random.default_rng(0)
    run = RunDirectory.create(tmp_path / "run", load_config("toy").to_toml(), {"run_id": "x"})
    for iteration in range(1, 61):
        selections = rng.multinomial(8, np.full(len(tasks), 1 / len(tasks)))
        columns = dict.fromkeys(CURRICULUM_COLUMNS, np.zeros(len(tasks), np.int64)) | {
            "task": tasks.ids,
            "probability": np.full(len(tasks), 1 / len(tasks)),
            "effective_share": np.full(len(tasks), 1 / len(tasks)),
            "selections": selections,
            "episodes": 10 * selections,
            "successes": rng.binomial(10 * selections, 0.5).astype(np.float64),
        }
        run.record_curriculum(iteration, columns)
    run.flush()
    assert judge("compare-transfer", run.path, "--top", "7", "--horizon", "5") == 0
    text = capsys.readouterr().out
    assert "learning connectivity against measured gains" in text
    assert "edges among the 7 clearest gains" in text
    assert "within 5 iterations" in text
    assert judge("compare-transfer", run.path, "--graph", "connectivity.primitive") == 2
    assert "does not know this task" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "connectivity.primitiv"], "did you mean connectivity.primitive?"),
        (["audit", "connectivity.primitive", "evidence.primitive"], "two kinds"),
        (["audit", "connectivity.primitive", "--target", "place_furnac"], "'place_furnac'; the nearest are"),
        (["audit", "connectivity.primitive", "--horizon", "0"], "must be 1 or more"),
        (["audit", "connectivity.primitive", "--top", "0"], "--top: 0"),
        (["audit", "connectivity.primitive", "--html", "/no/such/place/p.html"], "/no/such/place"),
        (["audit", "connectivity.primitive", "--tasks", "none.json"], "none.json"),
        (["build", "nowhere"], "nowhere"),
        (["compare-transfer", "nowhere", "--graph", "connectivity.primitive"], "not a run directory"),
        (["compare-transfer", "nowhere"], "not a run directory"),
        (["compare-transfer"], "name the directory of at least one run"),
    ],
)
def test_bad_input_ends_in_one_line_and_nothing_else(words, message, capsys):
    assert judge(*words) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
