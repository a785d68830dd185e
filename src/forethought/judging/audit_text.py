"""Audits and comparisons as plain text."""

from collections.abc import Iterable, Sequence

import numpy as np

from forethought.graphs import strongest
from forethought.judging.audit import Audit
from forethought.judging.comparison import Comparison

Rows = list[tuple[str, str]]
"""What stands left and right in a two-column table."""


def audit_text(audit: Audit, most: int = 10) -> str:
    """The audit as a table, a line a finding; lists name at most `most` tasks."""
    parts = [f"{audit.kind.replace('_', ' ')}, {len(audit.ids)} tasks", columns(audit_rows(audit, most))]
    if audit.agreement:
        parts += ["agreement between repetitions", agreement_table(audit)]
    parts.append(f"tasks with most edges (at most {most})")
    parts.append(columns(hub_rows(audit, most)))
    return "\n\n".join(parts) + "\n"


def comparison_text(comparison: Comparison, names: tuple[str, str] = ("first", "second"), most: int = 20) -> str:
    """The comparison as a table, then the edges that differ most."""
    parts = [
        f"{comparison.kind.replace('_', ' ')}: {names[0]} against {names[1]}",
        columns(comparison_rows(comparison, names, most)),
    ]
    if comparison.differences:
        parts.append(f"edges that differ most ({names[0]}, {names[1]})")
        parts.append("\n".join(f"  {x:5.3f}  {y:5.3f}  {s} -> {t}" for s, t, x, y in comparison.differences[:most]))
    if comparison.from_scratch:
        parts.append(f"feasible from scratch ({names[0]}, {names[1]})")
        parts.append("\n".join(f"  {x:5.3f}  {y:5.3f}  {task}" for task, x, y in comparison.from_scratch[:most]))
    return "\n\n".join(parts) + "\n"


def audit_rows(audit: Audit, most: int = 10) -> Rows:
    """Every finding that fits on one line."""
    origin = audit.provenance
    evidence = audit.from_scratch is not None
    rows = [
        ("judged by", _model(origin.model_asked, origin.model_served)),
        ("learner", origin.learner or "not recorded"),
        ("date", origin.date or "not recorded"),
        ("repetitions", "none: weights only" if audit.repetitions is None else str(audit.repetitions)),
        ("pairs asked about", f"{audit.asked:.1%}"),
        ("edges", f"{audit.edges:,} ({audit.density:.2%} of the pairs; {audit.mutual:,} pairs in both directions)"),
        (
            "edges by weight" + (", up to" if evidence else ""),
            "; ".join(f"{level:.2g}: {count:,}" for level, count in audit.edges_by_weight) or "none",
        ),
        ("edges into a task", spread(audit.in_degree)),
        ("edges out of a task", spread(audit.out_degree)),
        (
            "nothing to rest on" if evidence else "helped by no task",
            _list(audit.unhelped, most),
        ),
        ("evidence for no task" if evidence else "helping no task", _list(audit.helping_none, most)),
    ]
    if evidence:
        return rows + _evidence_rows(audit, most)
    to = f"no path of at most {audit.horizon} edge{'s' * (audit.horizon > 1)} to a weighted task"
    return [*rows, (to, _list(audit.without_path, most))]


def agreement_table(audit: Audit) -> str:
    """A line for each kind of edge."""
    head = ("edge", "alpha", "pairwise kappa", "agree", "agree on yes", "edges in each repetition")
    lines = [head, *agreement_rows(audit)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def agreement_rows(audit: Audit) -> list[tuple[str, ...]]:
    """Kind of edge, alpha, range of the pairwise kappas, agreement, positive agreement, edges in each repetition."""
    rows = []
    for kind, found in audit.agreement.items():
        kappas = [] if found.kappa is None else found.kappa[np.triu_indices(len(found.kappa), 1)]
        known = [k for k in kappas if not np.isnan(k)]
        between = f"{min(known):.2f} to {max(known):.2f}" if known else "-"
        numbers = (_number(found.alpha), between, _number(found.observed), _number(found.positive))
        rows.append((kind, *numbers, ", ".join(f"{count:,}" for count in found.edges_per_repetition)))
    return rows


def hub_rows(audit: Audit, most: int) -> Rows:
    """The tasks with most edges out of them and into them."""
    names = (
        ("evidence for most tasks", "most evidence") if audit.from_scratch is not None else ("help most", "helped most")
    )
    return [
        (
            name,
            ", ".join(f"{id} ({count:.0f})" for id, count in strongest(degree.astype(float), audit.ids, most)) or "-",
        )
        for name, degree in zip(names, (audit.out_degree, audit.in_degree), strict=True)
    ]


def comparison_rows(comparison: Comparison, names: tuple[str, str], most: int = 20) -> Rows:
    """Every number of the comparison."""
    a, b = comparison.edges
    rows = [
        ("tasks in both", str(len(comparison.ids))),
        (f"only in {names[0]}", _list(comparison.only_first, most)),
        (f"only in {names[1]}", _list(comparison.only_second, most)),
        ("edges", f"{a:,} and {b:,}; {comparison.shared:,} in both"),
        ("Jaccard, edges", _number(comparison.jaccard)),
        ("Jaccard, weights", _number(comparison.weighted_jaccard)),
        ("kappa, weight at least 1/2", _number(comparison.kappa)),
        ("rank correlation, edges of either", _number(comparison.correlation)),
        ("mean difference, edges of either", f"{comparison.mean_difference:.3f}"),
    ]
    return rows


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """A table of two columns, indented by two."""
    rows = list(rows)
    width = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"  {left.ljust(width)}  {right}".rstrip() for left, right in rows)


def spread(values: np.ndarray) -> str:
    """Least, median, mean and most of some counts."""
    if not values.size:
        return "-"
    return f"{values.min()} to {values.max()}, median {np.median(values):g}, mean {values.mean():.1f}"


def _evidence_rows(audit: Audit, most: int) -> Rows:
    assert audit.from_scratch is not None
    assert audit.depth is not None
    levels = np.bincount(audit.depth[audit.depth >= 0]) if (audit.depth >= 0).any() else np.zeros(0, int)
    cycles = "none"
    if audit.cycle_groups:
        tasks = sum(map(len, audit.cycle_groups))
        loop = " -> ".join((*audit.strongest_cycle[:most], audit.strongest_cycle[0]))
        cycles = (
            f"{tasks} tasks in {len(audit.cycle_groups)} group{'s' * (len(audit.cycle_groups) > 1)}; the strongest: "
            f"{loop}, weakest edge {audit.strongest_cycle_weight:.3g}"
        )
    return [
        (
            "feasible from scratch",
            f"{int((audit.from_scratch > 0).sum())} tasks in at least one repetition, "
            f"{int((audit.from_scratch >= 1).sum())} in all; sum of weights {audit.from_scratch.sum():.1f}",
        ),
        ("cycles of evidence", cycles),
        ("rest on no task feasible from scratch", _list(audit.ungrounded, most)),
        ("tasks by edges from scratch", "; ".join(f"{n}: {count}" for n, count in enumerate(levels)) or "none"),
    ]


def _model(asked: str | None, served: str | None) -> str:
    if asked is None:
        return served or "not recorded"
    return asked if served in (None, asked) else f"{asked}, served by {served}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _list(ids: Sequence[str], most: int) -> str:
    if not ids:
        return "none"
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return f"{len(ids)}: {', '.join(ids[:most])}{more}"
