"""Success rates of a frozen agent: many environments act side by side, and none idles while episodes wait.

Every episode has a key of its own, made of the seed, the goal and the episode's number, and everything random
in the episode comes from that key. So the outcome depends neither on how many environments share the work nor
on the order in which they finish, and two agents that are evaluated with one seed meet the same worlds.
"""

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from forethought import processes
from forethought.environment import Assignment, BatchedEnvironment, Observation, Outcome
from forethought.learner.acting import Action, Memory, act, empty_memory, forget
from forethought.learner.network import ActorCritic
from forethought.learner.rollout import steps_on_host
from forethought.sharding import Spread

EVALUATION_STREAM = 3
"""Sets evaluation's keys apart from those of training, which start from the same seed."""

_PENDING = -1

WILSON_Z = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@runtime_checkable
class Agent(Protocol):
    """What is evaluated: a `Learner`, or anything else that gives a network."""

    def callable_goals(self, eligible: Bool[Array | np.ndarray, " goal"] | None) -> Bool[Array, " call"]:
        """The goals that its actor may call, out of those eligible."""
        ...

    @property
    def goal_embeddings(self) -> Float[Array, "goal width"]:
        """Vectors of all goals."""
        ...

    def network(self, state: Any) -> ActorCritic:
        """The network in a state."""
        ...


