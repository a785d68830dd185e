"""The learner: a gated Transformer-XL actor-critic (C.2 of the paper) trained by PPO (C.3)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.learner.acting import Action, Memory, act, empty_memory, forget
    from forethought.learner.config import NetworkConfig, PPOConfig
    from forethought.learner.learner import Learner, LearnerState, Update
    from forethought.learner.network import ActorCritic
    from forethought.learner.rollout import Rollout

_HOME = {
    "Action": "forethought.learner.acting",
    "ActorCritic": "forethought.learner.network",
    "Learner": "forethought.learner.learner",
    "LearnerState": "forethought.learner.learner",
    "Memory": "forethought.learner.acting",
    "NetworkConfig": "forethought.learner.config",
    "PPOConfig": "forethought.learner.config",
    "Rollout": "forethought.learner.rollout",
    "Update": "forethought.learner.learner",
    "act": "forethought.learner.acting",
    "empty_memory": "forethought.learner.acting",
    "forget": "forethought.learner.acting",
}

__all__ = [
    "Action",
    "ActorCritic",
    "Learner",
    "LearnerState",
    "Memory",
    "NetworkConfig",
    "PPOConfig",
    "Rollout",
    "Update",
    "act",
    "empty_memory",
    "forget",
]


def __getattr__(name: str) -> Any:
    """Load the public names when first used; the settings need no JAX."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'forethought.learner' has no attribute {name!r}")
