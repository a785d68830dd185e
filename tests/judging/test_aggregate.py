"""Graphs from runs whose replies were written by hand."""

import json
import re

import numpy as np
import pytest

from forethought.graphs import FeasibilityEvidence, LearningConnectivity, load_graph
from forethought.judging.aggregate import build_graph
from forethought.judging.audit import audit
from forethought.judging.plan import Settings, make_plan
from forethought.judging.prompts import Prompts, default_template
from forethought.judging.pruning import Pruning, text_vectors
from forethought.judging.replies import EVALUATED, EVIDENCE, LIST_NAMES, SCRATCH, SOURCES, TARGET, Reply
from forethought.judging.store import create_run, open_run
from forethought.tasks import Task, TaskSet

TASKS = TaskSet([Task(id, f"Do {id}.") for id in ("a", "b", "ç", "d", "e")])
CONNECTIVITY, EVIDENCE_KIND = "learning_connectivity", "feasibility_evidence"


def plan_for(kind, tasks=TASKS, **options):
    prompts = Prompts(kind, default_template(kind), "An environment.", "Goals.", "A learner.", "Domain")
    options = {"repetitions": 3, "target_block": 2, "seed": 1, "learner": "primitive", "notes": ("by hand",)} | options
    if kind == CONNECTIVITY:
        options = {"source_block": 3} | options
    return make_plan(tasks, prompts, Settings("google:gemini-3.8-flash"), **options)


def answer(plan, query, targets, choose):
    """The text of a valid reply: `choose(repetition, source, target)` says yes or no."""
    ids, records = plan.wire_ids, []
    for target in targets:
        chosen = [ids[s] for s in query.sources if s != target and choose(query.repetition, s, target)]
        if plan.kind == CONNECTIVITY:
            records.append({TARGET: ids[target], SOURCES: chosen})
        else:
            records.append({EVALUATED: ids[target], SCRATCH: not chosen, EVIDENCE: chosen})
    return json.dumps({LIST_NAMES[plan.kind]: records})


def answered(path, plan, choose, leave_out=lambda query, target: False):
    """A run with one reply for each query, about all targets but those left out."""
    run = create_run(path, plan)
    with run.writing("a test") as writer:
        for number, query in enumerate(plan.queries):
            targets = tuple(t for t in query.targets if not leave_out(query, t))
            if targets:
                writer.reply(
                    Reply(
                        query.id,
                        1,
                        targets,
                        answer(plan, query, targets, choose),
                        received=f"2026-11-{29 + number % 2}T10:00:00Z",
                        model_served="gemini-3.8-flash",
                        usage={"input": 10, "output": 3},
                        cost_usd=0.5,
                    )
                )
    return open_run(path)


def yes(repetition, source, target):
    return (source + 2 * target + repetition * source) % 3 == 0


def test_connectivity_is_the_share_of_yes_votes_whatever_the_blocks(tmp_path):
    graph = build_graph(answered(tmp_path / "run", plan_for(CONNECTIVITY), yes))
    assert isinstance(graph, LearningConnectivity)
    assert graph.asked is None
    for s in range(5):
        for t in range(5):
            expected = 0 if s == t else sum(yes(r, s, t) for r in range(3)) / 3
            assert graph.weights[s, t] == expected


def test_the_provenance_is_whole_and_outlives_the_file(tmp_path):
    plan = plan_for(CONNECTIVITY)
    build_graph(answered(tmp_path / "run", plan, yes)).save(tmp_path / "g.json")
    origin = load_graph(tmp_path / "g.json").provenance
    queries = len(plan.queries)
    assert queries == 3 * 2 * 3
    assert origin.model_asked == "google:gemini-3.8-flash"
    assert origin.model_served == "gemini-3.8-flash"
    assert origin.prompt_hash == plan.prompts.digest
    assert origin.repetitions == 3
    assert origin.block_sizes == {"source_goals": 3, "target_goals": 2}
    assert origin.date == "2026-11-29 to 2026-11-30"
    assert origin.token_usage == {"input": 10 * queries, "output": 3 * queries}
    assert origin.learner == "primitive"
    text = " ".join(origin.notes)
    for part in ("by hand", plan.digest, "Thinking high", "seed 1", f"{queries} replies, $9.00"):
        assert part in text


def test_evidence_follows_equation_5(tmp_path):
    def first_two(repetition, source, target):
        return source in ((), (0,), (0, 1), (repetition,), (0, 1, 3))[target]

    graph = build_graph(answered(tmp_path / "run", plan_for(EVIDENCE_KIND), first_two))
    assert isinstance(graph, FeasibilityEvidence)
    assert graph.from_scratch == pytest.approx([1, 0, 0, 0, 0])
    assert graph.weights.toarray()[:, 2] == pytest.approx([0.5, 0.5, 0, 0, 0])
    assert graph.weights.toarray()[:, 3] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0])
    assert graph.weights.toarray()[:, 4] == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0])


