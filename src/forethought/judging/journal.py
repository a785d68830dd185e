"""Append-only files of JSON lines that survive a kill at any moment, and a lock that says who holds it."""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forethought.files import sync_directory


class Locked(ValueError):
    """Another process is writing here; the message says which."""


class Journal:
    """A file of JSON lines that is only ever appended to, by one process at a time.

    Opening it repairs what a kill may have left: a last line that is cut off is removed, one that lacks only its line
    break is kept.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        new = not self.path.exists()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        if new:
            sync_directory(self.path.parent)
        self._repair()

    def append(self, record: dict[str, Any], *, durable: bool = True) -> None:
        """Write one line in whole or not at all; when a durable call returns, the line is on disk.

        Raises:
            OSError: the disk is full or broken; the file, which the error names, is as it was.
        """
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        before = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def close(self) -> None:
        """Put everything on disk and let go of the file."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)

    def _repair(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if not size or os.pread(self._descriptor, 1, size - 1) == b"\n":
            return
        start = size
        while start and b"\n" not in os.pread(self._descriptor, min(65536, start), start - min(65536, start)):
            start -= min(65536, start)
        if start:
            first = start - min(65536, start)
            start = first + os.pread(self._descriptor, start - first, first).rindex(b"\n") + 1
        tail = os.pread(self._descriptor, size - start, start)
        if _is_whole(tail):
            os.write(self._descriptor, b"\n")
        else:
            os.ftruncate(self._descriptor, start)
        os.fsync(self._descriptor)


def read_journal(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of a journal; none if there is no such file, and a last line that a kill cut off is passed over.

    Raises:
        ValueError: a line that is not a JSON object, by number.
    """
    if Path(path).exists():
        yield from _records(Path(path), may_be_torn=True)


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines that someone else has written; blank lines are passed over.

    Raises:
        ValueError: the file cannot be read, or a line is not a JSON object; it is named by number.
    """
    try:
        yield from _records(Path(path), may_be_torn=False)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error


@contextmanager
def lock(directory: str | Path, purpose: str) -> Iterator[None]:
    """Hold a directory against other writers; a process that dies lets go of it.

    Raises:
        Locked: another process holds it.
    """
    path = Path(directory) / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0).decode("utf-8", "replace").strip() or "another process"
            raise Locked(f"{directory} is in use by {holder}; wait for it or stop it") from None
        words = f"process {os.getpid()} on {socket.gethostname()} since {now()} ({purpose})\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, words.encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _records(path: Path, *, may_be_torn: bool) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() and not may_be_torn:
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                if may_be_torn and not line.endswith(b"\n"):
                    return
                hint = "; remove this line and what it held is asked again" if may_be_torn else ""
                raise ValueError(f"{path}, line {number}: not JSON ({error}){hint}") from error
            if not isinstance(record, dict):
                raise ValueError(f"{path}, line {number}: holds {str(record)[:40]!r}; an object is needed")
            yield record


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
