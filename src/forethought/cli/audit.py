"""What becomes of judgments: `forethought judge build`, `judge audit` and `judge compare-transfer`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input, nearest

if TYPE_CHECKING:
    from forethought.graphs import FeasibilityEvidence, LearningConnectivity
    from forethought.tasks import TaskSet

SHIPPED = ("connectivity.primitive", "connectivity.subroutines", "evidence.primitive", "evidence.subroutines")
"""Names of the graphs that ship with the benchmark."""


def build(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path | None = None,
    partial: bool = False,
) -> int:
    """Build the graph files of a judging run.

    Args:
        run: The run; a folder that holds runs of both kinds makes both graphs.
        out: Where to: the folder of the graph files, by default the run's own.
        partial: Allow judgments to be missing; a pair without an answer gets no edge.
    """
    from forethought.cli.judge import runs_in
    from forethought.judging.aggregate import build_graph

    with bad_input():
        graphs = [build_graph(found, partial) for found in runs_in(str(run))]
        folder = run if out is None else out
        folder.mkdir(parents=True, exist_ok=True)
        for graph in graphs:
            path = folder / f"{graph.kind}.json"
            graph.save(path)
            print(f"{path}: {len(graph.ids)} tasks, {graph.weights.nnz:,} edges")
    return 0


def audit(
    graph: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GRAPH")],
    other: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="OTHER")] = None,
    /,
    tasks: Path | None = None,
    target: str | None = None,
    horizon: int = 2,
    top: int = 10,
    html: Path | None = None,
) -> int:
    """Examine a graph, or compare two.

    Args:
        graph: A graph file, or a shipped graph such as connectivity.primitive.
        other: A second graph of the same kind, to compare with.
        tasks: File of the tasks that the graph is for, with their weights; default: all of its tasks, equally weighted.
        target: The only task that carries weight.
        horizon: L, the most edges of a path to a weighted task.
        top: How many tasks a list names.
        html: Also write a page with a heat map here.
    """
    from forethought.judging.audit import audit as examine
    from forethought.judging.audit_page import write_page
    from forethought.judging.audit_text import audit_text, comparison_text
    from forethought.judging.comparison import compare

    if top < 1:
        raise UsageError(f"--top: {top} given; allowed are 1 and more")
    with bad_input():
        first = _graph(graph)
        second = None if other is None else _graph(other)
        used = _tasks(graph, first, tasks, target)
        names = (graph, other or "")
        parts = [audit_text(examine(first, used, horizon), top)]
        if second is not None:
            parts.append(comparison_text(compare(first, second, top), names, top))
        if html is not None:
            write_page(html, first, used, horizon, other=second, names=names)
            parts.append(f"page: {html}\n")
    print("\n".join(parts), end="")
    return 0


def compare_transfer(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    graph: str | None = None,
    horizon: int = 8,
    top: int = 100,
) -> int:
    """Hold a graph against what training has shown: do its edges go with measured gains?

    Args:
        runs: Run directories of `forethought train`; uniform ones tell most.
        graph: A graph file, or a shipped graph such as connectivity.primitive; default: the connectivity of the run.
        horizon: Iterations after which training on a task still counts as the cause of a gain.
        top: How many of the clearest measured gains to look up in the graph.
    """
    from forethought.experiments.transfer import compare_transfer as measure
    from forethought.experiments.transfer import comparison_text

    with bad_input():
        if not runs:
            raise UsageError("name the directory of at least one run")
        chosen = _graph_of_run(runs[0]) if graph is None else _graph(graph)
        found = measure(runs, chosen, horizon=horizon, top=top)
    print(comparison_text(found), end="")
    return 0


def _graph(name: str) -> "LearningConnectivity | FeasibilityEvidence":
    from forethought.craftax.shipped import graph_path
    from forethought.graphs import load_graph

    if name in SHIPPED:
        kind, _, learner = name.partition(".")
        return load_graph(graph_path(kind, learner))
    if not Path(name).is_file():
        raise UsageError(f"{name}: no such graph file{nearest(name, SHIPPED)}; shipped are {', '.join(SHIPPED)}")
    return load_graph(name)


def _graph_of_run(path: Path) -> "LearningConnectivity":
    from forethought.config import load_config
    from forethought.domains import DOMAINS
    from forethought.rundir import CONFIG, RunDirectory

    config = load_config(RunDirectory(path).path / CONFIG)
    connectivity = DOMAINS[config.tasks.domain](config).connectivity
    if connectivity is None:
        raise UsageError(f"{path}: domain {config.tasks.domain} ships no connectivity; name a graph with --graph")
    return connectivity


def _tasks(
    name: str, graph: "LearningConnectivity | FeasibilityEvidence", file: Path | None, target: str | None
) -> "TaskSet | None":
    from forethought.tasks import Task, TaskSet

    if file is not None:
        tasks = TaskSet.load(file)
    elif name in SHIPPED:
        from forethought.craftax.shipped import goals

        tasks = goals()
    elif target is not None:
        tasks = TaskSet(Task(id, id) for id in graph.ids)
    else:
        return None
    return tasks if target is None else tasks.with_target(target)
