"""A table of texts, and the Markdown, CSV and LaTeX it becomes."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forethought.files import replacing


@dataclass(frozen=True)
class Table:
    """A table of texts; a row of one cell is a heading over the rows after it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    note: str
    numbers: tuple[tuple[str, ...], ...] = ()
    """What the CSV file holds, if that is not `rows`: a head and rows, one number a cell."""


def write_table(table: Table, out: str | Path, stem: str) -> list[Path]:
    """Write a table as Markdown, CSV and LaTeX.

    Args:
        table: The table.
        out: Directory; made if need be.
        stem: Name of the files without their endings.

    Returns:
        Paths of the three files.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, text in (("md", markdown(table)), ("csv", csv_text(table)), ("tex", latex(table))):
        path = out / f"{stem}.{kind}"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def markdown(table: Table) -> str:
    """The table with its title, caption and note."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    width = len(table.head)
    rows = [line((f"**{row[0]}**", *[""] * (width - 1)) if len(row) == 1 else row) for row in table.rows]
    body = "\n".join([line(table.head), line(["---"] * width), *rows])
    return f"# {table.title}\n\n{table.caption}\n\n{body}\n\n{table.note}\n"


def csv_text(table: Table) -> str:
    """The table's numbers: a head and rows."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table.numbers or (table.head, *table.rows))
    return text.getvalue()


def latex(table: Table) -> str:
    """The table as a `tabular` for LaTeX; it needs the package booktabs."""
    width = len(table.head)
    lines = [f"% {table.title}", f"\\begin{{tabular}}{{l{'r' * (width - 1)}}}", "\\toprule", _latex_line(table.head)]
    for row in table.rows:
        if len(row) == 1:
            lines += ["\\midrule", f"\\multicolumn{{{width}}}{{l}}{{\\emph{{{_latex(row[0])}}}}} \\\\"]
        else:
            lines += ["\\midrule"] * (row is table.rows[0]) + [_latex_line(row)]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", f"% {table.caption}", f"% {table.note}", ""])


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + " \\\\"


LATEX = {
    "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "–": "--", "α": "$\\alpha$", "γ": "$\\gamma$",
    "λ": "$\\lambda$", "ρ": "$\\rho$",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
