"""What figures, tables and reports are made from: the records of one suite of runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.experiments.figures.names import METHODS, method_name, ordered
from forethought.experiments.suites import RUN, RunSpec, Suite, load_suite
from forethought.experiments.suites.schema import UNIFORM

if TYPE_CHECKING:
    import polars as pl


class MissingRunsError(ValueError):
    """There are no records for what was asked; the message says which command makes them."""


@dataclass(frozen=True)
class Study:
    """A suite and its records."""

    suite: Suite
    evaluations: "pl.DataFrame"
    """Columns `RUN`, `iteration`, `steps`, `goal`, `episodes`, `successes`, `success_rate`."""
    record: "Callable[[RunSpec], pl.DataFrame]"
    """The curriculum record of an evaluated run, as `RunDirectory.curriculum` gives it."""
    command: str
    """`Suite.command` of the runs' folder."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Text of each goal."""

    @property
    def targets(self) -> list[str]:
        """The suite's targets, in its order."""
        return [group for group in self.suite.groups if group != UNIFORM]

    def missing(self, what: str, wanted: Callable[[RunSpec], bool]) -> MissingRunsError:
        """The error for runs that are not there.

        Args:
            what: Which, in words, such as "with uniform weights".
            wanted: Whether a run of the suite is one of them.
        """
        place = f"suite {self.suite.name} at scale {self.suite.scale}"
        if not any(map(wanted, self.suite.runs)):
            return MissingRunsError(f"{place} has no run {what}; name a suite that has with --suite")
        return MissingRunsError(f"no run {what} has been evaluated in {place}; make them with: {self.command}")

    def note(self, used: "pl.DataFrame", wanted: Callable[[RunSpec], bool], *, means: bool = True) -> str:
        """What the records are, and how many of the runs that belong to the comparison are missing.

        Args:
            used: Columns `RUN` and `iteration` at least: the evaluations of the runs that belong to it.
            wanted: Whether a run of the suite belongs to the comparison.
            means: Whether runs that have not ended are left out beside those that have.
        """
        from forethought.experiments.results import finished

        there, ended = (set(rows.select(RUN).unique().iter_rows()) for rows in (used, finished(self.suite, used)))
        planned = [run for run in self.suite.runs if wanted(run)]
        missing = [run for run in planned if run.key not in there]
        seeds = len({seed for *_, seed in there})
        note = (
            f"Suite {self.suite.name} at scale {self.suite.scale} ({self.suite.about}): {_count(len(there), 'run')}, "
            f"{_count(seeds, 'seed')}. Made by `{self.command}`."
        )
        if missing:
            note += f" Not complete: {len(missing)} of {_count(len(planned), 'run')} had no evaluation yet"
            series = {run[:-1] for run in there}
            absent = {run.method for run in missing} - {method for _, _, method, _ in series}
            note += f" (none of {', '.join(map(method_name, ordered(absent, METHODS)))})." if absent else "."
        if begun := len(there - ended):
            left_out = ", left out where others of the kind have" if means else ""
            note += f" Not ended: {_count(begun, 'run')}{left_out}."
        return note


def load_study(name: str | Path, scale: str, out: str | Path) -> Study:
    """Read the records of a suite.

    Args:
        name: A suite's name or TOML file.
        scale: Name of a scale.
        out: Folder of the sweep.

    Raises:
        ValueError: for an unknown suite or scale, or runs that are not the suite's.
    """
    from forethought.experiments.results import evaluations

    suite = load_suite(name, scale)
    return Study(suite, evaluations(suite, out), _Records(Path(out)), suite.command(out), goal_texts(suite))


def goal_texts(suite: Suite) -> dict[str, str]:
    """Text of every goal of the suite's domain."""
    if suite.runs[0].config.tasks.domain == "toy":
        from forethought.toy import tasks as load
    else:
        from forethought.craftax.shipped import goals as load
    return {task.id: task.text for task in load()}


@dataclass(frozen=True)
class _Records:
    out: Path

    def __call__(self, run: RunSpec) -> "pl.DataFrame":
        from forethought.rundir import RunDirectory

        return RunDirectory(self.out / run.directory).curriculum()


def _count(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else noun + 's'}"
