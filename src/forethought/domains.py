"""From a configuration to the domain it names: goals, graphs, goal vectors and environments.

A new domain is one more function in `DOMAINS`. Everything but `Domain.make_environment` works without JAX.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float

from forethought.config import ConfigError, RunConfig, nearest
from forethought.embeddings import Embeddings
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.tasks import TaskSet

if TYPE_CHECKING:
    from forethought.environment import BatchedEnvironment

Graph = TypeVar("Graph", LearningConnectivity, FeasibilityEvidence)


@dataclass(frozen=True)
class Domain:
    """What a run needs of its domain; goal number i is the same goal everywhere."""

    tasks: TaskSet
    """The goals to train on, with the importance weights that the configuration asks for."""
    connectivity: LearningConnectivity
    """Which goal's learning helps which, over `tasks`."""
    feasibility: FeasibilityEvidence
    """What speaks for a goal being learnable, over `tasks`."""
    goal_embeddings: Float[np.ndarray, "goal width"]
    """One vector a goal, of length 1, float32."""
    make_environment: "Callable[..., BatchedEnvironment]"
    """`make_environment(num_envs, *, queue_capacity=...)`; the first call loads JAX."""


@dataclass(frozen=True)
class _Shipped:
    """What a domain ships with, over all its goals."""

    tasks: TaskSet
    connectivity: LearningConnectivity
    feasibility: FeasibilityEvidence
    embeddings: Callable[[], Embeddings]
    environment: "Callable[..., BatchedEnvironment]"


def choose_backend(config: RunConfig) -> RunConfig:
    """The configuration with `environment.backend` decided: `engine` or `jax`, never `auto`.

    Where the engine could play but is not installed, says so in one line on stderr.

    Raises:
        ConfigError: the engine was asked for and is not there.
    """
    wanted, domain = config.environment.backend, config.tasks.domain
    if wanted == "jax":
        return config
    fault = engine_fault() if domain == "craftax" else f"the fast engine plays Craftax, not {domain}"
    if fault and wanted == "engine":
        raise ConfigError(f"environment.backend: 'engine' given, but {fault}; allowed here are auto and jax")
    if fault and domain == "craftax":
        print(f"playing Craftax with JAX, which is slower: {fault}", file=sys.stderr)
    environment = config.environment.model_copy(update={"backend": "jax" if fault else "engine"})
    return config.model_copy(update={"environment": environment})


def engine_fault() -> str | None:
    """Why the fast engine cannot be used, and what to do about it; None if it can."""
    how = "pip install ./engine in forethought's folder (it needs a C++ compiler)"
    try:
        import craftax_native
    except ModuleNotFoundError:
        return f"the fast engine is not installed; {how}"
    except ImportError as error:
        return f"the fast engine does not load ({error}); {how}"
    return None if craftax_native.HAS_FFI else f"the fast engine was built without jaxlib; {how}"


def load_domain(config: RunConfig) -> Domain:
    """Load the domain of a configuration, cut to its goals and weighted for its target.

    Raises:
        ConfigError: an unknown goal, a graph or goal vectors that are missing or belong to other goals, or no engine
            where it was asked for.
    """
    config = choose_backend(config)
    shipped = DOMAINS[config.tasks.domain](config)
    known = shipped.tasks.ids
    _require_goals("tasks.goals", config.tasks.goals, known)
    ids = config.tasks.goals or known
    tasks = shipped.tasks.restrict(ids) if config.tasks.goals else shipped.tasks
    target = config.tasks.target
    _require_goals("tasks.target", () if target is None else (target,), ids)
    _require_goals("evaluation.goals", config.evaluation.goals, ids)
    tasks = tasks.uniform() if target is None else tasks.with_target(target, config.tasks.target_share)
    connectivity = _graph("connectivity", config.connectivity, shipped.connectivity)
    feasibility = _graph("feasibility", config.feasibility, shipped.feasibility)
    settings = config.environment

    def make_environment(num_envs: int, **capacity: int) -> "BatchedEnvironment":
        return shipped.environment(num_envs, ids, settings, **capacity)

    return Domain(
        tasks=tasks,
        connectivity=_of_tasks("connectivity", config.connectivity, connectivity, tasks),
        feasibility=_of_tasks("feasibility", config.feasibility, feasibility, tasks),
        goal_embeddings=_goal_embeddings(config, shipped, tasks),
        make_environment=make_environment,
    )


