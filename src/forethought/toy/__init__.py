"""A tiny domain in pure JAX: nine goals with real prerequisites on a 5x5 grid. A model for your own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.toy.environment import ToyEnvironment
    from forethought.toy.shipped import connectivity, embeddings, evidence, tasks

__all__ = ["ToyEnvironment", "connectivity", "embeddings", "evidence", "tasks"]


def __getattr__(name: str) -> Any:
    """Load the public names when first used; the goals need no JAX."""
    if name == "ToyEnvironment":
        return import_module("forethought.toy.environment").ToyEnvironment
    if name in __all__:
        return getattr(import_module("forethought.toy.shipped"), name)
    raise AttributeError(f"module 'forethought.toy' has no attribute {name!r}")
