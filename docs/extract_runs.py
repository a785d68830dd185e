"""Take from two training runs the numbers of the picture of Craftax, which `docs/pictures.py` draws.

The runs are two of `forethought sweep targets` at laptop scale (a few minutes each on one core), given as arguments:
runs/laptop/have_8_wood/primitive/alp/seed-0 and runs/laptop/have_8_wood/primitive/alp+d+f/seed-0.
"""

import csv
import sys
from pathlib import Path

import polars as pl

from forethought.config import load_config

GOALS = ("have_1_wood", "have_2_wood", "have_4_wood", "have_8_wood")
BLOCK = 3
"""Iterations that a bar of the picture stands for."""
IMAGES = Path(__file__).parent / "images"


def rows(run: Path) -> list[dict[str, str | int | float]]:
    """A run's shares of training by block of iterations, and its success at every evaluation, by goal."""
    config = load_config(run / "config.toml")
    steps = config.steps_per_iteration_total
    goal = pl.when(pl.col("task").is_in(GOALS)).then(pl.col("task")).otherwise(pl.lit("other goals"))
    shares = (
        pl.concat([pl.read_parquet(file) for file in sorted(run.glob("curriculum-*.parquet"))])
        .with_columns(goal=goal, block=(pl.col("iteration") - 1) // BLOCK)
        .group_by("block", "goal")
        .agg(pl.col("effective_share").sum() / pl.col("iteration").n_unique())
        .sort("block", "goal")
    )
    evaluations = pl.read_parquet(run / "evaluations.parquet").filter(pl.col("goal").is_in(GOALS))
    found: list[dict[str, str | int | float]] = [
        {"method": config.method, "what": "trained on", "steps": block * BLOCK * steps, "goal": name, "value": value}
        for block, name, value in shares.iter_rows()
    ]
    for name, at, value in evaluations.select("goal", "steps", "success_rate").sort("goal", "steps").iter_rows():
        found.append({"method": config.method, "what": "success", "steps": at, "goal": name, "value": value})
    return [row | {"value": round(float(row["value"]), 5)} for row in found]


if __name__ == "__main__":
    with (IMAGES / "craftax.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["method", "what", "steps", "goal", "value"], lineterminator="\n")
        writer.writeheader()
        for argument in sys.argv[1:]:
            writer.writerows(rows(Path(argument)))
