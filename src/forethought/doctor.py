"""What an installation is made of, for bug reports and for finding out why it is slow."""

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from forethought.craftax.backends import engine_fault
from forethought.devices import cache_directory, describe, gpu_hint, prepare

PACKAGES = (
    "forethought",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "craftax",
    "craftax-native",
    "numpy",
    "scipy",
    "pydantic",
    "tyro",
    "polars",
    "matplotlib",
    "sentence-transformers",
    "wandb",
)


def examine() -> Iterator[tuple[str, str]]:
    """Name and value of one fact after the other; nothing is changed, and a failing check is a fact too."""
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for package in PACKAGES:
        yield package, installed_version(package) or "not installed"
    yield "plays Craftax with", f"JAX: {fault}" if (fault := engine_fault()) else "the fast engine"
    yield "cores, memory", f"{os.cpu_count()}, {_memory()}"
    yield "device", _devices()
    cache = cache_directory()
    size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) if cache.is_dir() else 0
    yield "compilation cache", f"{cache} ({size / 1e6:.0f} MB)"
    usage = shutil.disk_usage(Path.cwd())
    yield "disk here", f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} GB"
    yield from data_digests()


def installed_version(package: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def data_digests() -> Iterator[tuple[str, str]]:
    """SHA-256 of each file of goals, graphs and vectors that ships with the package."""
    folder = files("forethought") / "craftax" / "data"
    if not folder.is_dir():
        yield "data", "missing"
        return
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith((".json", ".npz")):
            yield file.name, hashlib.sha256(file.read_bytes()).hexdigest()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown memory"


def _devices() -> str:
    try:
        prepare("auto")
        import jax

        found = jax.devices()
    except Exception as error:  # a broken installation is what this is for
        return f"JAX does not work: {type(error).__name__}: {error}"
    hint = gpu_hint() if found[0].platform == "cpu" else None
    return describe(found) + (f"; {hint}" if hint else "")
