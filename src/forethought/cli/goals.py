"""`forethought goals`: the goals of the benchmark."""

from collections.abc import Sequence
from typing import Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input


def command(arguments: Sequence[str]) -> int:
    """Run `forethought goals`."""
    from forethought.cli.parsing import call

    return call(goals, arguments, "forethought goals")


def goals(
    filter: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILTER")] = "",
    toy: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    own_goals: str = "",
) -> int:
    """List goals: id and text.

    Args:
        filter: Only goals with this in their id or text.
        toy: The goals of the tiny domain instead of Craftax's.
        own_goals: A Python file with goals of your own, to add to Craftax's; checks it, predicates included.
    """
    if toy and own_goals:
        raise UsageError("--own-goals: these are goals of Craftax; use it without --toy")
    if toy:
        from forethought.toy import tasks as load

        tasks = load()
    else:
        from forethought.cli.judge_domain import craftax_goals

        tasks = craftax_goals(own_goals)
        if own_goals:
            _check_predicates(own_goals)
    chosen = [task for task in tasks if filter.lower() in f"{task.id} {task.text}".lower()]
    width = max((len(task.id) for task in chosen), default=0)
    for task in chosen:
        print(f"{task.id:{width}}  {task.text}")
    print(f"{len(chosen)} of {len(tasks)} goals")
    return 0 if chosen else 1


def _check_predicates(path: str) -> None:
    from forethought.craftax.judge import make_judge
    from forethought.craftax.own_goals import load_goals

    with bad_input():
        make_judge(load_goals(path))
