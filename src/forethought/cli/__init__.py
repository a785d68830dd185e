"""The command line: `forethought COMMAND ...`. Each command is a module, loaded when it is called."""

import sys
from collections.abc import Sequence
from importlib import import_module

from forethought.cli.errors import UsageError

COMMANDS = {
    "demo": "train an agent on Craftax for a few minutes on the CPU, and draw what happened",
    "train": "train an agent: PRESET, FILE.toml or the directory of a run to continue",
    "eval": "measure the agent of a run",
    "replay": "draw an episode of a run as an animation",
    "sweep": "train all runs of an experiment of the paper, at its scale or smaller",
    "figure": "draw a figure of the paper from such runs",
    "table": "make a table of the paper",
    "report": "write an experiment's report: one HTML page",
    "results": "tables and statistics of an experiment",
    "judge": "ask a language model for the two graphs of your tasks, and audit them",
    "graph": "show a goal's place in a graph, or check a graph file",
    "goals": "list the goals of Craftax",
    "embed": "make goal vectors with any sentence-transformers model",
    "leaderboard": "results on the benchmark: show and check them, add one, measure one again",
    "doctor": "versions, devices, caches and data, to paste into a bug report",
}

USAGE = "\n".join(
    [
        "usage: forethought COMMAND ...",
        "",
        "Decide what a reinforcement-learning agent should train on next.",
        "",
        *(f"  {name:13}{text}" for name, text in COMMANDS.items()),
        "",
        "  forethought COMMAND --help    all about one command",
        "  forethought --version",
    ]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 when it worked, 2 on bad input (one line on stderr), 85 interrupted."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Returns:
        The exit code.
    """
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    if name == "--version":
        from forethought import __version__

        print(f"forethought {__version__}")
        return 0
    try:
        if name not in COMMANDS:
            from forethought.cli.errors import nearest

            raise UsageError(f"no command {name!r}{nearest(name, COMMANDS)}; commands are {', '.join(COMMANDS)}")
        return import_module(f"forethought.cli.{name}").command(rest) or 0
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        from forethought.cli.errors import missing_extra

        if (line := missing_extra(error)) is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (`| head`, for one) has seen enough.
        sys.stderr.close()
        return 0
