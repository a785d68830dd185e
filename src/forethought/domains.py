"""From a configuration to the domain it names: goals, graphs, goal vectors and environments.

A new domain is one more function from a `RunConfig` to `DomainParts`, named as `module:function` in `tasks.domain`; the
module is installed, or lies in the current directory. Everything but `Domain.make_environment` works without JAX.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float

from forethought.config import ConfigError, RunConfig, nearest
from forethought.craftax.backends import engine_fault
from forethought.curriculum.methods import METHODS
from forethought.embeddings import Embeddings
from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
from forethought.tasks import TaskSet

if TYPE_CHECKING:
    from forethought.environment import BatchedEnvironment

Graph = TypeVar("Graph", LearningConnectivity, FeasibilityEvidence, Interestingness)


@dataclass(frozen=True)
class Domain:
    """What a run needs of its domain; goal number i is the same goal everywhere."""

    tasks: TaskSet
    """The goals to train on, with the importance weights that the configuration asks for."""
    connectivity: LearningConnectivity | None
    """Which goal's learning helps which, over `tasks`; None where goals of one's own have not been judged."""
    feasibility: FeasibilityEvidence | None
    """What speaks for a goal being learnable, over `tasks`; likewise."""
    interestingness: Interestingness | None
    """Which mastered goals make which others boring, over `tasks`; None if the configuration names no file."""
    goal_embeddings: Float[np.ndarray, "goal width"]
    """One vector a goal, of length 1, float32."""
    make_environment: "Callable[..., BatchedEnvironment]"
    """`make_environment(num_envs, *, queue_capacity=...)`; the first call loads JAX."""


@dataclass(frozen=True)
class DomainParts:
    """What a domain brings, over all its goals."""

    tasks: TaskSet
    """All its goals, in the order that its goal numbers refer to."""
    environment: "Callable[..., BatchedEnvironment]"
    """`environment(num_envs, goal_ids, settings, *, queue_capacity=...)`: goal number i is `goal_ids[i]`; `settings`
    are the configuration's of the environment."""
    connectivity: LearningConnectivity | None = None
    """Which goal's learning helps which; None if nobody has judged it."""
    feasibility: FeasibilityEvidence | None = None
    """What speaks for a goal being learnable; likewise."""
    embeddings: Callable[[], Embeddings] | None = None
    """Makes or loads the vectors of the goals' texts; None for vectors that tell the goals apart and no more."""


def choose_backend(config: RunConfig) -> RunConfig:
    """The configuration with `environment.backend` decided: `engine` or `jax`, never `auto`.

    Where the engine could play but is not installed, says so in one line on stderr.

    Raises:
        ConfigError: the engine was asked for and is not there.
    """
    wanted, domain = config.environment.backend, config.tasks.domain
    if wanted == "jax":
        return config
    fault = _engine_fault(config) if domain == "craftax" else f"the fast engine plays Craftax, not {domain}"
    if fault and wanted == "engine":
        raise ConfigError(f"environment.backend: 'engine' given, but {fault}; allowed here are auto and jax")
    if fault and domain == "craftax":
        print(f"playing Craftax with JAX, which is slower: {fault}", file=sys.stderr)
    environment = config.environment.model_copy(update={"backend": "jax" if fault else "engine"})
    return config.model_copy(update={"environment": environment})


def _engine_fault(config: RunConfig) -> str | None:
    from forethought.craftax.own_goals import engine_cannot_judge

    return engine_fault() or engine_cannot_judge(config.tasks.goals, _own_goals(config))


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
    connectivity = _graph("connectivity", config.connectivity, shipped.connectivity, LearningConnectivity)
    feasibility = _graph("feasibility", config.feasibility, shipped.feasibility, FeasibilityEvidence)
    interestingness = None
    if (file := config.interestingness) is not None:
        interestingness = _of_tasks("interestingness", config, _load("interestingness", file, Interestingness), tasks)
    settings = config.environment

    def make_environment(num_envs: int, **capacity: int) -> "BatchedEnvironment":
        return shipped.environment(num_envs, ids, settings, **capacity)

    return Domain(
        tasks=tasks,
        connectivity=_of_tasks("connectivity", config, connectivity, tasks),
        feasibility=_of_tasks("feasibility", config, feasibility, tasks),
        interestingness=interestingness,
        goal_embeddings=_goal_embeddings(config, shipped, tasks),
        make_environment=make_environment,
    )


