"""Many Craftax worlds that step together, each with a goal of its own (the reference environment, pure JAX)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from craftax.craftax.craftax_state import EnvParams, EnvState
from craftax.craftax.game_logic import craftax_step
from craftax.craftax.util.game_logic_utils import has_beaten_boss
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.craftax.interface import (
    NUM_ACTIONS,
    OBSERVATION_SPEC,
    check_at_least,
    check_evaluating,
    check_room,
    check_sizes,
    goal_numbers,
)
from forethought.craftax.judge import make_judge
from forethought.craftax.observation import observe
from forethought.craftax.own_goals import Goal, checked, chosen_goals, with_own
from forethought.craftax.worlds import STATIC, Start, WorldMaker, copy_start
from forethought.environment import Assignment, Observation, Outcome
from forethought.spec import ObservationSpec


class Counts(NamedTuple):
    """What has happened since the last `reset` or `begin`."""

    steps: Int[Array, ""]
    episodes: Int[Array, ""]
    successes: Int[Array, ""]
    successes_at_start: Int[Array, ""]
    worlds_used: Int[Array, ""]
    worlds_reused: Int[Array, ""]


class CraftaxState(NamedTuple):
    """All environments, and the starts of the episodes to come."""

    game: EnvState
    goal: Int[Array, " env"]
    key: Key[Array, " env"]
    held: Bool[Array, " env"]
    """The goal held before the episode's first step."""
    active: Bool[Array, " env"]
    finished_at: Int[Array, " env"]
    """The step (counted since the beginning) at which an idle environment finished."""
    shelf: Start
    """In training the pool of worlds, in evaluation the queue of episodes; both are rings."""
    taken: Int[Array, ""]
    """Starts taken from the ring since the beginning."""
    queued: Int[Array, ""]
    """Starts put on the ring since the beginning."""
    clock: Int[Array, ""]
    """Steps since the beginning, idle environments or not."""
    training: Bool[Array, ""]
    """Whether the ring may be gone round again and goals stay with their environments."""
    counts: Counts


