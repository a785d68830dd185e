import json

import numpy as np
import pytest

from forethought.craftax import shipped
from forethought.judging.aggregate import build_graph
from forethought.judging.journal import read_lines
from forethought.judging.recorded import import_recorded


def test_there_are_256_goals_in_the_papers_order():
    goals = shipped.goals()
    assert len(goals) == len(set(goals.texts)) == 256
    assert goals[0].text == "Have at least 1 wood."
    assert goals[91].text == "Reach floor 1, the Dungeon."
    assert goals[255].id == "kill_8_on_floor_8"


@pytest.mark.parametrize("learner", shipped.LEARNERS)
@pytest.mark.parametrize(
    ("kind", "load"), [("learning_connectivity", shipped.connectivity), ("feasibility_evidence", shipped.evidence)]
)
def test_graphs_equal_the_aggregated_judgments(kind, load, learner, tmp_path):
    lines = read_lines(shipped.DATA / "judgments" / f"{kind}.{learner}.jsonl")
    run = import_recorded(lines, shipped.goals(), shipped.prompts(kind, learner), tmp_path / "run", model="any")
    built, stored = build_graph(run), load(learner)
    assert built.selections == stored.selections
    assert abs(built.weights - stored.weights).nnz == 0
    assert built.provenance.prompt_hash == stored.provenance.prompt_hash
    assert built.provenance.block_sizes == stored.provenance.block_sizes


@pytest.mark.parametrize(
    ("learner", "fewest", "most", "from_scratch"), [("primitive", 4783, 11007, 23.4), ("subroutines", 5473, 8680, 21.6)]
)
def test_graphs_have_the_recorded_sizes_and_provenance(learner, fewest, most, from_scratch):
    connectivity, evidence = shipped.connectivity(learner), shipped.evidence(learner)
    edges = [sum(map(len, repetition)) for repetition in connectivity.selections]
    assert (min(edges), max(edges)) == (fewest, most)
    assert evidence.from_scratch.sum() == pytest.approx(from_scratch)
    for graph in (connectivity, evidence):
        assert graph.ids == shipped.goals().ids
        assert graph.provenance.repetitions == len(graph.selections) == 5
        assert graph.provenance.learner == learner
        assert "Claude" in str(graph.provenance.model_asked)


def test_an_unknown_learner_is_named():
    with pytest.raises(ValueError, match=r"'octopus'.*primitive and subroutines"):
        shipped.connectivity("octopus")


def test_embeddings_cover_the_goals_and_tell_them_apart():
    vectors = shipped.embeddings().for_tasks(shipped.goals())
    assert vectors.shape == (256, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_prompts_ship():
    assert json.loads((shipped.DATA / "goals.json").read_text())[0]["id"] == "have_1_wood"
    assert len(list((shipped.DATA / "prompts").glob("*.md"))) == 5