def _craftax(config: RunConfig) -> _Shipped:
    from forethought.craftax import shipped

    def environment(num_envs: int, ids: Sequence[str], settings: Any, **capacity: int) -> "BatchedEnvironment":
        if settings.backend == "engine":
            from forethought.craftax import EngineEnvironment

            return EngineEnvironment(num_envs, ids, episode_limit=settings.episode_limit, **capacity)
        from forethought.craftax import CraftaxEnvironment

        pool = {"pool_size": settings.pool_size} if settings.pool_size else {}
        return CraftaxEnvironment(num_envs, ids, episode_limit=settings.episode_limit, **pool, **capacity)

    learner = config.learner
    return _Shipped(
        shipped.goals(),
        shipped.connectivity(learner),
        shipped.evidence(learner),
        shipped.embeddings,
        environment,
    )


def _toy(config: RunConfig) -> _Shipped:
    from forethought import toy

    def environment(num_envs: int, ids: Sequence[str], settings: Any, **capacity: int) -> "BatchedEnvironment":
        return toy.ToyEnvironment(num_envs, ids, episode_limit=settings.episode_limit, **capacity)

    return _Shipped(toy.tasks(), toy.connectivity(), toy.evidence(), toy.embeddings, environment)


DOMAINS: dict[str, Callable[[RunConfig], _Shipped]] = {"craftax": _craftax, "toy": _toy}
"""The domains that ship with the package, by the name that `tasks.domain` takes."""


def _graph(field: str, name: str, shipped: Graph) -> Graph:
    """The graph that a setting names."""
    if name == "shipped":
        return shipped
    if not Path(name).is_file():
        raise ConfigError(f"{field}: {name} given, but there is no such file; make one with `forethought judge build`")
    try:
        return type(shipped).load(name)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{field}: {name} given, but it cannot be used: {error}") from None


def _of_tasks(field: str, name: str, graph: Graph, tasks: TaskSet) -> Graph:
    """The graph of the goals that are trained on, in their order."""
    try:
        return graph if graph.ids == tasks.ids else graph.restrict(tasks)
    except ValueError as error:
        raise ConfigError(f"{field}: {name} given, but {error}") from None


def _goal_embeddings(config: RunConfig, shipped: _Shipped, tasks: TaskSet) -> np.ndarray:
    name = config.embeddings
    if name == "minilm":
        return shipped.embeddings().for_tasks(tasks)
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"embeddings: {name} given, but there is no such file; {_how_to_get(path)}")
    try:
        embeddings = Embeddings.load(path)
    except (ValueError, OSError, KeyError) as error:
        raise ConfigError(f"embeddings: {name} given, but it cannot be read: {error}") from None
    try:
        return embeddings.for_tasks(tasks)
    except ValueError as error:
        raise ConfigError(f"embeddings: {name} given, but {error}") from None


def _how_to_get(path: Path) -> str:
    if path.name == "qwen3-embedding-4b-512.npz":
        command = f"forethought embed --model Qwen/Qwen3-Embedding-4B --dim 512 --out {path}"
        return f"make it with `{command}`, or use --embeddings minilm"
    return "make one with `forethought embed`, or use --embeddings minilm"


def _require_goals(field: str, ids: Sequence[str], known: Sequence[str]) -> None:
    for goal in ids:
        if goal not in known:
            raise ConfigError(
                f"{field}: {goal!r} given; allowed are the ids that `forethought goals` lists{nearest(goal, known)}"
            )
