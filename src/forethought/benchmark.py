"""Measure anything that acts, on the benchmark's goals or one's own: `evaluate(act, goals, episodes)`.

    import numpy as np
    import forethought

    def act(observation, goal, memory, key):
        return np.full(len(goal.number), 5, np.int32), memory

    result = forethought.evaluate(act, goals=["have_1_wood", "see_cow"], episodes=16)
    print(dict(zip(result.goals, result.success_rate)))

The episodes are those of `forethought eval`: an episode's world, and the random keys of its actions, come from the
seed, the goal's id and the episode's number, whoever plays and however many play at once.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from forethought.craftax.backends import make_environment, pick_backend
from forethought.craftax.own_goals import Goal, checked, chosen_goals, load_goals, with_own
from forethought.domains import Domain
from forethought.embeddings import Embeddings
from forethought.environment import Assignment, BatchedEnvironment, Observation
from forethought.evaluation import Decision, EpisodePlayer, EvaluationResult, action_keys
from forethought.policies import Agent, GoalBatch
from forethought.tasks import TaskSet


def evaluate(
    act: Callable[..., tuple[Any, Any]],
    goals: Sequence[str | Goal] | None = None,
    episodes: int = 128,
    *,
    seed: int | None = None,
    num_envs: int = 256,
    memory: Callable[[int], Any] | None = None,
    compiled: bool | None = None,
    domain: Domain | None = None,
    own_goals: str | Path | Sequence[Goal] = (),
    embeddings: str | Path | Embeddings | None = "minilm",
    backend: str = "auto",
    episode_limit: int = 4096,
    chunk: int = 64,
) -> EvaluationResult:
    """Measure how often a policy reaches each goal.

    Args:
        act: `act(observation, goal, memory, key)` gives one action an environment, and the next memory; see
            `forethought.policies`. By default it is called once a step with NumPy arrays: `observation.cells`
            uint8[env, 9, 11, 8], `observation.features` float32[env, 51], a `GoalBatch`, its last memory, and random
            keys uint32[env, 2]. Environments that have run out of episodes are shown too; their actions are ignored.
        goals: Ids of goals, or goals of one's own; None for all (of an `Agent`: all that it trained on).
        episodes: Episodes of each goal.
        seed: Of worlds and actions; None for that of an `Agent`'s run, otherwise 0.
        num_envs: Environments that act side by side.
        memory: `memory(num_envs)` gives the memory at the start: arrays whose first axis is the environments';
            in the place of `act.initial_memory`.
        compiled: Whether `act` is a pure function of JAX arrays, to be compiled together with the environments; its
            keys are JAX's then. None: what `act.compiled` says, otherwise not.
        domain: Another domain than Craftax. An `Agent` brings its run's, unless one is given. With either, the
            settings that say how Craftax is made, from `own_goals` to `episode_limit`, are refused.
        own_goals: Goals of one's own, or the file of them, that ids may name.
        embeddings: Vectors of the goals' texts: `minilm`, a file or `Embeddings`; None: vectors of width 0.
        backend: What plays Craftax: engine, jax, or auto.
        episode_limit: Steps after which an episode ends.
        chunk: Steps between two refills of the queue.

    Raises:
        KeyError: A goal is unknown.
        ValueError: A number is not positive, a goal is named twice or has no vector, `act` gives what it must not, or
            a setting has no say in the domain.
    """
    if isinstance(goals, str | Goal):
        raise ValueError(f"goals is {goals!r}; it must be a list of goals, if only of one")
    if domain is not None or isinstance(act, Agent):
        of_craftax = {"own_goals": own_goals or (), "embeddings": embeddings, "backend": backend}
        _refuse_settings(of_craftax | {"episode_limit": episode_limit})
    listed = None if goals is None else list(goals)
    ids = tuple(goal.id if isinstance(goal, Goal) else goal for goal in listed or ())
    if domain is None and isinstance(act, Agent):
        if own := [goal for goal in listed or () if isinstance(goal, Goal)]:
            raise ValueError(f"goal {own[0].id!r}: a run's goals of one's own are those in its file; name it by its id")
        domain = act.domain([goal for goal in ids if goal not in act.ids])
        seed = act.config.seed if seed is None else seed
        listed = list(act.ids) if goals is None else listed
    elif domain is None:
        own = load_goals(own_goals) if isinstance(own_goals, str | Path) else checked(own_goals)
        own = checked([*own, *(goal for goal in listed or () if isinstance(goal, Goal) and goal not in own)])
        domain = craftax_domain(ids, own_goals=own, embeddings=embeddings, backend=backend, episode_limit=episode_limit)
    chosen = None if listed is None else [domain.tasks.index(id) for id in ids or cast(Any, listed)]
    player = _PolicyPlayer(act, domain, memory, getattr(act, "compiled", False) if compiled is None else compiled)
    episode_player = EpisodePlayer(
        player,
        domain.make_environment,
        domain.tasks.ids,
        goals=chosen,
        episodes=episodes,
        num_envs=num_envs,
        seed=0 if seed is None else seed,
        chunk=chunk,
    )
    result = episode_player.play(player.agent)
    assert result is not None
    return result


def craftax_domain(
    goals: Sequence[str] = (),
    *,
    own_goals: Sequence[Goal] = (),
    embeddings: str | Path | Embeddings | None = "minilm",
    backend: str = "auto",
    episode_limit: int = 4096,
) -> Domain:
    """The benchmark, or some of its goals and of one's own, without graphs; arguments as of `evaluate`."""
    ids = chosen_goals(goals, own_goals)
    tasks = with_own(own_goals).restrict(ids)
    plays = pick_backend(backend, ids, own_goals)

    def make(num_envs: int, **capacity: int) -> BatchedEnvironment:
        return make_environment(plays, num_envs, ids, own_goals, episode_limit=episode_limit, **capacity)

    return Domain(
        tasks=tasks,
        connectivity=None,
        feasibility=None,
        interestingness=None,
        goal_embeddings=_vectors(tasks, embeddings),
        make_environment=make,
    )


