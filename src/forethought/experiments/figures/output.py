"""A drawn figure and the files it becomes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.files import replacing

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Drawn:
    """A figure, the numbers plotted in it, and the words that go with it."""

    figure: "Figure"
    table: "pl.DataFrame"
    title: str
    caption: str
    note: str


def save(drawn: Drawn, out: str | Path, stem: str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF, its numbers as CSV and its caption as Markdown.

    The same figure gives the same bytes: no date is written into the files.

    Args:
        drawn: The figure.
        out: Directory; made if need be.
        stem: Name of the files without their endings.

    Returns:
        Paths of the five files.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    dates = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    for kind in FORMATS:
        path = out / f"{stem}.{kind}"
        with replacing(path) as temporary:
            drawn.figure.savefig(temporary, format=kind, metadata=dates[kind])
        paths.append(path)
    for kind, text in (("csv", drawn.table.write_csv()), ("md", words(drawn))):
        path = out / f"{stem}.{kind}"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def words(drawn: Drawn) -> str:
    """Title, caption and note as Markdown."""
    return f"# {drawn.title}\n\n{drawn.caption}\n\n{drawn.note}\n"
