"""What acts: `act(observation, goal, memory, key)`, and the agent of a run as such a function.

A policy is any function

    action, memory = act(observation, goal, memory, key)

of many environments at once: an `Observation`, a `GoalBatch`, what it returned as memory the step before, and one
random key an environment, to one action an environment and its next memory. What else it may have:

- `initial_memory(num_envs)`: the memory at the start; without it None.
- `restart(memory, fresh)`: the memory with the environments in `fresh` (flags) forgotten, which begin an episode.
  Without it, their rows of every array are set to those of the initial memory.
- `compiled`: True for a pure function of JAX arrays, which then becomes part of one compiled program.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from forethought import checkpoint
from forethought.config import RunConfig, load_config
from forethought.domains import Domain, choose_backend, load_domain
from forethought.environment import Observation
from forethought.learner.acting import Memory, act, empty_memory, forget
from forethought.learner.learner import Learner, LearnerState
from forethought.learner.network import ActorCritic
from forethought.run import eligible_goals
from forethought.rundir import CONFIG, RunDirectory
from forethought.training import make_learner


@partial(jax.tree_util.register_dataclass, data_fields=["number", "vectors"], meta_fields=["ids", "texts"])
@dataclass(frozen=True)
class GoalBatch:
    """The goals of many environments; arrays are NumPy's or JAX's, as the policy's other arguments.

    >>> goal = GoalBatch(np.array([1, 1, 0]), np.eye(2, 3), ("walk", "run"), ("Walk.", "Run."))
    >>> goal.text(0), goal.embedding.shape
    ('Run.', (3, 3))
    """

    number: Int[Array | np.ndarray, " env"]
    """Each environment's goal, a position in `ids`."""
    vectors: Float[Array | np.ndarray, "goal width"]
    """The vectors of all goals."""
    ids: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def embedding(self) -> Float[Array | np.ndarray, "env width"]:
        """The vector of each environment's goal."""
        return self.vectors[self.number]

    def text(self, env: int) -> str:
        """The text of one environment's goal; not inside compiled programs."""
        return self.texts[int(self.number[env])]


@runtime_checkable
class Policy(Protocol):
    """What `forethought.evaluate` takes; see the module."""

    def __call__(self, observation: Observation, goal: GoalBatch, memory: Any, key: Any) -> tuple[Any, Any]:
        """Choose an action in each environment."""
        ...


class Agent(eqx.Module):
    """The agent of a run, as it acts in evaluations.

    >>> policy = load_policy("runs/mine")  # doctest: +SKIP
    >>> memory = policy.initial_memory(8)  # doctest: +SKIP
    >>> action, memory = policy(observation, goal, memory, key)  # doctest: +SKIP

    Attributes:
        network: Its network.
        vectors: The vectors of the goals that it trained on.
        eligible: Which of them it may call; empty for a learner without calls.
        config: The run's configuration.
        iteration: Iterations that it has trained for.
        steps: Environment steps that it has trained for.
    """

    network: ActorCritic
    vectors: Float[Array, "goal width"]
    eligible: Bool[Array, " call"]
    ids: tuple[str, ...] = eqx.field(static=True)
    config: RunConfig = eqx.field(static=True)
    iteration: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    @property
    def compiled(self) -> bool:
        """It is a pure function."""
        return True

    def __call__(
        self, observation: Observation, goal: GoalBatch, memory: Memory, key: Key[Array, " env"]
    ) -> tuple[Int[Array, " env"], Memory]:
        """Sample an action in each environment.

        Any goal with a vector of the same kind can be pursued. An agent with calls counts on the goals that it trained
        on to be the first of `goal.ids`.

        Raises:
            ValueError: the goals' vectors are of another width, or the agent's goals do not come first.
        """
        if goal.vectors.shape[1] != self.vectors.shape[1]:
            raise ValueError(
                f"goal vectors have width {goal.vectors.shape[1]}, but those of the run have {self.vectors.shape[1]}"
            )
        if self.eligible.size and goal.ids[: len(self.ids)] != self.ids:
            raise ValueError("an agent that calls its goals needs them first among goal.ids, in its own order")
        number, vectors = jnp.asarray(goal.number), jnp.asarray(goal.vectors)
        chosen = act(self.network, memory, observation, number, vectors, key, self.eligible)
        return chosen.action, chosen.memory

    def initial_memory(self, num_envs: int) -> Memory:
        """What it remembers at the start: nothing."""
        return empty_memory(self.network, num_envs)

    def restart(self, memory: Memory, fresh: Bool[Array, " env"]) -> Memory:
        """Forget where an episode begins."""
        return forget(memory, fresh)

    def has_called(self, memory: Memory) -> Bool[Array, " env"]:
        """Whether it has called another goal in each episode."""
        return memory.calls.used

    def domain(self, extra_goals: Sequence[str] = ()) -> Domain:
        """The domain of the run: its goals, and others after them."""
        return load_domain(self._configured(extra_goals))

    def _configured(self, extra_goals: Sequence[str]) -> RunConfig:
        tasks = self.config.tasks.model_copy(update={"goals": (*self.ids, *extra_goals)})
        # Graphs are for training; they need not know other goals.
        graphs = {"connectivity": "shipped", "feasibility": "shipped", "interestingness": None}
        return self.config.model_copy(update={"tasks": tasks, "method": "unif", **graphs})


