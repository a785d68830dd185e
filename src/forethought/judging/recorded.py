"""Recorded judgments, one query and its reply a line, as a run like any other.

A connectivity line has `repetition`, `source_ids`, `target_ids` and `reply.records` with `target_id` and
`transfer_source_ids`; an evidence line has `evidence_ids` for `source_ids`, and `reply.judgments` with
`evaluated_goal_id`, `feasible_from_scratch` and `readiness_evidence_goal_ids` (1 to 3, or none from scratch); one of
interestingness has `mastered_ids`, and `reply.records` with `target_id` and `mastered_goal_ids`. Replies name tasks by
their own ids.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from forethought.judging.blocks import Group
from forethought.judging.plan import Plan, Settings
from forethought.judging.prompts import LISTS, Prompts
from forethought.judging.replies import Reply
from forethought.judging.store import Run, create_run
from forethought.tasks import TaskSet

SOURCES = {
    "learning_connectivity": "source_ids",
    "feasibility_evidence": "evidence_ids",
    "interestingness": "mastered_ids",
}
"""The field with the goals that were offered, by kind of judgment."""


def import_recorded(
    lines: Iterable[dict[str, Any]],
    tasks: TaskSet,
    prompts: Prompts,
    path: str | Path,
    *,
    model: str,
    learner: str | None = None,
    received: str | None = None,
    notes: Sequence[str] = (),
) -> Run:
    """Make a run of recorded judgments: their design becomes its plan, their replies are stored and judged as usual.

    Args:
        lines: the recorded queries, of one kind.
        tasks: the task set.
        prompts: what the judge was told.
        path: directory of the run.
        model: who judged.
        learner: a name for the learner.
        received: when, if that is known.
        notes: what a reader of the graph should know.

    Raises:
        ValueError: a line is not a recorded query, or the repetitions do not ask each ordered pair once.
    """
    lines = list(lines)
    kind = prompts.kind
    by_repetition: dict[int, list[dict[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        lacking = [name for name in ("repetition", SOURCES[kind], "target_ids", "reply") if name not in line]
        if lacking:
            raise ValueError(f"line {number}: has no {', '.join(lacking)}; a recorded {kind} query is needed")
        by_repetition.setdefault(line["repetition"], []).append(line)
    repetitions = [by_repetition[r] for r in sorted(by_repetition)]
    design = tuple(tuple(_group(kind, line, tasks) for line in repetition) for repetition in repetitions)
    plan = Plan(
        kind=kind,
        tasks=tasks,
        prompts=prompts,
        settings=Settings(model, thinking=None),
        repetitions=design,
        block_sizes={
            LISTS[kind]: max((len(group.sources[0]) for groups in design for group in groups), default=0),
            "target_goals": max((len(group.targets[0]) for groups in design for group in groups), default=0),
        },
        learner=learner,
        own_ids=True,
        notes=tuple(notes),
    )
    plan.check_pairs()
    run = create_run(path, plan)
    replies = (line["reply"] for repetition in repetitions for line in repetition)
    with run.writing("importing recorded judgments") as writer:
        for query, reply in zip(plan.queries, replies, strict=True):
            text = json.dumps(reply, ensure_ascii=False)
            writer.reply(Reply(query.id, 1, query.targets, text, received=received, model_served=model, via="import"))
    return run


def _group(kind: str, line: dict[str, Any], tasks: TaskSet) -> Group:
    sources, targets = (tuple(map(int, tasks.indices(line[name]))) for name in (SOURCES[kind], "target_ids"))
    return Group((sources,), (targets,))
