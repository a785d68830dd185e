"""Everything that is computed of a suite's runs, written down in one place."""

from pathlib import Path

import polars as pl

from forethought.experiments.permuted import permuted
from forethought.experiments.results import evaluations
from forethought.experiments.suites import Suite
from forethought.experiments.summaries import comparisons, overlap, profiles, retained, summary
from forethought.files import replacing


def write_results(suite: Suite, out: str | Path) -> tuple[Path, dict[str, pl.DataFrame]]:
    """Compute all tables of a suite and write each as Parquet.

    Args:
        suite: The runs.
        out: Folder of the sweep; the tables go to `results/<suite>-<scale>` below it.

    Returns:
        Where they are, and the tables by name; those without a row are not written.

    Raises:
        ConfigError: If a directory holds a run with another configuration.
        ValueError: If no run has been evaluated yet.
    """
    measured = evaluations(suite, out)
    if not len(measured):
        raise ValueError(
            f"suite {suite.name} at scale {suite.scale}: no run in {out} has been evaluated yet; "
            f"make them with: {suite.command(out)}"
        )
    tables = {
        "evaluations": measured,
        "summary": summary(suite, measured),
        "comparisons": comparisons(suite, measured),
        "overlap": overlap(suite, measured),
        "profiles": profiles(suite, measured),
        "targets": retained(suite, measured),
        "permuted": permuted(suite, out),
    }
    folder = Path(out) / "results" / f"{suite.name}-{suite.scale}"
    folder.mkdir(parents=True, exist_ok=True)
    of = [pl.lit(suite.name).alias("suite"), pl.lit(suite.scale).alias("scale")]
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        if not len(table):
            path.unlink(missing_ok=True)
            continue
        with replacing(path) as temporary:
            table.select(*of, pl.all()).write_parquet(temporary)
    return folder, tables
