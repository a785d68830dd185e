"""Records the games once, and again when what they consist of has changed.

    python -m conformance.cached

prints the file's path.
"""

import fcntl
import hashlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

STEPS = 1000

_HERE = Path(__file__).parent
_CACHE = _HERE.parents[2] / ".cache"
_PARTS = ("coverage", "editing", "fields", "names", "policies", "record", "recording", "reference", "scenarios")
_ON_THE_CPU = {
    "JAX_PLATFORMS": "cpu",
    # Arrays of 20 MB come and go: keeping their memory spares the kernel a third of the work.
    **{"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32)},
}


def recorded_games() -> Path:
    """The file of Craftax's own games of all scenarios.

    A process of its own records them, so that JAX and its memory are gone when the engine plays.
    """
    path = _CACHE / "recordings" / f"games-{_fingerprint()}.npz"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another process may be at it: then this one waits for its file.
        if path.exists():
            return path
        partial = path.with_suffix(f".{os.getpid()}.npz")
        command = [sys.executable, "-m", "conformance.record", str(partial), "--steps", str(STEPS)]
        environment = {"JAX_COMPILATION_CACHE_DIR": str(_CACHE / "jax")} | os.environ | _ON_THE_CPU
        subprocess.run(command, cwd=_HERE.parent, env=environment, check=True, stdout=sys.stderr)
        partial.replace(path)
    return path


def _fingerprint() -> str:
    parts = [str(STEPS), *(importlib.metadata.version(name) for name in ("craftax", "jax", "jaxlib"))]
    parts += [(_HERE / f"{name}.py").read_text() for name in _PARTS]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


if __name__ == "__main__":
    print(recorded_games())