def _craftax(config: RunConfig) -> DomainParts:
    from forethought.craftax import shipped
    from forethought.craftax.own_goals import with_own

    own = _own_goals(config)

    def environment(num_envs: int, ids: Sequence[str], settings: Any, **capacity: int) -> "BatchedEnvironment":
        sizes = {"episode_limit": settings.episode_limit, **capacity}
        if settings.backend == "engine":
            from forethought.craftax import EngineEnvironment

            return EngineEnvironment(num_envs, ids, own_goals=own, **sizes)
        from forethought.craftax import CraftaxEnvironment

        pool = {"pool_size": settings.pool_size} if settings.pool_size else {}
        return CraftaxEnvironment(num_envs, ids, own_goals=own, **pool, **sizes)

    learner = config.learner
    return DomainParts(
        with_own(own),
        environment,
        shipped.connectivity(learner),
        shipped.evidence(learner),
        shipped.embeddings,
    )


def _own_goals(config: RunConfig) -> tuple[Any, ...]:
    """The goals of one's own that a configuration names."""
    from forethought.craftax.own_goals import load_goals

    if config.tasks.own_goals is None:
        return ()
    try:
        return load_goals(config.tasks.own_goals)
    except ValueError as error:
        raise ConfigError(f"tasks.own_goals: {error}") from error


def _toy(config: RunConfig) -> DomainParts:
    from forethought import toy

    def environment(num_envs: int, ids: Sequence[str], settings: Any, **capacity: int) -> "BatchedEnvironment":
        return toy.ToyEnvironment(num_envs, ids, episode_limit=settings.episode_limit, **capacity)

    return DomainParts(toy.tasks(), environment, toy.connectivity(), toy.evidence(), toy.embeddings)


class _Domains(dict[str, Callable[[RunConfig], DomainParts]]):
    def __missing__(self, name: str) -> Callable[[RunConfig], DomainParts]:
        return partial(_imported, name)


DOMAINS = _Domains(craftax=_craftax, toy=_toy)
"""The domains that ship with the package, by the name that `tasks.domain` takes; others are imported when asked for."""


def _imported(name: str, config: RunConfig) -> DomainParts:
    """The domain that a function of somebody else's makes."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(f"tasks.domain: {name!r} given, but there is no module {error.name!r} here") from error
    finally:
        if added:
            sys.path.remove(here)
    if not callable(make := getattr(found, function, None)):
        raise ConfigError(f"tasks.domain: {name!r} given, but {module} has no function {function}")
    parts = make(config)
    if not isinstance(parts, DomainParts):
        kind = type(parts).__name__
        raise ConfigError(f"tasks.domain: {name!r} given, but it returns a {kind}; allowed is a DomainParts")
    return parts


def _graph(field: str, name: str, shipped: Graph | None, kind: type[Graph]) -> Graph | None:
    """The graph that a setting names; None for that of a domain which brings none."""
    return shipped if name == "shipped" else _load(field, name, kind)


def _load(field: str, name: str, kind: type[Graph]) -> Graph:
    """The graph in a file."""
    if not Path(name).is_file():
        raise ConfigError(f"{field}: {name} given, but there is no such file; make one with `forethought judge build`")
    try:
        return kind.load(name)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{field}: {name} given, but it cannot be used: {error}") from None


def _of_tasks(field: str, config: RunConfig, graph: Graph | None, tasks: TaskSet) -> Graph | None:
    """The graph of the goals that are trained on, in their order; None if it lacks some and the method needs none."""
    name = getattr(config, field)
    if graph is None:
        if _needs(config.method, field):
            lacking = f"{config.tasks.domain} brings none, and the method {config.method} needs one"
            raise ConfigError(f"{field}: {name} given, but {lacking}")
        return None
    own = [id for id in tasks.ids if id not in graph.ids]
    if own and name == "shipped" and config.tasks.own_goals is not None:
        if not _needs(config.method, field):
            return None
        raise ConfigError(
            f"{field}: shipped given, but {own[0]!r} is a goal of your own, which nobody has judged; make a graph with "
            f"`forethought judge plan DIR --own-goals {config.tasks.own_goals}`, or take a method without, as alp"
        )
    try:
        with warnings.catch_warnings():
            if not _needs(config.method, field):
                # Tasks without evidence are no matter where none is used.
                warnings.simplefilter("ignore", UserWarning)
            return graph if graph.ids == tasks.ids else graph.restrict(tasks)
    except ValueError as error:
        raise ConfigError(f"{field}: {name} given, but {error}") from None


def _needs(method: str, field: str) -> bool:
    uses = METHODS[method]
    return uses.feasibility if field == "feasibility" else uses.downstream or uses.prerequisites


def _goal_embeddings(config: RunConfig, shipped: DomainParts, tasks: TaskSet) -> np.ndarray:
    name = config.embeddings
    if name == "minilm":
        if shipped.embeddings is None:
            return np.eye(len(shipped.tasks), dtype=np.float32)[shipped.tasks.indices(tasks.ids)]
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
