"""What the engine's tests share: the recorded games, and the way to the packages of helpers beside the tests."""

import hashlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
collect_ignore = ["conformance"]

STEPS = 1000


@pytest.fixture(scope="session")
def recorded_games() -> Path:
    """The file of Craftax's own games, all scenarios; recorded anew when what they consist of has changed.

    A process of its own records them, so that JAX and its memory are gone when the engine plays.
    """
    folder = Path(os.environ.get("CRAFTAX_NATIVE_RECORDINGS", HERE.parents[1] / ".cache" / "recordings"))
    path = folder / f"games-{_fingerprint()}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npz")
        command = [sys.executable, "-m", "conformance.record", str(partial), "--steps", str(STEPS)]
        environment = {"JAX_COMPILATION_CACHE_DIR": str(HERE.parents[1] / ".cache" / "jax")} | os.environ
        environment["JAX_PLATFORMS"] = "cpu"
        subprocess.run(command, cwd=HERE, env=environment, check=True)
        partial.replace(path)
    return path


def _fingerprint() -> str:
    parts = [str(STEPS), *(importlib.metadata.version(name) for name in ("craftax", "jax", "jaxlib"))]
    names = ("coverage", "editing", "fields", "names", "policies", "record", "recording", "reference", "scenarios")
    parts += [(HERE / "conformance" / f"{name}.py").read_text() for name in names]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
