import sys

import numpy as np
import pytest

from forethought import minigrid
from forethought.judging.aggregate import build_graph
from forethought.judging.store import open_run
from forethought.minigrid import shipped
from forethought.minigrid.levels import LEVELS


def test_every_task_has_a_level_and_every_level_a_task():
    assert shipped.tasks().ids == tuple(LEVELS)
    assert len(set(shipped.tasks().texts)) == 24


@pytest.mark.parametrize("load", [shipped.connectivity, shipped.evidence])
def test_graphs_are_over_the_tasks_and_say_who_judged(load):
    graph = load()
    assert graph.ids == shipped.tasks().ids
    assert graph.provenance.repetitions == len(graph.selections) == 3
    assert graph.provenance.model_served.startswith("Claude (Anthropic), by hand through export and import")
    assert graph.provenance.date == "2026-11-30"


@pytest.mark.parametrize(
    ("kind", "load"), [("learning_connectivity", shipped.connectivity), ("feasibility_evidence", shipped.evidence)]
)
def test_graphs_are_what_the_recorded_replies_give(kind, load):
    run, graph = open_run(shipped.DATA / "judgments" / kind), load()
    built = build_graph(run)
    assert built.selections == graph.selections
    assert abs(built.weights - graph.weights).nnz == 0
    assert built.provenance.prompt_hash == graph.provenance.prompt_hash
    assert not run.missing()


@pytest.mark.parametrize("kind", ["learning_connectivity", "feasibility_evidence"])
def test_what_was_judged_is_what_ships(kind):
    plan = open_run(shipped.DATA / "judgments" / kind).plan
    assert [(task.id, task.text) for task in plan.tasks] == [(task.id, task.text) for task in shipped.tasks()]
    assert plan.prompts == shipped.prompts(kind)


def test_every_task_starts_from_scratch_or_leads_back_to_one_that_does():
    evidence = shipped.evidence()
    reached = evidence.from_scratch > 0.5
    assert 0 < reached.sum() < len(evidence.ids)
    for _ in evidence.ids:
        reached = reached | np.asarray((evidence.weights.T @ reached) > 0)
    assert reached.all()


def test_without_minigrid_tasks_and_graphs_load_and_the_missing_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "forethought.minigrid.environment", raising=False)
    monkeypatch.setitem(sys.modules, "minigrid.core.actions", None)
    assert minigrid.tasks().ids == minigrid.connectivity().ids
    with pytest.raises(ModuleNotFoundError, match=r"need minigrid: pip install 'forethought\[minigrid\]'"):
        minigrid.MissionEnv  # noqa: B018
