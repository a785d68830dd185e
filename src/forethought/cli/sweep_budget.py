"""`forethought sweep budget`: what whole suites take."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input

if TYPE_CHECKING:
    from forethought.experiments.budget import Part, Speed


def budget(
    suites: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SUITE ...")] = (),
    scale: str = "paper",
    out: str = "runs",
    measured: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUNDIR ...")] = (),
    steps_per_second: float | None = None,
    evaluation_seconds: float | None = None,
    runs_per_device: int = 1,
    devices: int = 1,
    price: float | None = None,
) -> int:
    """Say how many hours of a device suites take, and what they cost; a run that several suites have counts once.

    The speed comes from a run on the device, of a few iterations or more:

      forethought train paper --iterations 3 --evaluation.episodes 1 --out runs/speed
      forethought sweep budget --measured runs/speed --devices 8 --price 2.5

    Args:
        suites: Names of suites, or TOML files; default: all that ship.
        scale: As in `sweep run`.
        out: Folder of the sweeps; what is done there is not counted.
        measured: Runs on the device, one of each learner; they must have the network, the environments and the
            updates of the scale.
        steps_per_second: Speed of one run, instead; without either, it is that of the runs in the folder.
        evaluation_seconds: How long an evaluation of the scale takes; default: as long as that many steps of training
            would, which also learns.
        runs_per_device: Runs that were side by side on the device when the speed was measured.
        devices: Devices at work at the same time, for the days.
        price: Of an hour of a device, in any currency.
    """
    from forethought.experiments.budget import Speed, measured_on
    from forethought.experiments.budget import budget as add_up
    from forethought.experiments.cost import measured_speeds
    from forethought.experiments.suites import SUITES

    for name, value in (
        ("steps-per-second", steps_per_second),
        ("evaluation-seconds", evaluation_seconds),
        ("runs-per-device", runs_per_device),
        ("devices", devices),
        ("price", price),
    ):
        if value is not None and not value > 0:
            raise UsageError(f"--{name}: {value:g} given; allowed is a number above 0")
    if measured and steps_per_second is not None:
        raise UsageError("--steps-per-second: given with --measured; allowed is one of them")
    with bad_input():
        names = suites or tuple(SUITES)
        if steps_per_second is not None:
            speeds = {learner: Speed(steps_per_second, "as given") for learner in ("primitive", "subroutines")}
        elif measured:
            speeds = measured_on(measured, names, scale)
        else:
            found = measured_speeds(out, scale)
            speeds = {learner: Speed(rate, f"median in {out}/{scale}") for learner, rate in found.items()}
        parts = add_up(names, scale, out, speeds, evaluation_seconds, runs_per_device)
    print(_table(parts, "with evaluation" if evaluation_seconds else "at most"))
    print(f"steps at scale {scale}; evaluation counts every episode up to its limit; hours are those of one device")
    beside = f", {runs_per_device} side by side on a device" if runs_per_device > 1 else ""
    for learner, speed in sorted(speeds.items()):
        print(f"{learner}: {count(speed.steps_per_second)} steps/s of a run{beside} ({speed.source})")
    print(_sum(parts, speeds, "" if evaluation_seconds else "at most ", devices, price))
    return 0


def count(number: int | float) -> str:
    """A number with three digits.

    >>> [count(number) for number in (7, 7680, 1_500_000_000)]
    ['7', '7.68k', '1.5G']
    """
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def _table(parts: "Sequence[Part]", last: str) -> str:
    """One line a suite, and the sum."""
    rows = [("suite", "runs", "counted", "left", "training", "evaluation", "hours", last)]
    for part in parts:
        cost = part.cost
        rows.append(
            (
                part.suite,
                str(part.runs),
                str(len(part.counted)),
                str(cost.runs),
                count(cost.training_steps),
                count(cost.evaluation_steps),
                _hours(cost.training_hours),
                _hours(cost.most_hours),
            )
        )
    costs = [part.cost for part in parts]
    least, most = _total(parts)
    rows.append(
        (
            "all",
            "",
            str(sum(len(part.counted) for part in parts)),
            str(sum(cost.runs for cost in costs)),
            count(sum(cost.training_steps for cost in costs)),
            count(sum(cost.evaluation_steps for cost in costs)),
            _hours(least),
            _hours(most),
        )
    )
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        right = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        lines.append("  ".join([name.ljust(first), *right]))
    return "\n".join(lines)


def _sum(parts: "Sequence[Part]", speeds: "Mapping[str, Speed]", bound: str, devices: int, price: float | None) -> str:
    least, most = _total(parts)
    if least is None or most is None:
        learners = {run.spec.learner for part in parts for run in part.counted if not run.state.done}
        missing = " and ".join(sorted(learners - set(speeds)))
        return f"hours unknown: no speed of {missing} (give --measured RUNDIR or --steps-per-second)"
    plural = "s" if devices > 1 else ""
    days = f"{most / devices / 24:.1f} days on {devices} device{plural}, {least / devices / 24:.1f} of them training"
    money = "" if price is None else f"; {most * price:,.0f} at {price:g} an hour, {least * price:,.0f} of it training"
    return f"in all {bound}{days}{money}"


def _total(parts: "Sequence[Part]") -> tuple[float | None, float | None]:
    """Hours of training, and at most with evaluation; None where one is not known."""
    least = [part.cost.training_hours for part in parts]
    most = [part.cost.most_hours for part in parts]
    if None in least or None in most:
        return None, None
    return sum(filter(None, least)), sum(filter(None, most))


def _hours(hours: float | None) -> str:
    return "?" if hours is None else f"{hours:,.1f}" if hours < 100 else f"{hours:,.0f}"
