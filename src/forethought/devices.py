"""Where JAX computes and keeps its compiled programs. Call `prepare` before anything else touches JAX."""

import os
import shutil
import sys
from pathlib import Path

from forethought.config import ConfigError


def cache_directory() -> Path:
    """Where compiled programs are kept: `JAX_COMPILATION_CACHE_DIR`, or else the user's cache."""
    if chosen := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "forethought" / "jax"


def prepare(device: str) -> str:
    """Switch the persistent compilation cache on, choose the device, and load JAX.

    Args:
        device: `auto`, `cpu` or `gpu`.

    Returns:
        The device in words, such as "cpu (2 cores)".

    Raises:
        ConfigError: `gpu` was asked for and JAX finds none; there is no falling back.
    """
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_directory()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")
    loaded = "jax" in sys.modules
    import jax

    if loaded:
        jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    found = select(device)
    if device == "gpu":
        jax.config.update("jax_default_device", found[0])
    return describe(found)


def select(device: str) -> list:
    """The JAX devices of a kind.

    Args:
        device: `auto` for JAX's first choice, `cpu` or `gpu`.

    Raises:
        ConfigError: `gpu` was asked for and JAX finds none; there is no falling back.
    """
    import jax

    try:
        return jax.devices(None if device == "auto" else device)
    except RuntimeError:
        hint = gpu_hint() or "this machine seems to have none"
        raise ConfigError(
            f"device: {device!r} given, but JAX finds no {device.upper()} ({hint}); allowed here are auto and cpu"
        ) from None


def describe(devices: list) -> str:
    """JAX devices in words."""
    first = devices[0]
    if first.platform == "cpu":
        return f"cpu ({os.cpu_count()} cores)"
    count = f"{len(devices)} x " if len(devices) > 1 else ""
    return f"{first.platform} ({count}{first.device_kind})"


def gpu_hint() -> str | None:
    """What to do if the machine has an NVIDIA GPU that this JAX cannot use; None if nothing points to one."""
    seen = shutil.which("nvidia-smi") or Path("/dev/nvidia0").exists()
    return "an NVIDIA GPU is there, but jaxlib is for CPUs: pip install 'forethought[cuda13]'" if seen else None
