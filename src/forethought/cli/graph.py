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

SHIPPED = ("primitive", "subroutines")
TITLES = {
    "sources": "learning helped by: sources of",
    "targets": "learning helps: targets of",
    "evidence": "success that makes it feasible: evidence for",
}


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
    if top < 1:
        raise UsageError(f"--top: {top} given; allowed are 1 and more")
    with bad_input():
        found = _of_shipped(name, task, top) if name in SHIPPED else _of_file(Path(name), task, top)
    for title, strongest in found.items():
        print(f"{TITLES[title]} {task}" + ("" if strongest else ": none"))
        for other, weight in strongest:
            print(f"  {weight:.3f}  {other}")
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


def _of_shipped(name: str, task: str, top: int) -> dict[str, list[tuple[str, float]]]:
    from forethought.craftax import shipped
    from forethought.graphs import describe_task

    return describe_task(shipped.connectivity(name), shipped.evidence(name), task, top)


def _of_file(path: Path, task: str, top: int) -> dict[str, list[tuple[str, float]]]:
    from forethought.graphs import describe_in, load_graph

    if not path.is_file():
        raise UsageError(f"{path}: no such graph; name {' or '.join(SHIPPED)} (shipped) or a graph file")
    graph = load_graph(path)
    if task not in graph.ids:
        raise UsageError(f"{path} has no task {task!r}{nearest(task, graph.ids)}")
    return describe_in(graph, task, top)