def test_missing_judgments_are_named_and_never_filled_in(tmp_path):
    run = answered(tmp_path / "run", plan_for(CONNECTIVITY), yes, lambda q, t: q.repetition == 1 and t == 2)
    with pytest.raises(ValueError, match=r"lacks 2 of 30 judgments, the first that of 'ç' in query lc-r1-t"):
        build_graph(run)
    graph = build_graph(run, partial=True)
    assert isinstance(graph, LearningConnectivity)
    assert graph.asked is not None
    assert graph.asked.toarray()[:, 2].tolist() == [2, 2, 0, 2, 2]
    assert graph.asked.toarray()[:, 1].tolist() == [3, 0, 3, 3, 3]
    for s in (0, 1, 3, 4):
        assert graph.weights[s, 2] == (yes(0, s, 2) + yes(2, s, 2)) / 2
    assert "Partial: 2 of 30 judgments are missing." in graph.provenance.notes
    assert audit(graph).agreement["connectivity"].kappa is None


def test_evidence_may_lack_repetitions_but_no_task(tmp_path):
    plan = plan_for(EVIDENCE_KIND)
    run = answered(tmp_path / "some", plan, lambda r, s, t: s == (t + r) % 5, lambda q, t: q.repetition == 0 and t == 1)
    with pytest.raises(ValueError, match="lacks 1 of 15"):
        build_graph(run)
    graph = build_graph(run, partial=True)
    assert graph.weights.toarray()[:, 1] == pytest.approx([0, 0, 0.5, 0.5, 0])
    run = answered(tmp_path / "none", plan, lambda r, s, t: s == 0, lambda q, t: t == 1)
    with pytest.raises(ValueError, match="no judgment of 'b' at all"):
        build_graph(run, partial=True)


def test_a_run_without_replies_builds_nothing(tmp_path):
    run = create_run(tmp_path / "run", plan_for(CONNECTIVITY))
    with pytest.raises(ValueError, match="no valid judgment yet"):
        build_graph(run, partial=True)


def test_invalid_replies_count_as_spent_and_not_as_votes(tmp_path):
    plan = plan_for(CONNECTIVITY)
    run = answered(tmp_path / "run", plan, lambda *_: False)
    query = plan.queries[0]
    with run.writing("a test") as writer:
        own = plan.wire_ids[query.targets[0]]
        text = json.dumps({LIST_NAMES[plan.kind]: [{TARGET: own, SOURCES: [own]}]})
        writer.reply(Reply(query.id, 2, query.targets, text, usage={"input": 7}, cost_usd=1.0, model_served="other"))
    graph = build_graph(open_run(tmp_path / "run"))
    assert graph.weights.nnz == 0
    assert graph.provenance.model_served == "gemini-3.8-flash"
    assert graph.provenance.token_usage == {"input": 187, "output": 54}
    assert re.search(r"19 replies, \$10.00; 2 judgments were not valid", " ".join(graph.provenance.notes))


def test_every_model_that_answered_is_named(tmp_path):
    plan = plan_for(CONNECTIVITY)
    run = create_run(tmp_path / "run", plan)
    with run.writing("a test") as writer:
        for number, query in enumerate(plan.queries):
            text = answer(plan, query, query.targets, yes)
            writer.reply(Reply(query.id, 1, query.targets, text, model_served="new" if number > 3 else "old"))
    origin = build_graph(run).provenance
    assert origin.model_served == "new (14 replies), old (4 replies)"
    assert origin.token_usage is None
    assert origin.date is None


@pytest.mark.parametrize("kind", [CONNECTIVITY, EVIDENCE_KIND])
def test_a_pruned_run_weighs_an_edge_by_the_repetitions_that_asked(tmp_path, kind):
    tasks = TaskSet([Task(f"t{i}", f"Do thing {i % 7} with tool {i % 5}.") for i in range(40)])
    pruning = Pruning(12, 0.25, text_vectors(tasks.texts), "texts")
    options = {"source_block": 6} if kind == CONNECTIVITY else {}
    plan = plan_for(kind, tasks, target_block=4, pruning=pruning, **options)
    always = (
        (lambda r, s, t: True) if kind == CONNECTIVITY else (lambda r, s, t: s == min(q for q in range(40) if q != t))
    )
    graph = build_graph(answered(tmp_path / "run", plan, always))
    assert any("of the pairs" in note for note in graph.provenance.notes)
    counts = np.zeros((40, 40), int)
    for query in plan.queries:
        for t in query.targets:
            counts[list(query.sources), t] += 1
    np.fill_diagonal(counts, 0)
    assert graph.asked is not None
    assert (graph.asked.toarray() == counts).all()
    assert audit(graph, tasks).asked == pytest.approx((counts > 0).sum() / (40 * 39))
    graph.save(tmp_path / "g.json")
    again = load_graph(tmp_path / "g.json")
    assert again.asked is not None
    assert (again.asked != graph.asked).nnz == 0
    if kind == EVIDENCE_KIND:
        assert isinstance(graph, FeasibilityEvidence)
        assert graph.weights.sum() + graph.from_scratch.sum() == pytest.approx(40)
        return
    assert set(graph.weights.data) == {1.0}
    assert graph.weights.nnz == (counts > 0).sum()
