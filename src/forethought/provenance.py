"""Where a run comes from: what its `meta.json` says, and whether a run that goes on has changed since it began."""

import hashlib
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forethought.config import RunConfig, load_config
from forethought.craftax.own_goals import digest
from forethought.doctor import installed_version
from forethought.rundir import CONFIG, RunDirectory

if TYPE_CHECKING:
    from forethought.domains import Domain

_PACKAGES = (
    "forethought",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "equinox",
    "optax",
    "craftax",
    "craftax-native",
    "polars",
)


def record(
    config: RunConfig, domain: "Domain", device: str, devices: int, argv: Sequence[str] | None
) -> dict[str, Any]:
    """The content of `meta.json` for a run that begins now on so many devices, but for the `run_id` of its own."""
    own = config.tasks.own_goals
    return {
        "argv": list(sys.argv if argv is None else argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": device,
        "host": platform.node(),
        "versions": {"python": platform.python_version()} | {name: installed_version(name) for name in _PACKAGES},
        "git": _git(),
        "hashes": {
            "goals": domain.tasks.digest,
            "connectivity": _graph_digest(domain.connectivity),
            "feasibility": _graph_digest(domain.feasibility),
            "embeddings": hashlib.sha256(np.ascontiguousarray(domain.goal_embeddings).tobytes()).hexdigest(),
        }
        | ({} if domain.interestingness is None else {"interestingness": _graph_digest(domain.interestingness)})
        | ({} if own is None else {"own_goals": digest(own)}),
        "backend": config.environment.backend,
        "devices": devices,
    }


def session(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What the directory of a run that goes on keeps of `record` for every time that it did."""
    return {name: meta[name] for name in ("argv", "started", "device", "devices", "host", "versions", "git")}


def check_unchanged(config: RunConfig, directory: RunDirectory, meta: Mapping[str, Any]) -> None:
    """Raise a ValueError if a run's configuration, goals or graphs, now in `meta`, are not those that it began with."""
    # By value: a run that began before a setting existed has its default.
    if config != load_config(directory.path / CONFIG):
        raise ValueError(f"the configuration is not the one in {directory.path}; a run goes on with its own")
    before, now = directory.meta["hashes"], meta["hashes"]
    if changed := [name for name in before if before[name] != now.get(name)]:
        raise ValueError(f"{', '.join(changed)} changed since {directory.path} began; it cannot go on")


def _git() -> dict[str, Any] | None:
    """Commit of the checkout that the package runs from; None if it runs from no checkout."""

    def ask(*command: str) -> str:
        return subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *command],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        # A package installed below somebody else's checkout is not of that checkout.
        ask("ls-files", "--error-unmatch", Path(__file__).name)
        return {
            "commit": ask("rev-parse", "HEAD"),
            "dirty": bool(ask("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _graph_digest(graph: Any) -> str | None:
    """Hash of a graph's ids and weights; None without a graph."""
    if graph is None:
        return None
    digest = hashlib.sha256("\0".join(graph.ids).encode())
    weights = graph.weights
    for array in (weights.indptr.astype(np.int64), weights.indices.astype(np.int64), weights.data):
        digest.update(np.ascontiguousarray(array).tobytes())
    if hasattr(graph, "from_scratch"):
        digest.update(np.ascontiguousarray(graph.from_scratch).tobytes())
    return digest.hexdigest()
