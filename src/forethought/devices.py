"""Where JAX computes and keeps its compiled programs. Call `prepare` before anything else touches JAX."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from forethought.config import ConfigError


def cache_directory() -> Path:
    """Where compiled programs are kept: `JAX_COMPILATION_CACHE_DIR`, or else the user's cache."""
    if chosen := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "forethought" / "jax"


def prepare(device: str, count: int = 1, join: Callable[[], None] = lambda: None) -> str:
    """Switch the persistent compilation cache on, choose the devices, and load JAX.

    Args:
        device: `auto`, `cpu` or `gpu`.
        count: Devices of this process that share a run.
        join: Called once JAX is loaded and before it looks for devices: `forethought.processes.join`, for one.

    Returns:
        The device in words, such as "cpu (2 cores)".

    Raises:
        ConfigError: `gpu` was asked for and JAX finds none, or there are fewer devices; there is no falling back.
    """
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_directory()))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")
    loaded = "jax" in sys.modules
    import jax

    if loaded:
        jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if count > 1 and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with contextlib.suppress(RuntimeError):  # JAX has started; what it has is counted below.
            jax.config.update("jax_num_cpu_devices", count)
    join()
    found = select(device)
    if device == "gpu":
        jax.config.update("jax_default_device", found[0])
    return describe(found if count == 1 else first(found, count))


def select(device: str) -> list:
    """This process's JAX devices of a kind.

    Args:
        device: `auto` for JAX's first choice, `cpu` or `gpu`.

    Raises:
        ConfigError: `gpu` was asked for and JAX finds none; there is no falling back.
    """
    import jax

    try:
        return jax.local_devices(backend=None if device == "auto" else device)
    except RuntimeError:
        hint = gpu_hint() or "this machine seems to have none"
        raise ConfigError(
            f"device: {device!r} given, but JAX finds no {device.upper()} ({hint}); allowed here are auto and cpu"
        ) from None


def first(devices: list, count: int) -> list:
    """The first of some devices.

    Raises:
        ConfigError: there are not so many.
    """
    if not 1 <= count <= len(devices):
        kind = devices[0].platform.upper()
        raise ConfigError(
            f"devices: {count} given; allowed is 1 to the number of {kind}s that JAX finds, {len(devices)}"
        )
    return devices[:count]


def describe(devices: list) -> str:
    """JAX devices in words."""
    first = devices[0]
    if first.platform == "cpu":
        return f"cpu ({os.cpu_count()} cores)" if len(devices) == 1 else f"cpu ({len(devices)} devices)"
    count = f"{len(devices)} x " if len(devices) > 1 else ""
    return f"{first.platform} ({count}{first.device_kind})"


def gpu_hint() -> str | None:
    """What to do if the machine has an NVIDIA GPU that this JAX cannot use; None if nothing points to one."""
    seen = shutil.which("nvidia-smi") or Path("/dev/nvidia0").exists()
    return "an NVIDIA GPU is there, but jaxlib is for CPUs: pip install 'forethought[cuda13]'" if seen else None
