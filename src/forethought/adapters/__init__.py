"""One `Curriculum` in other people's trainers; each module needs its library, and is loaded when first used.

| module | for | brings it |
|---|---|---|
| `gymnasium` | environments, and vector environments with a loop of your own | `forethought[gym]` |
| `sb3` | Stable-Baselines3 | `forethought[sb3]` |
| `rllib` | RLlib | `forethought[rllib]` |
| `torch` | PyTorch data loaders, verl | `forethought[torch]` |
| `trl` | TRL's GRPO trainer | `forethought[trl]` |
| `jax` | a loop that is compiled as a whole | `forethought[jax]` |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.adapters import gymnasium, jax, rllib, sb3, torch, trl

__all__ = ["gymnasium", "jax", "rllib", "sb3", "torch", "trl"]


def __getattr__(name: str) -> Any:
    """Load a module when first used: importing this package imports no framework."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def missing(library: str, extra: str) -> ModuleNotFoundError:
    """The error of an adapter whose library is not installed.

    >>> missing("ray", "rllib").msg
    "this adapter needs ray: pip install 'forethought[rllib]'"
    """
    return ModuleNotFoundError(f"this adapter needs {library}: pip install 'forethought[{extra}]'")
