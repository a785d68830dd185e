"""Arguments: tyro reads the small commands' flags and prints all help; the models check a run's settings."""

import contextlib
import functools
import io
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tyro

from forethought.cli.errors import UsageError, one_line

T = typing.TypeVar("T")


def call(function: Callable[..., T], arguments: Sequence[str], prog: str) -> T:
    """Call a function with arguments from the command line, as its signature asks for."""
    captured = io.StringIO()
    try:
        with contextlib.redirect_stderr(captured):
            bound = tyro.cli(_deferred(function), args=list(arguments), prog=prog)
    except SystemExit as error:
        if error.code in (0, None):
            sys.exit(0)
        raise UsageError(f"{_plain(captured.getvalue())} (see {prog} --help)") from None
    return bound()


def split_settings(arguments: Sequence[str], fields: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Split a command line into its leading words and its settings.

    Args:
        arguments: such as `["paper", "--ppo.minibatches", "4", "--tasks.goals", "a", "b"]`.
        fields: type of each setting by dotted name.

    Returns:
        The words before the first flag, and the raw values by dotted name.

    Raises:
        UsageError: for an unknown flag, or one without a value.
    """
    first = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    words, settings = list(arguments[:first]), {}
    rest = list(arguments[first:])
    while rest:
        flag, equals, inline = rest.pop(0).partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        negated = re.sub(r"(^|\.)no_(?=[^.]*$)", r"\1", name)
        if not flag.startswith("--"):
            raise UsageError(f"{flag}: expected a flag such as --iterations")
        if name not in fields and fields.get(negated) is bool:
            settings[negated] = False
            continue
        if name not in fields:
            raise UsageError(f"no flag {flag}{_nearest_flag(name, fields)}")
        values = [inline] if equals else []
        while not equals and rest and not _is_flag(rest[0]):
            values.append(rest.pop(0))
        settings[name] = _raw(flag, values, fields[name])
    return words, settings


def _raw(flag: str, values: list[str], kind: Any) -> Any:
    if kind is bool and not values:
        return True
    if typing.get_origin(kind) is tuple:
        return values
    if len(values) != 1:
        raise UsageError(f"{flag}: expected one value, got {len(values)}")
    if values[0] in ("None", "none") and isinstance(kind, types.UnionType) and type(None) in kind.__args__:
        return None
    return values[0]


def _is_flag(word: str) -> bool:
    return word.startswith("--") or bool(re.fullmatch(r"-[a-zA-Z]", word))


def _nearest_flag(name: str, fields: Mapping[str, Any]) -> str:
    from forethought.config import nearest as nearest_field

    return nearest_field(name, fields).replace("mean ", "mean --").replace("_", "-")


def _deferred(function: Callable[..., T]) -> Callable[..., Callable[[], T]]:
    """The same signature and help, but called later: its own output and errors are not the parser's."""

    @functools.wraps(function)
    def bind(*args: Any, **kwargs: Any) -> Callable[[], T]:
        return functools.partial(function, *args, **kwargs)

    return bind


def _plain(boxed: str) -> str:
    """The text of tyro's framed message, in one line."""
    boxed = re.sub(r"\x1b\[[0-9;]*m", "", boxed)
    inside = [line.strip("│ \t") for line in boxed.splitlines() if not line.startswith(("╭", "╰"))]
    text = one_line(" ".join(line for line in inside if line and not set(line) <= set("─")))
    return text.split(" For full helptext")[0] or "bad arguments"
