"""`forethought figure`: the paper's figures from finished runs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]


def command(arguments: Sequence[str]) -> int:
    """Run `forethought figure`."""
    from forethought.cli.parsing import call

    return call(figure, arguments, "forethought figure")


def figure(
    number: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="N")],
    suite: str = "",
    scale: str = "laptop",
    out: str = "runs",
    to: str = "",
    width: Literal["page", "column"] = "page",
    methods: Names = (),
    target: str = "",
    goals: Names = (),
) -> int:
    """Draw a figure of the paper from the runs of an experiment, as PNG, SVG and PDF.

    1: success on single targets. 2 and 5 to 7: what each method trained on, one target each. 3: all goals count.
    4: longest path L and coefficient alpha. 8 to 11: seeds of ALP+D+F, one target each. 12: half the weight on the
    target. The plotted numbers are written as CSV, the caption as Markdown. Runs that are missing: the command that
    makes them is named.

    Args:
        number: 1 to 12, or all for every figure that has runs.
        suite: Name of the suite of runs, or its TOML file; default: the one that the figure shows in the paper.
        scale: Scale of the runs: paper, gpu-hour, laptop, or one of the suite's own.
        out: Folder of the runs, as of `forethought sweep`.
        to: Folder for the files; default: figures/SUITE-SCALE in the folder of the runs.
        width: For the width of a page or of one of its two columns.
        methods: Methods to show, with spaces or commas between them; default: those of the paper's figure.
        target: For figures of one target: which; default: the paper's, or the one in its place in a smaller suite.
        goals: For figures of one target: the goals to show beside it.
    """
    from forethought.experiments.figures import FIGURES, Options, draw_figure, load_study

    with bad_input():
        options = Options(width, tuple(_names(methods)), tuple(_names(goals)), target)
        numbers = _numbers(number, FIGURES)
        names = {n: suite or FIGURES[n].suite for n in numbers}
        studies = {name: load_study(name, scale, out) for name in dict.fromkeys(names.values())}
    missing = []
    for n in numbers:
        study = studies[names[n]]
        folder = Path(to) if to else Path(out) / "figures" / f"{study.suite.name}-{study.suite.scale}"
        try:
            with bad_input():
                paths = draw_figure(n, study, folder, options)
        except UsageError as error:
            if number != "all":
                raise
            missing.append(f"left out: {error}")
            continue
        print(f"figure {n}: {paths[0]} ({', '.join(path.suffix[1:] for path in paths[1:])})")
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if len(missing) == len(numbers) else 0


def _numbers(text: str, known: Mapping[int, object]) -> list[int]:
    if text == "all":
        return list(known)
    if not text.isdecimal() or int(text) not in known:
        raise UsageError(f"figure is {text!r}; allowed are 1 to {max(known)} and all")
    return [int(text)]


def _names(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in word.split(",") if part]