class LoadedRun(NamedTuple):
    """A run's agent, and all that acts with it."""

    config: RunConfig
    domain: Domain
    learner: Learner
    state: LearnerState
    eligible: Bool[np.ndarray, " goal"]
    """Which goals a learner with calls may call."""
    iteration: int
    steps: int

    @property
    def policy(self) -> Agent:
        """The agent as a policy."""
        learner = self.learner
        return Agent(
            learner.network(self.state),
            learner.goal_embeddings,
            learner.callable_goals(self.eligible),
            self.domain.tasks.ids,
            self.config,
            self.iteration,
            self.steps,
        )


def load_run(run: str | Path, overrides: Mapping[str, Any] | None = None) -> LoadedRun:
    """Load the last checkpoint of a run.

    Args:
        run: The run's directory.
        overrides: Settings to change, by dotted name; none that changes the agent.

    Raises:
        ValueError: it is no run directory, there is no checkpoint, or something that it needs is not there.
    """
    config = choose_backend(load_config(RunDirectory(run).path / CONFIG, overrides=overrides))
    return restore_run(run, config, load_domain(config))


def restore_run(run: str | Path, config: RunConfig, domain: Domain) -> LoadedRun:
    """Load the last checkpoint of a run whose configuration and domain are at hand.

    Args:
        run: The run's directory.
        config: Its configuration, with the backend chosen.
        domain: The domain of that configuration.

    Raises:
        ValueError: there is no checkpoint, or it is of another agent.
    """
    found = checkpoint.load_latest(RunDirectory(run).checkpoints, warn=lambda text: print(text, file=sys.stderr))
    if found is None:
        raise ValueError(f"{run}: no checkpoint yet; train it first: forethought train {run}")
    learner = make_learner(config, domain.make_environment(config.num_envs), domain)
    state = learner.from_dict(found.arrays["learner"])
    eligible = eligible_goals(found.arrays["curriculum"]["success_rate"])
    return LoadedRun(config, domain, learner, state, eligible, found.iteration, found.info["steps"])


def load_policy(run: str | Path) -> Agent:
    """The agent in the last checkpoint of a run, with either learner; arguments and errors as of `load_run`."""
    return load_run(run).policy


class RandomPolicy:
    """Every action with the same chance, whatever it sees: where a learner starts from.

    Args:
        num_actions: How many actions there are.
    """

    compiled = True

    def __init__(self, num_actions: int):
        self.num_actions = num_actions

    def __call__(
        self, observation: Any, goal: Any, memory: Any, key: Key[Array, " env"]
    ) -> tuple[Int[Array, " env"], Any]:
        """Draw an action in each environment."""
        draw = jax.vmap(lambda one: jax.random.randint(one, (), 0, self.num_actions, jnp.int32))
        return draw(key), memory
