"""`forethought report`: an experiment as one HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from forethought.cli.errors import bad_input


def command(arguments: Sequence[str]) -> int:
    """Run `forethought report`."""
    from forethought.cli.parsing import call

    return call(report, arguments, "forethought report")


def report(
    suite: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")],
    scale: str = "laptop",
    out: str = "runs",
    to: str = "",
) -> int:
    """Write an experiment's report: one HTML page that opens from disk, without a network.

    What was run, learning curves, what the curricula trained on, success by goal, coverage, timings, and every number
    as CSV. Runs that are not finished are shown as far as they are.

    Args:
        suite: Name of a suite, or a TOML file, as for `forethought sweep`.
        scale: paper, gpu-hour, laptop, or one of the suite's own.
        out: Folder of the runs.
        to: The HTML file; default: reports/SUITE-SCALE.html in the folder of the runs.
    """
    from forethought.experiments.figures import load_study
    from forethought.experiments.report import write_report

    with bad_input():
        study = load_study(suite, scale, out)
        path = Path(to) if to else Path(out) / "reports" / f"{study.suite.name}-{study.suite.scale}.html"
        write_report(path, study, out)
    print(f"report: {path}")
    return 0
