"""One episode of an agent, step by step, with what it was pursuing: for looking at how it calls itself."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, UInt32

from forethought.environment import BatchedEnvironment
from forethought.evaluation import decide, episode_keys
from forethought.files import replacing
from forethought.learner.acting import empty_memory
from forethought.learner.learner import Learner
from forethought.learner.subroutines import CALL_STEPS


def write_trace(
    path: str | Path,
    learner: Learner,
    state: Any,
    environment: BatchedEnvironment,
    goal_ids: Sequence[str],
    goal: int,
    eligible: Bool[Array | np.ndarray, " goal"] | None = None,
    *,
    episode: int = 0,
    seed: int = 0,
) -> int:
    """Play one evaluation episode and write it as JSON lines.

    The episode is the one that an `Evaluator` with this seed plays as number `episode` of the goal. The first line
    names it; each other line is a step: `step` from 0, `pursuing` (the active goal), `remaining` (steps left of the
    call in progress, 0 outside calls), `action` (number; null for a call), `calls` (the goal called, or null),
    `value`, and on the last line `success`, `terminated` and `truncated`.

    Args:
        path: The file, replaced if it exists.
        learner: The learner.
        state: Its state.
        environment: One environment of the learner's domain.
        goal_ids: Ids of the domain's goals, in the order of their numbers.
        goal: Number of the goal.
        eligible: Which goals a learner with calls may call; by default none.
        episode: Number of the episode, from 0.
        seed: Seed of the evaluation.

    Returns:
        The number of steps.

    Raises:
        ValueError: There is more than one environment.
    """
    header = {"goal": goal_ids[goal], "episode": episode, "seed": seed, "call_steps": CALL_STEPS}
    if learner.num_calls:
        header["eligible"] = [goal_ids[int(index)] for index in np.flatnonzero(learner.callable_goals(eligible))]
    count = 0
    with replacing(Path(path)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(json.dumps(header, ensure_ascii=False) + "\n")
        for line in episode_steps(learner, state, environment, goal_ids, goal, eligible, episode=episode, seed=seed):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def episode_key(seed: int, goal_id: str, episode: int) -> UInt32[np.ndarray, "1 2"]:
    """The key of one evaluation episode, as the only row."""
    return episode_keys(seed, [goal_id], episode + 1)[0, episode : episode + 1]


def episode_steps(
    learner: Learner,
    state: Any,
    environment: BatchedEnvironment,
    goal_ids: Sequence[str],
    goal: int,
    eligible: Bool[Array | np.ndarray, " goal"] | None = None,
    *,
    episode: int = 0,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """Play one evaluation episode; yields what `write_trace` writes of each step. Arguments and errors are as there."""
    if environment.num_envs != 1:
        raise ValueError(f"a trace needs 1 environment, not {environment.num_envs}")
    keys = episode_key(seed, goal_ids[goal], episode)
    network = learner.network(state)
    agent = (network, learner.callable_goals(eligible))
    choose, move = jax.jit(decide), jax.jit(environment.step)
    where, observation = environment.begin(jax.random.wrap_key_data(jnp.asarray(keys)), jnp.asarray([goal], jnp.int32))
    memory = empty_memory(network, 1)
    done = False
    while not done:
        assignment = environment.assignment(where)
        before = memory.calls
        chosen = choose(agent, memory, observation, assignment, learner.goal_embeddings)
        where, observation, outcome = move(where, chosen.action)
        memory = chosen.memory
        called = int(chosen.choice[0]) - network.num_actions
        done = bool(outcome.done[0])
        line: dict[str, Any] = {
            "step": int(assignment.step[0]),
            "pursuing": goal_ids[int(before.active(assignment.goal)[0])],
            "remaining": int(before.remaining[0]),
            "action": int(chosen.choice[0]) if called < 0 else None,
            "calls": goal_ids[called] if called >= 0 else None,
            "value": float(chosen.value[0]),
        }
        if done:
            line |= {name: bool(getattr(outcome, name)[0]) for name in ("success", "terminated", "truncated")}
        yield line
