"""Checkpoints that are either whole or refused: one `state.npz` and an `info.json` with both digests.

A checkpoint is written under a temporary name, forced to disk and renamed, so a crash leaves the earlier ones
untouched. Nothing in it is pickled.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forethought.files import sync_directory

STATE = "state.npz"
INFO = "info.json"


class Checkpoint(NamedTuple):
    """What `load_latest` found."""

    iteration: int
    arrays: dict[str, Any]
    """Nested dicts with NumPy arrays as leaves, as they were saved."""
    info: dict[str, Any]
    """JSON values, as they were saved."""


def save(directory: Path, iteration: int, arrays: Mapping[str, Any], info: Mapping[str, Any], *, keep: int = 2) -> Path:
    """Write the checkpoint of `iteration` and remove all but the last `keep`.

    Checkpoints of later iterations belong to an abandoned future and are removed as well.

    Args:
        directory: Where the checkpoints of one run lie, one folder for each; made if missing.
        iteration: Iterations done, 0 or more.
        arrays: Nested dicts with string keys (without `/`) and NumPy arrays of numbers or booleans as leaves.
        info: JSON values.
        keep: How many checkpoints stay.

    Returns:
        The folder of the new checkpoint.

    Raises:
        ValueError: If a leaf is no plain array or a key contains `/`.
        OSError: If the disk refuses.
    """
    flat = _flatten(arrays)
    directory.mkdir(parents=True, exist_ok=True)
    temporary = directory / f".writing-{iteration}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    with open(temporary / STATE, "wb") as file:
        np.savez(file, **flat)  # pyright: ignore[reportArgumentType]
        _sync(file)
    with open(temporary / STATE, "rb") as file:
        state_digest = hashlib.file_digest(file, "sha256").hexdigest()
    content = {"iteration": iteration, "info": info}
    record = content | {"state_sha256": state_digest, "info_sha256": _digest(content)}
    with open(temporary / INFO, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1, sort_keys=True)
        _sync(file)
    sync_directory(temporary)

    target = directory / str(iteration)
    if target.exists():
        replaced = directory / f".replaced-{iteration}"
        shutil.rmtree(replaced, ignore_errors=True)
        target.rename(replaced)
    temporary.rename(target)
    sync_directory(directory)
    _tidy(directory, iteration, keep)
    return target


def load_latest(directory: Path, *, warn: Callable[[str], None] | None = None) -> Checkpoint | None:
    """The newest checkpoint that is whole; None if there never was one.

    Args:
        directory: As for `save`.
        warn: Called with one line for each damaged checkpoint passed over; the default prints it on stderr.

    Raises:
        ValueError: If there are checkpoints and every one is damaged.
    """
    warn = warn or (lambda line: print(line, file=sys.stderr))
    found = sorted(iterations(directory), reverse=True)
    for iteration in found:
        try:
            return _load(directory / str(iteration))
        except Exception as error:  # a damaged file can fail in any layer: JSON, zip, zlib, NumPy
            warn(f"checkpoint {directory / str(iteration)} is damaged ({error}); trying the one before it")
    if found:
        raise ValueError(f"every checkpoint in {directory} is damaged: {', '.join(map(str, found))}")
    return None


def iterations(directory: Path) -> list[int]:
    """Iterations that have a checkpoint (whole or not), in ascending order."""
    if not directory.is_dir():
        return []
    return sorted(int(entry.name) for entry in directory.iterdir() if entry.is_dir() and entry.name.isdecimal())


def _load(folder: Path) -> Checkpoint:
    record = json.loads((folder / INFO).read_text(encoding="utf-8"))
    content = {"iteration": record["iteration"], "info": record["info"]}
    if _digest(content) != record["info_sha256"]:
        raise ValueError(f"{INFO} does not match its digest")
    with open(folder / STATE, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != record["state_sha256"]:
            raise ValueError(f"{STATE} does not match its digest")
    if str(record["iteration"]) != folder.name:
        raise ValueError(f"it says iteration {record['iteration']}")
    with np.load(folder / STATE, allow_pickle=False) as stored:
        arrays = _unflatten({name: stored[name] for name in stored.files})
    return Checkpoint(record["iteration"], arrays, record["info"])


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    flat: dict[str, np.ndarray] = {}
    for name, value in tree.items():
        if not isinstance(name, str) or "/" in name or not name:
            raise ValueError(f"key {prefix}{name!r}: a checkpoint's keys are non-empty strings without '/'")
        if isinstance(value, Mapping):
            # An empty dict has no leaf to stand for it; a name that ends in '/' does.
            flat |= _flatten(value, f"{prefix}{name}/") or {f"{prefix}{name}/": np.zeros(0)}
        elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcU":
            flat[prefix + name] = np.asarray(value)
        else:
            kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"{prefix}{name} is {kind}; a checkpoint holds NumPy arrays of plain numbers")
    return flat


def _unflatten(flat: Mapping[str, np.ndarray]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        if name:
            node[name] = value
    return tree


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _tidy(directory: Path, newest: int, keep: int) -> None:
    earlier = [iteration for iteration in iterations(directory) if iteration < newest]
    later = [iteration for iteration in iterations(directory) if iteration > newest]
    for iteration in later + earlier[: max(0, len(earlier) - (keep - 1))]:
        shutil.rmtree(directory / str(iteration), ignore_errors=True)
    for leftover in directory.glob(".*-*"):
        shutil.rmtree(leftover, ignore_errors=True)