def _refuse_settings(given: Mapping[str, Any]) -> None:
    """Refuse what would have no effect where the domain is given, or is that of an agent's run."""
    for name, default in (("own_goals", ()), ("embeddings", "minilm"), ("backend", "auto"), ("episode_limit", 4096)):
        if given[name] != default:
            raise ValueError(f"{name} is {given[name]!r}, but the domain, or the run of the agent, decides it")


def _vectors(tasks: TaskSet, embeddings: str | Path | Embeddings | None) -> np.ndarray:
    if embeddings is None:
        return np.zeros((len(tasks), 0), np.float32)
    if embeddings == "minilm":
        from forethought.craftax.shipped import embeddings as shipped

        found = shipped()
    else:
        found = embeddings if isinstance(embeddings, Embeddings) else Embeddings.load(embeddings)
    try:
        return found.for_tasks(tasks)
    except ValueError as error:
        raise ValueError(f"{error}; or say embeddings=None, for vectors of width 0") from None


class _PolicyPlayer:
    """A policy as a player of episodes; an agent is the policy's own arrays, if it is a pytree with some."""

    def __init__(self, act: Any, domain: Domain, memory: Callable[[int], Any] | None, compiled: bool):
        if not callable(act):
            raise ValueError(f"act is {act!r}; it must be a function of observation, goal, memory and key")
        self.compiled = compiled
        self.agent, self._rest = eqx.partition(act, eqx.is_array) if compiled else (None, act)
        self._memory = memory
        self._goals = domain.tasks.ids, domain.tasks.texts
        self._vectors = jnp.asarray(domain.goal_embeddings) if compiled else np.asarray(domain.goal_embeddings)
        self._action_keys = jax.jit(action_keys)

    def begin(self, agent: Any, num_envs: int) -> Any:
        """The memory before the first step."""
        initial = self._memory or getattr(self._policy(agent), "initial_memory", None)
        memory = None if initial is None else initial(num_envs)
        if not self.compiled:
            self._first = jax.tree.map(np.array, memory)
        return memory

    def decide(self, agent: Any, memory: Any, observation: Observation, episode: Assignment) -> Decision:
        """Choose an action in each environment."""
        act = self._policy(agent)
        keys, fresh = self._action_keys(episode.key, episode.step), episode.step == 0
        number, count = episode.goal, episode.goal.shape[0]
        if not self.compiled:
            keys = np.asarray(jax.random.key_data(keys))
            observation, number, fresh = jax.tree.map(np.asarray, (observation, number, fresh))
        goal = GoalBatch(number, self._vectors, *self._goals)
        given = act(observation, goal, self._restarted(act, agent, memory, fresh), keys)
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError(f"act gave {_kind(given)}; it must give a pair, the actions and the memory")
        action, memory = given
        if not (self.compiled or self._restarts(act)):
            self._check_kind(memory)
        used = act.has_called(memory) if isinstance(act, Agent) else jnp.zeros(count, bool)
        return Decision(self._checked(action, count), memory, used)

    def _policy(self, agent: Any) -> Any:
        return eqx.combine(agent, self._rest) if self.compiled else self._rest

    def _restarts(self, act: Any) -> bool:
        """Whether the policy itself forgets where an episode begins."""
        return self._memory is None and hasattr(act, "restart")

    def _check_kind(self, memory: Any) -> None:
        now, first = jax.tree.structure(memory), jax.tree.structure(self._first)
        if now != first:
            raise ValueError(
                f"act gave a memory of the structure {now}, but at the start it is {first}; say memory=, a function of "
                "the number of environments, or give act the method initial_memory, and restart where it changes"
            )

    def _restarted(self, act: Any, agent: Any, memory: Any, fresh: Any) -> Any:
        if self._restarts(act):
            return act.restart(memory, fresh)
        count = fresh.shape[0]
        xp = jnp if self.compiled else np
        first = self.begin(agent, count) if self.compiled else self._first
        if not self.compiled and not fresh.any():
            return memory

        def forget(now: Any, then: Any) -> Any:
            now, then = xp.asarray(now), xp.asarray(then)
            if then.shape[:1] != (count,) or now.shape != then.shape:
                raise ValueError(
                    f"memory has an array of shape {now.shape}, at the start {then.shape}; both must be the same and "
                    f"begin with the {count} environments, or act must have a method restart(memory, fresh)"
                )
            return xp.where(fresh.reshape(-1, *(1,) * (then.ndim - 1)), then, now)

        return jax.tree.map(forget, memory, first)

    def _checked(self, action: Any, count: int) -> Any:
        action = action if self.compiled else np.asarray(action)
        shape, dtype = np.shape(action), getattr(action, "dtype", None)
        if shape != (count,) or dtype is None or not jnp.issubdtype(dtype, jnp.integer):
            raise ValueError(f"act gave actions of {dtype} and shape {shape}; they must be {count} integers")
        return action


def _kind(value: Any) -> str:
    return f"{len(value)} things" if isinstance(value, tuple) else f"a {type(value).__name__}"
