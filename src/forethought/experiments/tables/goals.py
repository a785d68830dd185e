"""Table 1: the goals of the benchmark, those that differ in a threshold only in one row. The layout is the paper's."""

import re
from collections.abc import Iterable

from forethought.experiments.tables.formats import Table
from forethought.tasks import Task

WITH_THRESHOLD = ("have", "attribute", "kill")
"""Families of goals that differ in a number."""


def goal_table() -> Table:
    """Table 1, from the goals that ship with the package."""
    from forethought.craftax.shipped import goals

    rows, count = [], 0
    for text, numbers in goal_rows(goals()):
        count += max(len(numbers), 1)
        rows.append((text, ", ".join(map(str, numbers)) or "–", str(count)))
    return Table(
        "The goals of the benchmark",
        ("goal", "values of n", "goals so far"),
        (*rows, ("all goals", "", str(count))),
        "Every goal that an agent can be given in Craftax. Where a row has values of n, each is a goal of its own, "
        "worded in the singular where n is 1; any other row is one goal. The last column counts the goals down to its "
        "row.",
        "Success is judged from the states before and after a step. An attack from a distance that kills a cow, a bat "
        "or a snail goes unseen in this comparison when another animal takes its place in the same step; the agent "
        "must then damage or defeat one more of its kind.",
    )


def goal_rows(goals: Iterable[Task]) -> list[tuple[str, list[int]]]:
    """The rows: a text, with n for the number of a threshold, and the values of n, none where there is no threshold."""
    from forethought.craftax.goal_specs import parse_goal

    rows: dict[object, tuple[str, list[int]]] = {}
    for goal in goals:
        spec = parse_goal(goal.id)
        if spec.family not in WITH_THRESHOLD:
            rows[goal.id] = (goal.text, [])
            continue
        key = (spec.family, spec.thing, spec.floor)
        _, numbers = rows.get(key, ("", []))
        text = re.sub(rf"\b{spec.amount}\b", "n", goal.text, count=1)
        rows[key] = (text, [*numbers, spec.amount])
    return list(rows.values())
