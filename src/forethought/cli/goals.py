"""`forethought goals`: the goals of the benchmark."""

from collections.abc import Sequence
from typing import Annotated

import tyro


def command(arguments: Sequence[str]) -> int:
    """Run `forethought goals`."""
    from forethought.cli.parsing import call

    return call(goals, arguments, "forethought goals")


def goals(
    filter: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILTER")] = "",
    toy: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """List goals: id and text.

    Args:
        filter: Only goals with this in their id or text.
        toy: The goals of the tiny domain instead of Craftax's.
    """
    if toy:
        from forethought.toy import tasks as load
    else:
        from forethought.craftax.shipped import goals as load
    tasks = load()
    chosen = [task for task in tasks if filter.lower() in f"{task.id} {task.text}".lower()]
    width = max((len(task.id) for task in chosen), default=0)
    for task in chosen:
        print(f"{task.id:{width}}  {task.text}")
    print(f"{len(chosen)} of {len(tasks)} goals")
    return 0 if chosen else 1
