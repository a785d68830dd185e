"""Curves with a band of one standard deviation, as Figures 1, 3, 4 and 12 share them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from forethought.experiments.figures.style import Line

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


def draw_curves(
    axes: "Axes",
    table: "pl.DataFrame",
    looks: Mapping[tuple[str, str], Line],
    over: str = "steps",
    stairs: bool = False,
) -> float:
    """Draw each series' mean and band.

    Args:
        axes: Where.
        table: Columns `method`, `variant`, `over`, `mean`, `sd`.
        looks: Look of each series by method and variant, in the order of drawing; the last lies on top.
        over: The column along the x-axis.
        stairs: Whether a value holds until the next; otherwise points are joined.

    Returns:
        The highest value drawn, band included (at most 100), in per cent.
    """
    highest = 0.0
    for (method, variant), line in looks.items():
        points = table.filter((table["method"] == method) & (table["variant"] == variant)).sort(over)
        if not points.height:
            continue
        x, mean, sd = (points[name].to_numpy() for name in (over, "mean", "sd"))
        low, high = np.maximum(mean - sd, 0), np.minimum(mean + sd, 100)
        marker = "o" if len(x) == 1 else None
        axes.fill_between(x, low, high, color=line.colour, alpha=0.15, linewidth=0, step="post" if stairs else None)
        style = "steps-post" if stairs else "default"
        axes.plot(x, mean, color=line.colour, linestyle=line.dashes, marker=marker, markersize=3, drawstyle=style)
        highest = max(highest, float(high.max()))
    return highest


def handle(line: Line) -> "Line2D":
    """The look's mark in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=line.colour, linestyle=line.dashes)
