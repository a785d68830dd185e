"""Who is at work on a run: a lock beside its directory that has an owner and an age.

Several schedulers may work on one suite, on machines that share nothing but its folder. So a run is claimed by making a
file, which succeeds for one process only. While the owner lives, it touches the file now and then: the file's age is
how long the owner has been silent. A claim is void when its process has ended (where that can be seen), when a later
attempt of the same scheduled job comes back for it, or after a long silence. An owner that finds itself replaced, say
after its machine was suspended, ends at once.
"""

import json
import os
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

BEAT = 20.0
"""Seconds between two signs of life."""

SILENCE = 300.0
"""Seconds of silence after which the claim of a process that cannot be seen from here is void."""

REPLACED = 70
"""Exit code of a process whose run another one has taken over."""


class Busy(ValueError):
    """Another process is at work on the run."""


@dataclass(frozen=True)
class Owner:
    """The process that made a claim."""

    host: str
    """Its machine, in words."""
    machine: str
    """Where its number means something: one boot of one machine, and the container."""
    process: int
    started: str
    """When the process began, as its machine counts."""
    since: float
    """When the claim was made, in seconds since 1970."""
    job: str | None
    """What a scheduler calls it, the same at every attempt."""
    token: str
    """Unique."""


@dataclass(frozen=True)
class Claim:
    """What the lock of a run says now."""

    owner: Owner | None
    """None if the file cannot be read as one."""
    age: float
    """Seconds since the last sign of life."""
    text: str
    """The file's content."""

    @property
    def void(self) -> bool:
        """Whether its owner has gone."""
        return self.ended or (not self._seen_from_here and self.age > SILENCE)

    @property
    def ended(self) -> bool:
        """Whether its owner can be seen from here to have ended."""
        return self.owner is not None and self._seen_from_here and _began(self.owner.process) != self.owner.started

    @property
    def _seen_from_here(self) -> bool:
        return self.owner is not None and self.owner.machine == _machine()

    @property
    def mine(self) -> bool:
        """Whether this process made it."""
        return self.owner is not None and (self.owner.machine, self.owner.process) == (_machine(), os.getpid())

    def __str__(self) -> str:
        if self.owner is None:
            return f"another process, last sign of life {_span(self.age)} ago"
        job = f" ({self.owner.job})" if self.owner.job else ""
        since, silent = _span(max(time.time() - self.owner.since, 0)), _span(self.age)
        return f"process {self.owner.process} on {self.owner.host}{job} for {since}, last sign of life {silent} ago"


def lock_path(run_dir: str | Path) -> Path:
    """Where the lock of a run lies."""
    path = Path(run_dir)
    return path.with_name(f"{path.name}.lock")


def claim_on(run_dir: str | Path) -> Claim | None:
    """The claim on a run, void or not; None if there is none. Changes nothing."""
    path = lock_path(run_dir)
    try:
        text, touched = path.read_text(encoding="utf-8"), path.stat().st_mtime
    except FileNotFoundError:
        return None
    try:
        owner = Owner(**json.loads(text))
    except (ValueError, TypeError):
        owner = None
    return Claim(owner, max(time.time() - touched, 0.0), text)


@contextmanager
def claimed(run_dir: str | Path, job: str | None = None) -> Iterator[None]:
    """Hold a run, which need not have a directory yet, for this process.

    Args:
        run_dir: The run; the folder that it lies in must exist.
        job: What a scheduler calls this, if it calls further attempts of the same by the same name.

    Raises:
        Busy: If another process holds it; the message says which and for how long.
    """
    path = lock_path(run_dir)
    text = json.dumps(asdict(_me(job)))
    _take(path, text, job)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(path, text, over), name=f"claim on {run_dir}", daemon=True)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()
        if _read(path) == text:
            path.unlink(missing_ok=True)


def _take(path: Path, text: str, job: str | None) -> None:
    run = path.with_suffix("")
    for _ in range(3):
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            return
        except FileExistsError:
            found = claim_on(run)
        if found is None:
            continue
        earlier = job is not None and found.owner is not None and found.owner.job == job
        if not (found.void or earlier):
            raise Busy(f"run {run} is in use by {found}")
        if _replace(path, found.text, text, silence=0.0 if earlier or found.ended else SILENCE):
            return
    raise Busy(f"run {run} is in use by others, who are claiming it at this moment")


def _replace(path: Path, void: str, text: str, silence: float) -> bool:
    """Put a claim in the place of a void one, unless others are at it: they take turns.

    Silence is measured once more here, by the clock of the machine that has the files: this one's may be wrong.
    """
    turn = path.with_name(f".{path.name}.turn")
    try:
        open(turn, "x").close()
    except FileExistsError:
        with suppress(FileNotFoundError):
            if _files_clock(path.parent) - turn.stat().st_mtime > SILENCE:
                turn.unlink()  # Whoever made it did not live to remove it.
        return False
    try:
        if _read(path) != void or turn.stat().st_mtime - path.stat().st_mtime < silence:
            return False
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
        return True
    except FileNotFoundError:
        return False  # Its owner has let go of it at this moment.
    finally:
        turn.unlink(missing_ok=True)


def _files_clock(folder: Path) -> float:
    """Now, by the clock of the machine that has the files."""
    with tempfile.TemporaryFile(dir=folder) as new:
        return os.fstat(new.fileno()).st_mtime


def _beat(path: Path, text: str, over: threading.Event) -> None:
    """Show signs of life until it is over."""
    while not over.wait(BEAT):
        try:
            mine = path.read_text(encoding="utf-8") == text
            if mine:
                os.utime(path)
        except FileNotFoundError:
            mine = False
        except OSError:
            continue  # The file server may come back.
        if not mine and not over.is_set():
            print(f"error: {path.with_suffix('')} was taken over by another process", file=sys.stderr, flush=True)
            _end()


def _end() -> None:
    os._exit(REPLACED)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _me(job: str | None) -> Owner:
    process = os.getpid()
    return Owner(socket.gethostname(), _machine(), process, _began(process) or "", time.time(), job, uuid.uuid4().hex)


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _began(process: int) -> str | None:
    """When a process of this machine began; None if there is none, or only what is left of one that has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self").exists():
            return None
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return ""
    return None if fields[0] in "ZX" else fields[19]


def _span(seconds: float) -> str:
    """A length of time for people.

    >>> [_span(seconds) for seconds in (4.6, 75, 7500, 90_000)]
    ['5 s', '1:15 min', '2:05 h', '25:00 h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
