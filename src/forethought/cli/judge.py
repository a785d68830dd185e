"""`forethought judge`: from a task list and a language model to the two graphs."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.cli.errors import UsageError, bad_input, nearest

if TYPE_CHECKING:
    from forethought.judging.store import Run

ACTIONS = {
    "plan": ("judge_plan", "plan", "lay out every query; count queries, tokens and dollars; nothing is sent"),
    "run": ("judge_run", "run", "ask a model live; a killed run continues where it was"),
    "batch": ("judge_batch", "batch", "submit, status, collect, cancel: ask through a batch API, at half the price"),
    "export": ("judge_files", "export", "write the open queries as JSON lines, for any other system or a person"),
    "import": ("judge_files", "import_", "store replies to exported queries"),
    "recorded": ("judge_files", "recorded", "store judgments that were recorded with their queries"),
    "status": ("judge_files", "status", "how far a run is, what it cost, what went wrong"),
    "build": ("audit", "build", "make the graph files from a run's replies"),
    "audit": ("audit", "audit", "agreement, degrees, circles and gaps of a graph; compare two"),
    "compare-transfer": ("audit", "compare_transfer", "hold a graph's edges against what a training run measured"),
}
"""Module of the command line, function, and what it does, by name."""

USAGE = "\n".join(
    [
        "usage: forethought judge ACTION ...",
        "",
        "Ask a language model which task's learning helps which other task, and when a task is ready to be trained.",
        "",
        *(f"  {name:18}{text}" for name, (_, _, text) in ACTIONS.items()),
        "",
        "  forethought judge plan judging/mine --tasks my.json --environment env.md --learner-context learner.md",
        "  forethought judge run judging/mine --max-usd 20",
        "  forethought judge build judging/mine",
        "",
        "  forethought judge ACTION --help    all about one action",
    ]
)


def command(arguments: Sequence[str]) -> int:
    """Run `forethought judge`."""
    from forethought.cli.parsing import call

    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    name, *rest = arguments
    if name not in ACTIONS:
        raise UsageError(f"no command 'judge {name}'{nearest(name, ACTIONS)}; allowed are {', '.join(ACTIONS)}")
    module, function, _ = ACTIONS[name]
    action: Callable[..., int] = getattr(import_module(f"forethought.cli.{module}"), function)
    if name == "batch":
        return action(rest)
    return call(action, rest, f"forethought judge {name}")


def runs_in(directory: str) -> "list[Run]":
    """The runs of a directory: itself, or one for each kind of judgment inside it."""
    from forethought.judging.plan import KINDS
    from forethought.judging.store import PLAN, open_run

    path = Path(directory)
    with bad_input():
        if (path / PLAN).exists():
            return [open_run(path)]
        found = [path / kind for kind in KINDS if (path / kind / PLAN).exists()]
        if not found:
            raise UsageError(f"{directory}: no judging run; make one with: forethought judge plan {directory}")
        return [open_run(run) for run in found]
