"""An audit as one self-contained HTML page: an adjacency heat map, the findings, and a table of the tasks."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forethought.files import replacing
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.judging.audit import Audit, audit
from forethought.judging.audit_text import agreement_rows, audit_rows, comparison_rows
from forethought.judging.comparison import Comparison, compare
from forethought.pages import encode_array, fill, page_file, script_safe, section, table
from forethought.tasks import TaskSet

PACKAGE = "forethought.judging"

WORDS = {
    "learning_connectivity": {"out": "helps", "into": "is helped by"},
    "feasibility_evidence": {"out": "is evidence for", "into": "rests on"},
}
HINT = (
    "Point at a cell for its edge; click it to list both tasks' edges. Arrow keys move the marked cell; zooming in "
    "shows the tasks' names."
)


def write_page(
    path: str | Path,
    graph: LearningConnectivity | FeasibilityEvidence,
    tasks: TaskSet | None = None,
    horizon: int = 2,
    *,
    other: LearningConnectivity | FeasibilityEvidence | None = None,
    names: tuple[str, str] = ("first", "second"),
) -> None:
    """Write the audit of a graph, and its comparison with another one, as a page that opens from disk.

    The page loads nothing from anywhere, and forbids itself to.

    Args:
        path: the HTML file; replaced whole.
        graph: the graph.
        tasks: the tasks it will be used for; their texts are shown. None: all of the graph's.
        horizon: L, the most edges of a path to a weighted task.
        other: a second graph of the same kind, drawn over the tasks of the first.
        names: what the two graphs are called.

    Raises:
        ValueError: as `audit` and `compare` do.
    """
    with replacing(path) as temporary:
        temporary.write_text(page(graph, tasks, horizon, other=other, names=names), encoding="utf-8")


def page(
    graph: LearningConnectivity | FeasibilityEvidence,
    tasks: TaskSet | None = None,
    horizon: int = 2,
    *,
    other: LearningConnectivity | FeasibilityEvidence | None = None,
    names: tuple[str, str] = ("first", "second"),
) -> str:
    """The text of the page that `write_page` writes."""
    found = audit(graph, tasks, horizon)
    comparison = None if other is None else compare(graph, other)
    kind = graph.kind.replace("_", " ").capitalize()
    title = kind if other is None else f"{kind}: {names[0]} and {names[1]}"
    sections = [section("Findings", table(audit_rows(found, 40), "findings"))]
    if found.agreement:
        head = ("edge", "alpha", "pairwise kappa", "agree", "agree on yes", "edges in each repetition")
        sections.append(section("Agreement between repetitions", table(agreement_rows(found), "", head)))
    if comparison is not None:
        sections.append(section("Comparison", _comparison(comparison, names)))
    sections.append(section("Tasks", _task_table(found, tasks)))
    graphs = [(names[0], graph)] if other is None else [(names[0], graph), (names[1], other)]
    return fill(
        PACKAGE,
        "audit.html",
        title=html.escape(title),
        subtitle=html.escape(_subtitle(found)),
        hint=html.escape(HINT),
        style=page_file("forethought", "base.css") + page_file(PACKAGE, "audit.css"),
        script=page_file(PACKAGE, "audit.js"),
        sections="\n".join(sections),
        data=script_safe(_data(found, tasks, graphs)),
    )


def _data(
    found: Audit, tasks: TaskSet | None, graphs: Sequence[tuple[str, LearningConnectivity | FeasibilityEvidence]]
) -> dict[str, Any]:
    """What the page's script draws."""
    orders = [("as listed", np.arange(len(found.ids)))]
    if found.depth is not None:
        far = np.where(found.depth < 0, found.depth.max(initial=0) + 1, found.depth)
        orders.append(("edges from scratch", np.argsort(far, kind="stable")))
    orders.append(("weight out of a task", np.argsort(-found.out_weight, kind="stable")))
    orders.append(("weight into a task", np.argsort(-found.in_weight, kind="stable")))
    whole = all(isinstance(graph, LearningConnectivity) and graph.asked is None for _, graph in graphs)
    return {
        "ids": found.ids,
        "texts": None if tasks is None else tasks.texts,
        "repetitions": found.repetitions,
        "votes": whole and len({_repetitions(graph) for _, graph in graphs}) == 1,
        "words": WORDS[found.kind],
        "orders": [{"name": name, "order": order.tolist()} for name, order in orders],
        "graphs": [{"name": name} | _edges(graph, found.ids) for name, graph in graphs],
    }


def _edges(graph: LearningConnectivity | FeasibilityEvidence, ids: tuple[str, ...]) -> dict[str, str]:
    """A graph's edges among the tasks, lightest first, as base64 of little-endian arrays."""
    place = {id: i for i, id in enumerate(ids)}
    position = np.array([place.get(id, -1) for id in graph.ids], dtype=np.int64)
    entries = graph.weights.tocoo()
    rows, columns = position[entries.row], position[entries.col]
    kept = np.flatnonzero((rows >= 0) & (columns >= 0))
    kept = kept[np.argsort(entries.data[kept], kind="stable")]
    return {
        "source": encode_array(rows[kept], "<u4"),
        "target": encode_array(columns[kept], "<u4"),
        "weight": encode_array(entries.data[kept], "<f4"),
    }


def _task_table(found: Audit, tasks: TaskSet | None) -> str:
    names = ["task", "text", "edges out", "edges in", "weight out", "weight in"]
    numbers: list[Iterable[Any]] = [
        found.out_degree.tolist(),
        found.in_degree.tolist(),
        (f"{weight:.1f}" for weight in found.out_weight),
        (f"{weight:.1f}" for weight in found.in_weight),
    ]
    if found.from_scratch is not None and found.depth is not None:
        names += ["from scratch", "edges from scratch"]
        numbers += [(f"{weight:.1f}" for weight in found.from_scratch), found.depth.tolist()]
    texts = [""] * len(found.ids) if tasks is None else tasks.texts
    heads = "".join(
        f'<th class="{"number" if i > 1 else "name"}" scope="col"><button type="button">{name}</button></th>'
        for i, name in enumerate(names)
    )
    rows = []
    for id, text, *cells in zip(found.ids, texts, *numbers, strict=True):
        cells_ = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        rows.append(f"<tr><td>{html.escape(id)}</td><td>{html.escape(text)}</td>{cells_}</tr>")
    body = "\n".join(rows)
    return f'<div class="wide"><table id="tasks"><thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _comparison(comparison: Comparison, names: tuple[str, str]) -> str:
    parts = [table(comparison_rows(comparison, names), "findings")]
    if comparison.differences:
        rows = [(s, t, f"{x:.3f}", f"{y:.3f}") for s, t, x, y in comparison.differences]
        parts += ["<h3>Edges that differ most</h3>", table(rows, "", ("source", "target", *names))]
    if comparison.from_scratch:
        rows = [(task, f"{x:.3f}", f"{y:.3f}") for task, x, y in comparison.from_scratch]
        parts += ["<h3>Feasible from scratch</h3>", table(rows, "", ("task", *names))]
    return "\n".join(parts)


def _subtitle(found: Audit) -> str:
    origin = found.provenance
    parts = [
        f"{len(found.ids)} tasks, {found.edges:,} edges",
        None if found.repetitions is None else f"{found.repetitions} repetitions",
        origin.model_served or origin.model_asked,
        origin.learner and f"learner: {origin.learner}",
        origin.date,
    ]
    return " · ".join(part for part in parts if part)


def _repetitions(graph: LearningConnectivity | FeasibilityEvidence) -> int | None:
    return None if graph.selections is None else len(graph.selections)
