"""The Craftax benchmark: 256 textual goals, their success tests, and many worlds that step together."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.craftax.engine import EngineEnvironment
    from forethought.craftax.environment import CraftaxEnvironment
    from forethought.craftax.own_goals import Goal, load_goals
    from forethought.craftax.shipped import connectivity, embeddings, evidence, goals

__all__ = [
    "CraftaxEnvironment",
    "EngineEnvironment",
    "Goal",
    "connectivity",
    "embeddings",
    "evidence",
    "goals",
    "load_goals",
]

_HOME = {
    "CraftaxEnvironment": "environment",
    "EngineEnvironment": "engine",
    "Goal": "own_goals",
    "load_goals": "own_goals",
}


def __getattr__(name: str) -> Any:
    """Load the public names when first used; goals, graphs and embeddings need no JAX."""
    if name in _HOME:
        return getattr(import_module(f"forethought.craftax.{_HOME[name]}"), name)
    if name in __all__:
        return getattr(import_module("forethought.craftax.shipped"), name)
    raise AttributeError(f"module 'forethought.craftax' has no attribute {name!r}")
