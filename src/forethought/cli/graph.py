"""`forethought graph`: look at a graph, or check one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input, nearest

USAGE = """usage: forethought graph show NAME TASK [--top N]
       forethought graph check FILE

  show     a goal's strongest sources, targets and evidence; NAME is primitive or subroutines
           (the shipped graphs, judged for either learner) or a graph file
  check    validate a graph file: exit code 0 if it is sound, 1 with one line per problem if not"""


def command(arguments: Sequence[str]) -> int:
    """Run `forethought graph`."""
    from forethought.cli.parsing import call

    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    actions = {"show": show, "check": check}
    name, *rest = arguments
    if name not in actions:
        raise UsageError(f"no command 'graph {name}'{nearest(name, actions)}; allowed are show and check")
    return call(actions[name], rest, f"forethought graph {name}")


def show(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    top: int = 10,
) -> int:
    """Print a goal's strongest sources, targets and evidence.

    Args:
        name: primitive or subroutines, the shipped graphs for either learner; or a graph file.
        task: Id of the goal.
        top: How many of each to print.
    """
    from forethought.graphs import describe_task

    with bad_input():
        print(describe_task(*_graphs(name), task, top=top))
    return 0


def check(file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]) -> int:
    """Validate a graph file; one line per problem.

    Args:
        file: The graph file.
    """
    from forethought.graphs import check_graph

    with bad_input():
        problems = check_graph(Path(file))
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{file}: sound")
    return 1 if problems else 0


def _graphs(name: str) -> tuple:
    from forethought.craftax import shipped
    from forethought.graphs import FeasibilityEvidence, LearningConnectivity

    if name in ("primitive", "subroutines"):
        return shipped.connectivity(name), shipped.evidence(name)
    if not Path(name).is_file():
        raise UsageError(f"{name}: no such graph; name primitive, subroutines or a graph file")
    try:
        return LearningConnectivity.load(Path(name)), None
    except ValueError:
        return None, FeasibilityEvidence.load(Path(name))
