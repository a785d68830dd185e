"""Recorded judgments: JSON lines, one query and its reply each, to a graph's selections.

A connectivity line has `repetition`, `source_ids`, `target_ids` and `reply.records` with `target_id` and
`transfer_source_ids`; an evidence line has `evidence_ids` for `source_ids`, and `reply.judgments` with
`evaluated_goal_id`, `feasible_from_scratch` and `readiness_evidence_goal_ids` (1 to 3, or none from scratch).
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from forethought.graphs import FeasibilityEvidence, LearningConnectivity, Provenance
from forethought.tasks import TaskSet


def connectivity_from_judgments(
    lines: Iterable[dict[str, Any]], tasks: TaskSet, provenance: Provenance | None = None
) -> LearningConnectivity:
    """The learning-connectivity graph of recorded judgments (paper, Appendix B.1 and Eq. 4).

    Raises:
        ValueError: a reply is not valid for its query, or a repetition does not judge every ordered pair once.
    """
    size = len(tasks)
    repetitions: dict[int, list[list[int]]] = {}
    judged: dict[int, set[tuple[int, int]]] = {}
    for line in lines:
        r = line["repetition"]
        sources, targets = _positions(line["source_ids"], tasks), _positions(line["target_ids"], tasks)
        selected = repetitions.setdefault(r, [[] for _ in range(size)])
        seen = judged.setdefault(r, set())
        for s in sources:
            for t in targets:
                if s != t and (s, t) in seen:
                    raise ValueError(f"repetition {r} judges {tasks.ids[s]!r} -> {tasks.ids[t]!r} more than once")
                seen.add((s, t))
        answers = {record["target_id"]: record["transfer_source_ids"] for record in line["reply"]["records"]}
        _require_same(r, line["target_ids"], answers, len(line["reply"]["records"]))
        for target, chosen in answers.items():
            _require_among(r, target, chosen, set(line["source_ids"]) - {target})
            selected[tasks.index(target)].extend(tasks.index(source) for source in chosen)
    for r, seen in judged.items():
        missing = size * (size - 1) - sum(s != t for s, t in seen)
        if missing:
            raise ValueError(f"repetition {r} leaves {missing} ordered pairs unjudged; it must judge each once")
    return LearningConnectivity.from_selections(tasks.ids, [repetitions[r] for r in sorted(repetitions)], provenance)


def evidence_from_judgments(
    lines: Iterable[dict[str, Any]], tasks: TaskSet, provenance: Provenance | None = None
) -> FeasibilityEvidence:
    """The feasibility-evidence graph of recorded judgments (paper, Appendix B.1 and Eq. 5).

    Raises:
        ValueError: a reply is not valid for its query, or a repetition does not judge every task once.
    """
    repetitions: dict[int, dict[int, list[int]]] = {}
    for line in lines:
        r = line["repetition"]
        selected = repetitions.setdefault(r, {})
        judgments = line["reply"]["judgments"]
        answers = {judgment["evaluated_goal_id"]: judgment for judgment in judgments}
        _require_same(r, line["target_ids"], answers, len(judgments))
        for target, judgment in answers.items():
            chosen = judgment["readiness_evidence_goal_ids"]
            _require_among(r, target, chosen, set(line["evidence_ids"]) - {target})
            if bool(chosen) == judgment["feasible_from_scratch"] or len(chosen) > 3:
                raise ValueError(
                    f"repetition {r} calls {target!r} feasible from scratch: {judgment['feasible_from_scratch']}, with "
                    f"{len(chosen)} evidence goals; none goes with true, 1 to 3 go with false"
                )
            if tasks.index(target) in selected:
                raise ValueError(f"repetition {r} judges {target!r} more than once")
            selected[tasks.index(target)] = [tasks.index(source) for source in chosen]
    for r, selected in repetitions.items():
        if len(selected) < len(tasks):
            missing = next(id for i, id in enumerate(tasks.ids) if i not in selected)
            raise ValueError(f"repetition {r} does not judge {missing!r}; it must judge every task once")
    ordered = [[repetitions[r][m] for m in range(len(tasks))] for r in sorted(repetitions)]
    return FeasibilityEvidence.from_selections(tasks.ids, ordered, provenance)


def read_judgments(path: str | Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of recorded judgments; a ValueError names the line that is not JSON."""
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: not JSON: {error}") from error


def _positions(ids: list[str], tasks: TaskSet) -> list[int]:
    return [tasks.index(id) for id in ids]


def _require_same(r: int, asked: list[str], answers: dict[str, Any], count: int) -> None:
    if set(asked) != set(answers) or count != len(asked):
        wrong = sorted(set(asked) ^ set(answers)) or ["a target twice"]
        raise ValueError(f"repetition {r}: the reply's targets differ from those asked: {', '.join(wrong[:5])}")


def _require_among(r: int, target: str, chosen: list[str], allowed: set[str]) -> None:
    wrong = [id for id in chosen if id not in allowed]
    if wrong:
        raise ValueError(f"repetition {r} selects {wrong[0]!r} for {target!r}, which was not offered")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"repetition {r} selects a task twice for {target!r}")
