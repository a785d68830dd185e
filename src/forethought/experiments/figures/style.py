"""How every figure looks: sizes, type, colours, and where the legend goes."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DPI = 300
"""Resolution of the PNG; the layout is made at it, too, as widths of letters depend on it a little."""

TITLE_LENGTH = 22
"""Characters in a line of a panel's title."""

LABEL_LENGTHS = (50, 40, 30)
"""Characters in a line of a legend that is too wide otherwise, tried one after another."""

WIDTHS = {"page": 6.75, "column": 3.25}
"""Printed widths in inches: across a two-column page, or one of its columns."""

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.0,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "butt",
    "pdf.fonttype": 42,
    "svg.hashsalt": "forethought",
    "savefig.dpi": "figure",
}
"""Nothing printed is smaller than 6.5 points at the printed width."""


@dataclass(frozen=True)
class Line:
    """Look of a method's curve; the dashes tell curves apart where colours cannot."""

    colour: str
    dashes: Any = "-"
    """A line style as matplotlib takes it."""


METHOD_LINES = {
    "unif": Line("#8c8c8c", (0, (4, 1.5))),
    "target": Line("#000000", (0, (1, 1.2))),
    "i-diff": Line("#e69f00", (0, (5, 1.2, 1, 1.2))),
    "alp": Line("#56b4e9"),
    "alp+d": Line("#882255", (0, (6, 1.5))),
    "alp+f": Line("#009e73", (0, (3, 1, 1, 1, 1, 1))),
    "alp+d+f": Line("#d55e00"),
    "perm": Line("#0072b2", (0, (2, 1))),
    "learnability": Line("#332288", (0, (8, 1, 1, 1))),
    "plr": Line("#ddcc77", (0, (5, 1, 1, 1))),
    "mastering-rate": Line("#661100", (0, (3, 1.2))),
    "thompson": Line("#1a1aff", (0, (7, 1.2))),
    "omni": Line("#40004b", (0, (1, 0.6))),
}
"""Colours of the paper's methods after M. Okabe and K. Ito (2008), a palette for every kind of colour vision, without
its yellow; the others' are as far from these and from each other."""

SERIES_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#882255", "#56b4e9", "#8c8c8c", "#ddcc77", "#332288")
"""For series that are no methods."""

TARGET_COLOUR = "#d55e00"

STEP_UNITS = ((1e9, " (10⁹)"), (1e6, " (10⁶)"), (1e3, " (10³)"))


def method_line(method: str) -> Line:
    """The look of a method's curve; a method the paper has not gets black dots and dashes."""
    return METHOD_LINES.get(method, Line("#000000", (0, (5, 1, 1, 1, 1, 1))))


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style to what is drawn and saved inside, and to nothing else."""
    import matplotlib

    with matplotlib.rc_context(RC):  # pyright: ignore[reportArgumentType]
        yield


def grid(
    count: int, width: str, *, across: int, rows: int = 1, height: float = 1.45
) -> "tuple[Figure, list[list[Axes]]]":
    """A figure with panels side by side, continued below where the width ends.

    Args:
        count: columns of panels.
        width: the printed width.
        across: most columns side by side on a page; a column takes half of them.
        rows: panels on top of each other in each column; they share the x-axis.
        height: of a panel, in inches.

    Returns:
        The figure, and for each column its panels from top to bottom.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if width not in WIDTHS:
        raise ValueError(f"width is {width!r}; allowed: {', '.join(WIDTHS)}")
    most = across if width == "page" else max(across // 2, 1)
    columns = min(count, most)
    bands = -(-count // columns)
    size = (WIDTHS[width], height * rows * bands + 0.55)
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.04)  # pyright: ignore
    panels: list[list[Axes]] = []
    for number in range(count):
        band, column = divmod(number, columns)
        stack: list[Axes] = []
        for row in range(rows):
            place = (band * rows + row) * columns + column + 1
            stack.append(
                figure.add_subplot(bands * rows, columns, place, sharex=stack[0] if stack else None)  # pyright: ignore
            )
        panels.append(stack)
    return figure, panels


def title(axes: "Axes", text: str) -> None:
    """Set a panel's title, in lines that no neighbour is hit by."""
    axes.set_title(textwrap.fill(text, TITLE_LENGTH))


def legend_below(figure: "Figure", handles: "Sequence[Artist]", labels: Sequence[str]) -> None:
    """One legend for all panels, below them, in as many columns as the width holds; lines that are too long wrap."""
    whole = [(list(labels), -(-len(labels) // lines)) for lines in range(1, len(labels) + 1)]
    wrapped = [([textwrap.fill(label, length) for label in labels], 1) for length in LABEL_LENGTHS]
    for texts, columns in [*whole, *wrapped]:
        legend = figure.legend(
            list(handles), texts, loc="outside lower center", ncols=columns, columnspacing=1.2, borderaxespad=0.2
        )
        if legend.get_window_extent(figure.canvas.get_renderer()).width <= figure.bbox.width:  # pyright: ignore
            return
        legend.remove()
    figure.legend(list(handles), texts, loc="outside lower center", ncols=1, borderaxespad=0.2)


def step_axis(axes: "Axes", most: float) -> None:
    """Label an axis of environment steps in a unit that reads well, and end it at the last step."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit, label = next(((unit, label) for unit, label in STEP_UNITS if most >= 0.8 * unit), (1.0, ""))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    axes.set_xlabel(f"environment steps{label}")
    axes.set_xlim(0, most or 1)


def percent_axis(axes: "Axes", highest: float, label: str) -> None:
    """Start an axis of per cents at 0 and end it above the highest value; the leftmost panel has the label."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.set_ylim(0, min(max(highest * 1.06, 5.0), 103.0))
    if leftmost(axes):
        axes.set_ylabel(label)


def leftmost(axes: "Axes") -> bool:
    """Whether a panel is the first in its line."""
    spec = axes.get_subplotspec()
    return spec is not None and spec.is_first_col()