class CraftaxEnvironment:
    """The benchmark on Craftax 1.6.1; implements `forethought.environment.BatchedEnvironment`.

    Goals are data: changing them compiles nothing. `reset`, `begin` and `enqueue` make worlds and are called from
    the host; `step` may run inside `jax.jit`.

    In training, worlds come from a pool made by `reset`. The first ones start the environments; finished ones take
    the others in order of finishing (then of index), and go round again once all are used, so two environments
    that finish together never share a world. A world used again is played with other chances.

    Args:
        num_envs: Environments that step together, at least 1.
        goal_ids: The goals that goal numbers refer to; empty means all 256 in order, then one's own.
        episode_limit: Steps after which an episode ends.
        pool_size: Worlds made by each `reset`, at least `num_envs`; by default twice `num_envs`.
        queue_capacity: Episodes that may wait in evaluation; by default four times `num_envs`.
        own_goals: Goals besides the benchmark's.

    Raises:
        ValueError: A number is too small, or a goal's predicate cannot be used.
        KeyError: A goal is neither in the benchmark nor one's own.
    """

    num_actions: int = NUM_ACTIONS
    noop_action: int | None = 0
    observation_spec: ObservationSpec = OBSERVATION_SPEC

    def __init__(
        self,
        num_envs: int,
        goal_ids: Sequence[str] = (),
        episode_limit: int = 4096,
        pool_size: int | None = None,
        queue_capacity: int | None = None,
        own_goals: Sequence[Goal] = (),
    ) -> None:
        self.queue_capacity = check_sizes(num_envs, episode_limit, queue_capacity)
        self.num_envs = num_envs
        self.episode_limit = episode_limit
        self.pool_size = 2 * num_envs if pool_size is None else pool_size
        check_at_least("pool_size", self.pool_size, num_envs, " (the number of environments)")
        own = checked(own_goals)
        self.goal_ids = chosen_goals(goal_ids, own)
        self._goal_rows = with_own(own).indices(self.goal_ids)
        self._params = EnvParams(max_timesteps=episode_limit)
        self._reached = make_judge(own)
        self._maker = WorldMaker(self._params, self._reached, 32 if jax.default_backend() == "cpu" else 256)
        self._start = jax.jit(self._take_first)
        self._copy = jax.jit(lambda shelf: jax.tree.map(jnp.copy, shelf))
        self._advance = jax.jit(self._advance_all)

    def reset(self, key: Key[Array, ""], goals: Int[Array, " env"]) -> tuple[CraftaxState, Observation]:
        """Start every environment in a fresh world with the goal given, for training.

        Raises:
            ValueError: The goals are not one per environment, or out of range.
        """
        goals = self._checked(goals, self.num_envs)
        shelf = self._maker.empty(self.pool_size)
        keys = jax.random.split(key, self.pool_size)
        shelf = self._maker.add(shelf, keys, jnp.zeros(self.pool_size, jnp.int32), 0)
        return self._start(shelf, shelf, goals, self.num_envs, self.pool_size, True)

    def begin(self, keys: Key[Array, " env"], goals: Int[Array, " env"]) -> tuple[CraftaxState, Observation]:
        """Start one given episode in every environment, with an empty queue, for evaluation.

        Raises:
            ValueError: The goals are not one per environment, or out of range.
        """
        goals = self._checked(goals, self.num_envs)
        first = self._maker.add(self._maker.empty(self.num_envs), keys, goals, 0)
        return self._start(first, self._maker.empty(self.queue_capacity), goals, 0, 0, False)

    def enqueue(self, state: CraftaxState, keys: Key[Array, " episode"], goals: Int[Array, " episode"]) -> CraftaxState:
        """Append episodes to the queue.

        Idle environments take them at the end of the next step, the one idle for longest first.

        Raises:
            ValueError: The queue has no room for them, a goal is out of range, or the state is one of training.
        """
        goals = self._checked(goals, keys.shape[0])
        check_evaluating(bool(state.training))
        queued = int(state.queued)
        check_room(goals.shape[0], queued - int(state.taken), self.queue_capacity)
        shelf = self._maker.add(self._copy(state.shelf), keys, goals, queued)
        return state._replace(shelf=shelf, queued=jnp.asarray(queued + goals.shape[0], jnp.int32))

    def step(self, state: CraftaxState, actions: Int[Array, " env"]) -> tuple[CraftaxState, Observation, Outcome]:
        """Advance every environment by one step; those that are done start their next episode."""
        return self._advance(state, jnp.asarray(actions, jnp.int32))

    def assignment(self, state: CraftaxState) -> Assignment:
        """The episode that each environment is in."""
        return Assignment(state.goal, state.key, jnp.asarray(state.game.timestep), state.active)

    def metrics(self, state: CraftaxState) -> dict[str, Float[Array, ""]]:
        """Counts since the last `reset` or `begin`.

        `successes_at_start` are those on the first step of an episode whose goal held before it; `worlds_reused`
        counts the episodes that started in a world that another one had started in.
        """
        return {name: value.astype(jnp.float32) for name, value in state.counts._asdict().items()}

    def _take_first(
        self,
        first: Start,
        shelf: Start,
        goals: Int[Array, " env"],
        taken: Int[Array, ""],
        queued: Int[Array, ""],
        training: Bool[Array, ""],
    ) -> tuple[CraftaxState, Observation]:
        first = jax.tree.map(lambda leaf: leaf[: self.num_envs], first)
        zero = jnp.zeros((), jnp.int32)
        state = CraftaxState(
            game=first.world,
            goal=goals,
            key=first.key,
            held=self._at_goal(first.holds, goals),
            active=jnp.ones(self.num_envs, bool),
            finished_at=jnp.zeros(self.num_envs, jnp.int32),
            shelf=shelf,
            taken=jnp.asarray(taken, jnp.int32),
            queued=jnp.asarray(queued, jnp.int32),
            clock=zero,
            training=jnp.asarray(training, bool),
            counts=Counts(zero, zero, zero, zero, zero + self.num_envs, zero),
        )
        return state, jax.vmap(observe)(state.game)

    def _advance_all(
        self, state: CraftaxState, actions: Int[Array, " env"]
    ) -> tuple[CraftaxState, Observation, Outcome]:
        after = jax.vmap(self._game_step)(state.game, actions)
        outcome = self._judge(state, after)
        counts = state.counts._replace(
            steps=state.counts.steps + _count(state.active),
            episodes=state.counts.episodes + _count(outcome.done),
            successes=state.counts.successes + _count(outcome.success),
            successes_at_start=state.counts.successes_at_start
            + _count(outcome.success & state.held & (state.game.timestep == 0)),
        )
        state = self._restart(state._replace(game=after, counts=counts, clock=state.clock + 1), outcome.done)
        return state, jax.vmap(observe)(state.game), outcome

    def _game_step(self, game: EnvState, action: Int[Array, ""]) -> EnvState:
        # The game leaves its next random key in its state, so an episode is a function of its key and actions.
        return craftax_step(game.state_rng, game, action, self._params, STATIC)[0]

    def _judge(self, state: CraftaxState, after: EnvState) -> Outcome:
        reached = jax.vmap(self._reached)(state.game, after)
        over = (after.player_health <= 0) | jax.vmap(has_beaten_boss, (0, None))(after, STATIC)
        return Outcome(
            self._at_goal(reached, state.goal) & state.active,
            over & state.active,
            (after.timestep >= self.episode_limit) & state.active,
        )

    def _at_goal(self, flags: Bool[Array, "env goal"], goal: Int[Array, " env"]) -> Bool[Array, " env"]:
        return jnp.take_along_axis(flags, jnp.asarray(self._goal_rows)[goal][:, None], axis=1)[:, 0]

    def _restart(self, state: CraftaxState, done: Bool[Array, " env"]) -> CraftaxState:
        """Give the next starts to environments that are done or idle, in order of finishing, then of index."""
        slots = state.shelf.goal.shape[0]
        waiting = done | ~state.active
        finished_at = jnp.where(done, state.clock, state.finished_at)
        order = jnp.argsort(jnp.where(waiting, finished_at, jnp.iinfo(jnp.int32).max), stable=True)
        left = jnp.where(state.training, self.num_envs, state.queued - state.taken)
        count = jnp.minimum(_count(waiting), left)
        rank = jnp.zeros_like(order).at[order].set(jnp.arange(self.num_envs))
        starting = waiting & (rank < count)
        source = (state.taken + rank) % slots

        # One world at a time and in place: a choice between old and new worlds for all would cost as much as a step.
        def start(i: Int[Array, ""], game: EnvState) -> EnvState:
            return copy_start(game, order[i], state.shelf, (state.taken + i) % slots)

        game = jax.lax.fori_loop(0, count, start, state.game)
        lap = jnp.where(state.training, (state.taken + rank) // slots, 0)
        chances = jax.vmap(jax.random.fold_in)(game.state_rng, lap)
        game = game.replace(state_rng=jnp.where(starting & (lap > 0), chances, game.state_rng))

        goal = jnp.where(starting & ~state.training, state.shelf.goal[source], state.goal)
        held = self._at_goal(state.shelf.holds[source], goal)
        return state._replace(
            game=game,
            goal=goal,
            key=jnp.where(starting, state.shelf.key[source], state.key),
            held=jnp.where(starting, held, state.held),
            active=~waiting | starting,
            finished_at=finished_at,
            taken=state.taken + count,
            counts=state.counts._replace(
                worlds_used=state.counts.worlds_used + count,
                worlds_reused=state.counts.worlds_reused + _count(starting & (lap > 0)),
            ),
        )

    def _checked(self, goals: Int[Array, " env"], count: int) -> Int[Array, " env"]:
        # A copy, since the caller's array must outlive a state that is donated.
        return jnp.array(goal_numbers(goals, count, len(self.goal_ids)))


def _count(flags: Bool[Array, " env"]) -> Int[Array, ""]:
    return flags.sum(dtype=jnp.int32)
