"""`forethought demo`: the whole path in one command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from forethought.cli.errors import bad_input


def command(arguments: Sequence[str]) -> int:
    """Run `forethought demo`."""
    from forethought.cli.parsing import call

    return call(demo, arguments, "forethought demo")


def demo(out: str = "runs/demo", seed: int = 0, env: Literal["auto", "engine", "jax"] = "auto") -> int:
    """Train a small agent on Craftax on the CPU, within minutes.

    Evaluates it before and after, and draws its success and what the curriculum chose over time.

    Args:
        out: Directory for the results; if it exists, a number is added to the name.
        seed: Seed of the run.
        env: What plays Craftax: engine, jax, or auto for the engine if it is installed.
    """
    from forethought.cli.train import start
    from forethought.config import load_config

    directory = free_directory(Path(out))
    with bad_input():
        config = load_config("demo", overrides={"seed": seed, "environment.backend": env})
    code = start(config, directory)
    if code:
        return code
    from forethought.experiments.curves import draw_run

    picture = draw_run(directory)
    print(f"\n{before_and_after(directory)}\n")
    print(f"picture   {picture}\nresults   {directory}\ncontinue  forethought eval {directory} --episodes 128")
    return 0


def free_directory(wanted: Path) -> Path:
    """The first of `wanted`, `wanted-2`, `wanted-3`, ... that does not exist."""
    directory, number = wanted, 1
    while directory.exists():
        number += 1
        directory = wanted.with_name(f"{wanted.name}-{number}")
    return directory


def before_and_after(directory: Path) -> str:
    """A table of each evaluated goal's success in the first and in the last evaluation."""
    from forethought.rundir import RunDirectory

    table = RunDirectory(directory).evaluations()
    first, last = table["iteration"].min(), table["iteration"].max()
    before = {row["goal"]: row for row in table.filter(table["iteration"] == first).iter_rows(named=True)}
    after = table.filter(table["iteration"] == last).sort("success_rate", descending=True, maintain_order=True)
    title = "success in evaluation"
    width = max(map(len, [title, *before]))
    lines = [f"{title:{width}}  before   after   95 % interval"]
    for row in after.iter_rows(named=True):
        interval = f"{row['wilson_low']:.0%} to {row['wilson_high']:.0%}"
        then = before[row["goal"]]["success_rate"]
        lines.append(f"{row['goal']:{width}}  {then:6.0%}  {row['success_rate']:6.0%}   {interval}")
    return "\n".join(lines)