class EvaluationResult(NamedTuple):
    """Outcome per goal; arrays have one entry a goal."""

    goals: tuple[str, ...]
    episodes: np.ndarray
    successes: np.ndarray
    first_step_successes: np.ndarray
    """Those among `successes` that came on an episode's first step, mostly since the goal held from the start."""
    episodes_with_call: np.ndarray
    """Those among `episodes` in which the agent called a subroutine."""
    successes_with_call: np.ndarray

    @property
    def success_rate(self) -> np.ndarray:
        """Share of successful episodes, in [0, 1]."""
        return self.successes / self.episodes

    @property
    def wilson(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the 95 % Wilson interval of each success rate."""
        return wilson_interval(self.successes, self.episodes)

    def columns(self, iteration: int, steps: int) -> dict[str, Any]:
        """The rows of `evaluations.parquet`, a column each."""
        low, high = self.wilson
        return {
            "iteration": [iteration] * len(self.goals),
            "steps": [steps] * len(self.goals),
            "goal": list(self.goals),
            "episodes": self.episodes,
            "successes": self.successes,
            "first_step_successes": self.first_step_successes,
            "episodes_with_call": self.episodes_with_call,
            "successes_with_call": self.successes_with_call,
            "success_rate": self.success_rate,
            "wilson_low": low,
            "wilson_high": high,
        }


def pooled(results: Sequence[EvaluationResult]) -> EvaluationResult:
    """The episodes of several evaluations of the same goals as one."""
    counts = zip(*(result[1:] for result in results), strict=True)
    return EvaluationResult(results[0].goals, *(np.sum(each, axis=0) for each in counts))


def wilson_interval(
    successes: np.ndarray | int, episodes: np.ndarray | int, z: float = WILSON_Z
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a success probability (Wilson 1927).

    Args:
        successes: Counts, 0 to `episodes`.
        episodes: Counts, 1 or more.
        z: Width in standard deviations.

    Returns:
        Lower and upper ends in [0, 1].

    Raises:
        ValueError: If a count is out of range.
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(episodes, dtype=np.float64)
    if (n < 1).any() or (k < 0).any() or (k > n).any():
        raise ValueError(f"{successes} successes in {episodes} episodes: at least 1 episode, and 0 to all successful")
    rate, spread = k / n, z * z / n
    centre = (rate + spread / 2) / (1 + spread)
    half = z * np.sqrt(rate * (1 - rate) / n + spread / (4 * n)) / (1 + spread)
    # The ends are exact at 0 and n successes; rounding would miss them by a hair.
    return np.where(k == 0, 0.0, np.clip(centre - half, 0, 1)), np.where(k == n, 1.0, np.clip(centre + half, 0, 1))


class Decision(NamedTuple):
    """What a player does in one step of all environments."""

    action: Int[Array, " env"]
    memory: Any
    """What it remembers for the next step, as it likes."""
    used: Bool[Array, " env"]
    """Whether it has called a subroutine in the episode."""


@runtime_checkable
class Player(Protocol):
    """Who plays: what `Evaluator` makes of a learner, and `forethought.evaluate` of a function.

    What it decides by is passed in at every call, so that agents of one kind share a compiled program.
    """

    @property
    def compiled(self) -> bool:
        """Whether `decide` may be compiled; otherwise it is called on the host, step by step."""
        ...

    def begin(self, agent: Any, num_envs: int) -> Any:
        """The memory before the first step."""
        ...

    def decide(self, agent: Any, memory: Any, observation: Observation, episode: Assignment) -> Decision:
        """Choose an action in each environment; an episode whose `step` is 0 has nothing to remember."""
        ...


class EpisodePlayer:
    """Plays the same episodes of some goals with any agent of one kind; compiles once, however often it plays."""

    def __init__(
        self,
        player: Player,
        make_environment: Callable[..., BatchedEnvironment],
        goal_ids: Sequence[str],
        *,
        goals: Sequence[int] | None = None,
        episodes: int = 128,
        num_envs: int = 1024,
        seed: int = 0,
        chunk: int = 64,
        spread: Spread | None = None,
    ):
        """Set the episodes up.

        Args:
            player: Who plays them.
            make_environment: `make_environment(num_envs, queue_capacity=...)` gives the domain's environment.
            goal_ids: Ids of all goals of the environment, in their order.
            goals: Positions in `goal_ids` to evaluate; None for all.
            episodes: Episodes of each goal; the first ones started count, however long they take.
            num_envs: Environments that act side by side (fewer if there are not so many episodes).
            seed: The run's seed.
            chunk: Steps between two looks of the host.
            spread: The devices to share the episodes; by default one. Each process plays a share of its own, so all
                must call `play`.

        Raises:
            ValueError: If a number is not positive, or a goal is unknown or named twice.
        """
        for name, value in (("episodes", episodes), ("num_envs", num_envs), ("chunk", chunk)):
            if value < 1:
                raise ValueError(f"evaluation {name} is {value}; it must be at least 1")
        self.goals = tuple(range(len(goal_ids)) if goals is None else (int(goal) for goal in goals))
        if not self.goals or len(set(self.goals)) != len(self.goals):
            raise ValueError(f"evaluation goals are {list(self.goals)}; there must be at least one, and none twice")
        if min(self.goals) < 0 or max(self.goals) >= len(goal_ids):
            raise ValueError(f"evaluation goals are {list(self.goals)}; allowed are 0 to {len(goal_ids) - 1}")
        self.goal_ids = tuple(goal_ids[goal] for goal in self.goals)
        self.episodes = episodes
        self.keys = episode_keys(seed, self.goal_ids, episodes)
        self._chunk = chunk
        self._player = player
        together = 1 if spread is None else jax.process_count()
        self._slots = min(-(-num_envs // together), -(-len(self.goals) * episodes // together))
        self._share = slice(None) if spread is None else slice(jax.process_index(), None, together)
        self._spread, self._slots = _of_this_process(spread, self._slots)
        self._block = -(-self._slots // 4)
        self._environment = make_environment(self._slots, queue_capacity=2 * self._slots)
        on_host = steps_on_host(self._environment)
        if getattr(self._environment, "on_host", False) and not on_host:
            self._spread = None  # On a CPU the engine has all of it anyway.
        if on_host or not player.compiled:
            self._assignment = jax.jit(self._environment.assignment)
            self._step = jax.jit(self._environment.step, donate_argnums=0)
            self._decide = jax.jit(player.decide) if player.compiled else player.decide
            self._environments_on = jax.devices("cpu")[0] if on_host else None
            self._advance: Callable[..., Any] = self._advance_chunk_on_host
        else:
            self._advance = jax.jit(self._advance_chunk, donate_argnums=0)
        self._begin = jax.jit(player.begin, static_argnums=1) if player.compiled else player.begin

    def play(self, agent: Any, *, stop: Callable[[], bool] = lambda: False) -> EvaluationResult | None:
        """Play all episodes.

        Args:
            agent: What the player decides by; it is only read.
            stop: Asked after every chunk; when it says yes, the evaluation is given up.

        Returns:
            The outcome, or None if it was given up.
        """
        total = len(self.goals) * self.episodes
        outcome = np.full(total, _PENDING, np.int8)
        first_step, called = np.zeros(total, bool), np.zeros(total, bool)
        own = np.zeros(total, bool)
        own[self._share] = True
        agent, given_up = self._here(agent), False
        while not given_up and (pending := np.flatnonzero(own & (outcome == _PENDING))).size:
            given_up = not self._wave(agent, pending, outcome, first_step, called, stop)
        if processes.any_says(given_up):
            return None
        outcome, first_step, called = (processes.largest(found) for found in (outcome, first_step, called))
        # Episodes are numbered goal by goal within each round, see `_wave`.
        shape = (self.episodes, len(self.goals))
        return EvaluationResult(
            goals=self.goal_ids,
            episodes=np.full(len(self.goals), self.episodes, np.int64),
            successes=outcome.reshape(shape).sum(0, dtype=np.int64),
            first_step_successes=first_step.reshape(shape).sum(0, dtype=np.int64),
            episodes_with_call=called.reshape(shape).sum(0, dtype=np.int64),
            successes_with_call=(called & (outcome == 1)).reshape(shape).sum(0, dtype=np.int64),
        )

    def _here(self, agent: Any) -> Any:
        """What the player decides by, on the devices of this process."""
        if self._share == slice(None):
            return agent
        here = jax.tree.map(lambda leaf: leaf.addressable_data(0), agent)
        return here if self._spread is None else self._spread.put(here, self._spread.copies)

    def _placed(self, carry: Any) -> Any:
        """The environments and what is remembered of them, on the devices that share them; see `put_state`."""
        if self._spread is None or self._advance == self._advance_chunk_on_host:
            return carry
        return self._spread.put_state(carry, self._slots)

    def _wave(
        self,
        agent: Any,
        pending: np.ndarray,
        outcome: np.ndarray,
        first_step: np.ndarray,
        called: np.ndarray,
        stop: Callable[[], bool],
    ) -> bool:
        """Play the pending episodes, until all are over or every environment has run out of queued ones.

        One wave is enough unless the queue empties within a chunk.

        Returns:
            False if `stop` said so.
        """
        # Episode i is number i // goals of goal i % goals, so goals that take long do not all start last.
        # What pads the last block is an episode that is queued already: the same key, the same outcome.
        blocks = -(-max(0, len(pending) - self._slots) // self._block)
        queue = np.resize(pending, self._slots + blocks * self._block)
        place, number = queue % len(self.goals), queue // len(self.goals)
        keys, goals = self.keys[place, number], np.asarray(self.goals, np.int32)[place]
        identity = {(int(g), k.tobytes()): index for index, g, k in zip(queue, goals, keys, strict=True)}

        first = _episodes(keys, goals, slice(0, self._slots))
        carry = self._placed((*self._environment.begin(*first), self._begin(agent, self._slots)))
        queued, finished, active = self._slots, 0, self._slots
        while active and (outcome[pending] == _PENDING).any():
            while queued < len(queue) and queued - finished - active + self._block <= self._environment.queue_capacity:
                block = slice(queued, queued + self._block)
                carry = (self._environment.enqueue(carry[0], *_episodes(keys, goals, block)), *carry[1:])
                queued += self._block
            carry, trace = self._advance(self._placed(carry), agent)
            done, success, goal, key, step, used, action, running = (np.asarray(item) for item in trace)
            self._check(action)
            finished, active = finished + int(done.sum()), int(running)
            for time, slot in zip(*np.nonzero(done), strict=True):
                index = identity[int(goal[time, slot]), key[time, slot].tobytes()]
                outcome[index] = success[time, slot]
                first_step[index] = success[time, slot] and step[time, slot] == 0
                called[index] = used[time, slot]
            if stop():
                return False
        return True

    def _advance_chunk(self, carry: Any, agent: Any) -> tuple[Any, Any]:
        environment = self._environment

        def advance(carry: Any, _: None) -> tuple[Any, Any]:
            state, observation, memory = carry
            episode = environment.assignment(state)
            decision = self._player.decide(agent, memory, observation, episode)
            state, observation, outcome = environment.step(state, jnp.asarray(decision.action, jnp.int32))
            return (state, observation, decision.memory), _trace(episode, decision, outcome)

        carry, trace = jax.lax.scan(advance, carry, None, length=self._chunk)
        if self._spread is not None:
            carry = self._spread.keep_state(carry, self._slots)
        return carry, (*trace, environment.assignment(carry[0]).active.sum())

    def _advance_chunk_on_host(self, carry: Any, agent: Any) -> tuple[Any, Any]:
        """The same with a step at a time: environments on the host, a network on another device, or any function."""
        state, observation, memory = carry
        (device,) = jnp.zeros(()).devices()
        traces = []
        for _ in range(self._chunk):
            episode = self._assignment(state)
            seen = (observation, episode)
            moved = jax.device_put(seen, device) if self._spread is None else self._spread.put_state(seen, self._slots)
            decision = self._decide(agent, memory, *moved)
            memory = decision.memory
            action = self._check(np.asarray(decision.action)) if not self._player.compiled else decision.action
            state, observation, outcome = self._step(state, jax.device_put(action, self._environments_on))
            traces.append([np.asarray(item) for item in _trace(episode, decision, outcome)])
        active = self._assignment(state).active.sum()
        return (state, observation, memory), (*(np.stack(items) for items in zip(*traces, strict=True)), active)

    def _check(self, action: np.ndarray) -> np.ndarray:
        """The actions as int32; a ValueError names one that is out of range."""
        wrong = action[(action < 0) | (action >= self._environment.num_actions)]
        if wrong.size:
            raise ValueError(
                f"a policy gave the action {wrong[0]}; allowed are 0 to {self._environment.num_actions - 1}"
            )
        return action.astype(np.int32)


class Evaluator:
    """Evaluates agents of one architecture in one domain; compiles once, however often it runs."""

    def __init__(
        self,
        learner: Agent,
        make_environment: Callable[..., BatchedEnvironment],
        goal_ids: Sequence[str],
        **settings: Any,
    ):
        """Set an evaluation up.

        Args:
            learner: Whose networks will be evaluated.
            make_environment: `make_environment(num_envs, queue_capacity=...)` gives the domain's environment.
            goal_ids: Ids of all goals of the environment and of the learner's embeddings, in their order.
            **settings: `goals`, `episodes`, `num_envs`, `seed` and `chunk`, as of `EpisodePlayer`.

        Raises:
            ValueError: If a number is not positive, or a goal is unknown or named twice.
        """
        self._learner = learner
        self._player = EpisodePlayer(_Network(learner.goal_embeddings), make_environment, goal_ids, **settings)

    def run(
        self,
        state: Any,
        eligible: Bool[Array | np.ndarray, " goal"] | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> EvaluationResult | None:
        """Evaluate one agent.

        Args:
            state: The learner's state; it is only read.
            eligible: Which goals a learner with calls may call; by default none.
            stop: Asked after every chunk; when it says yes, the evaluation is given up.

        Returns:
            The outcome, or None if it was given up.
        """
        return self._player.play((self._learner.network(state), self._learner.callable_goals(eligible)), stop=stop)


class _Network:
    """A learner's network as a player; an agent is the network, and which goals may be called."""

    compiled = True

    def __init__(self, goal_embeddings: Float[Array, "goal width"]):
        self._embeddings = goal_embeddings

    def begin(self, agent: Any, num_envs: int) -> Memory:
        return empty_memory(agent[0], num_envs)

    def decide(self, agent: Any, memory: Memory, observation: Observation, episode: Assignment) -> Decision:
        chosen = decide(agent, memory, observation, episode, self._embeddings)
        return Decision(chosen.action, chosen.memory, chosen.memory.calls.used)


def decide(
    agent: Any, memory: Memory, observation: Observation, episode: Assignment, embeddings: Float[Array, "goal width"]
) -> Action:
    """Choose an action in each environment, with the episode's own random numbers.

    Args:
        agent: The network, and which goals may be called.
        memory: What the network remembers.
        observation: What each environment shows.
        episode: The episode that each is in.
        embeddings: Vectors of all goals.
    """
    network, eligible = agent
    # An environment that idled has seen steps that belong to no episode.
    memory = forget(memory, episode.step == 0)
    keys = action_keys(episode.key, episode.step)
    return act(network, memory, observation, episode.goal, embeddings, keys, eligible)


def _of_this_process(spread: Spread | None, slots: int) -> tuple[Spread | None, int]:
    """The devices that share this process's environments, and a number of environments that they can share."""
    if spread is None or len(spread.local) == 1 or slots < len(spread.local):
        return None, slots
    return Spread(spread.local), slots - slots % len(spread.local)


def _trace(episode: Assignment, decision: Decision, outcome: Outcome) -> tuple[Array, ...]:
    """What the host needs of a step."""
    key = jax.random.key_data(episode.key)
    return outcome.done, outcome.success, episode.goal, key, episode.step, decision.used, jnp.asarray(decision.action)


def evaluate(
    learner: Agent,
    state: Any,
    make_environment: Callable[..., BatchedEnvironment],
    goal_ids: Sequence[str],
    eligible: Bool[Array | np.ndarray, " goal"] | None = None,
    **settings: Any,
) -> EvaluationResult:
    """Evaluate one agent once; arguments as those of `Evaluator` and its `run`."""
    result = Evaluator(learner, make_environment, goal_ids, **settings).run(state, eligible)
    assert result is not None
    return result


def episode_keys(seed: int, goal_ids: Sequence[str], episodes: int) -> UInt32[np.ndarray, "goal episode 2"]:
    """The keys of the first episodes of each goal; a goal's depend on its id alone, not on the others."""
    labels = jnp.array([zlib.crc32(goal.encode()) for goal in goal_ids], jnp.uint32)
    root = jax.random.fold_in(jax.random.key(seed), EVALUATION_STREAM)
    return np.asarray(jax.random.key_data(_episode_keys(root, labels, episodes)))


def action_keys(keys: Key[Array, " env"], steps: Int[Array, " env"]) -> Key[Array, " env"]:
    """The random keys of the actions in a step of some episodes, given the episodes' keys and steps taken."""
    fold = jax.random.fold_in
    return jax.vmap(lambda key, step: fold(fold(key, 1), step))(keys, steps)


@partial(jax.jit, static_argnames="episodes")
def _episode_keys(root: Key[Array, ""], labels: UInt32[Array, " goal"], episodes: int) -> Key[Array, "goal episode"]:
    fold = jax.random.fold_in
    of_goal = jax.vmap(fold, (None, 0))(root, labels)
    return jax.vmap(jax.vmap(fold, (None, 0)), (0, None))(of_goal, jnp.arange(episodes))


def _episodes(keys: np.ndarray, goals: np.ndarray, part: slice) -> tuple[Array, Array]:
    return jax.random.wrap_key_data(jnp.asarray(keys[part])), jnp.asarray(goals[part])
