"""Bad input ends in one line and exit code 2."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EXTRAS = {
    "jax": "craftax",
    "equinox": "craftax",
    "optax": "craftax",
    "craftax": "craftax",
    "gymnax": "craftax",
    "matplotlib": "craftax",
    "polars": "craftax",
    "sentence_transformers": "embed",
    "yaml": "yaml",
    "wandb": "wandb",
    "tensorboardX": "tensorboard",
    "ray": "ray",
    "submitit": "slurm",
}
"""The extra that brings each optional module."""


class UsageError(Exception):
    """Something the caller can put right; the message is one line."""


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn what the library raises about its input into a `UsageError`; for the steps before the work."""
    try:
        yield
    except KeyError as error:
        raise UsageError(one_line(str(error.args[0]) if error.args else str(error))) from error
    except BrokenPipeError:
        # The reader of the output has gone; that is no matter of the input.
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UsageError(one_line(f"{where}{error.strerror or error}")) from error
    except ValueError as error:
        raise UsageError(one_line(str(error))) from error


def one_line(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the nearest name, or nothing."""
    close = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What is missing and the command that brings it; None for a module that no extra brings."""
    module = (error.name or "").split(".")[0]
    if module not in EXTRAS:
        return None
    return f"the package {module} is not installed; it comes with: pip install 'forethought[{EXTRAS[module]}]'"
