"""The paper's tables: the goals (1), what was tuned (2), how much L and alpha matter (3); notes in our own words."""

from collections.abc import Callable
from dataclasses import dataclass

from forethought.experiments.figures.study import MissingRunsError, Study
from forethought.experiments.tables.formats import Table, markdown, write_table
from forethought.experiments.tables.goals import goal_table
from forethought.experiments.tables.sensitivity import sensitivity_table
from forethought.experiments.tables.tuned import tuned_table

__all__ = ["TABLES", "Spec", "Table", "make_table", "markdown", "write_table"]


@dataclass(frozen=True)
class Spec:
    """One table of the paper."""

    make: Callable[..., Table]
    """Makes it; from the study, if it shows runs."""
    suite: str = ""
    """The suite whose runs it shows; empty for a table that needs none."""


TABLES: dict[int, Spec] = {
    1: Spec(goal_table),
    2: Spec(tuned_table),
    3: Spec(sensitivity_table, "sensitivity"),
}
"""The paper's tables by number."""


def make_table(number: int, study: Study | None = None) -> Table:
    """A table of the paper.

    Args:
        number: 1 to 3.
        study: The records, for a table that shows runs.

    Raises:
        MissingRunsError: if the study has no runs for it; the message names the command that makes them.
        ValueError: for an unknown number, or a table of runs without a study.
    """
    if number not in TABLES:
        raise ValueError(f"table is {number!r}; allowed are 1 to {max(TABLES)}")
    spec = TABLES[number]
    if not spec.suite:
        return spec.make()
    if study is None:
        raise ValueError(f"table {number} shows runs of a suite such as {spec.suite}; none given")
    try:
        return spec.make(study)
    except MissingRunsError as error:
        raise MissingRunsError(f"table {number}: {error}") from None
