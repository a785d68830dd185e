"""`forethought table`: the paper's tables, from finished runs where they show any."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from forethought.cli.errors import bad_input


def command(arguments: Sequence[str]) -> int:
    """Run `forethought table`."""
    from forethought.cli.parsing import call

    return call(table, arguments, "forethought table")


def table(
    number: Annotated[Literal[1, 2, 3], tyro.conf.Positional, tyro.conf.arg(metavar="N")],
    suite: str = "",
    scale: str = "laptop",
    out: str = "runs",
    to: str = "",
) -> int:
    """Print a table of the paper, and write it as Markdown, CSV and LaTeX.

    1: the goals of the benchmark. 2: what was tuned. 3: how much longest path L and coefficient alpha matter. Only 3
    needs runs.

    Args:
        number: 1, 2 or 3.
        suite: For table 3: name of the suite of runs, or its TOML file; default: sensitivity.
        scale: Scale of the runs: paper, gpu-hour, laptop, or one of the suite's own.
        out: Folder of the runs, as of `forethought sweep`.
        to: Folder for the files; default: tables, or tables/SUITE-SCALE, in the folder of the runs.
    """
    from forethought.experiments.tables import TABLES, make_table, markdown, write_table

    with bad_input():
        study = None
        folder = Path(out) / "tables"
        if TABLES[number].suite:
            from forethought.experiments.figures import load_study

            study = load_study(suite or TABLES[number].suite, scale, out)
            folder /= f"{study.suite.name}-{study.suite.scale}"
        made = make_table(number, study)
        paths = write_table(made, Path(to) if to else folder, f"table-{number}")
    print(markdown(made))
    print(f"table {number}: {paths[0]} ({', '.join(path.suffix[1:] for path in paths[1:])})")
    return 0
