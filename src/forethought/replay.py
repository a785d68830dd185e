"""One evaluation episode of a run as an animation, drawn again from its seed and its actions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from forethought.craftax.interface import OBSERVATION_SPEC
from forethought.environment import BatchedEnvironment, Observation, Outcome
from forethought.pictures import captioned, grid, save_animation
from forethought.policies import LoadedRun
from forethought.trace import episode_key, episode_steps

MOST_FRAMES = 600
"""Steps are left out of a longer animation, evenly."""


class Recording(NamedTuple):
    """An episode as far as it is needed to play it again."""

    goal: str
    episode: int
    seed: int
    steps: list[dict[str, Any]]
    """As `forethought.trace` has them."""

    @property
    def outcome(self) -> str:
        """How it ended, in words."""
        last, count = self.steps[-1], len(self.steps)
        if last["success"]:
            return f"reached after {count} steps"
        return f"died after {count} steps" if last["terminated"] else f"not reached within {count} steps"


def record(loaded: LoadedRun, goal: str, episode: int = 0) -> Recording:
    """Let the agent of a run play one episode of its evaluation.

    Raises:
        KeyError: The run has no such goal.
        ValueError: The episode's number is negative.
    """
    if episode < 0:
        raise ValueError(f"episode is {episode}; episodes are numbered from 0")
    domain, seed = loaded.domain, loaded.config.seed
    number = domain.tasks.index(goal)
    environment = domain.make_environment(1, queue_capacity=1)
    played = episode_steps(
        *(loaded.learner, loaded.state, environment, domain.tasks.ids, number, loaded.eligible),
        episode=episode,
        seed=seed,
    )
    return Recording(goal, episode, seed, list(played))


def read_recording(path: str | Path) -> Recording:
    """Read an episode that `forethought eval --trace` wrote.

    Raises:
        ValueError: The file is none, or is not whole; names the line.
    """
    number = 0
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        header = json.loads(lines[0])
        goal, episode, seed = header["goal"], header["episode"], header["seed"]
        steps = []
        for number, line in enumerate(lines[1:], 1):
            step = json.loads(line)
            if step["step"] != number - 1 or "action" not in step:
                raise ValueError("a step is missing")
            steps.append(step)
        if not steps or "success" not in steps[-1]:
            raise ValueError("the episode has no end")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
        raise ValueError(f"{path}, line {number + 1}: not an episode of forethought eval --trace: {error}") from None
    return Recording(goal, episode, seed, steps)


def replay(
    recording: Recording, environment: BatchedEnvironment, goal_ids: Sequence[str]
) -> Iterator[tuple[Observation, Outcome | None]]:
    """Play the actions of an episode again, without the agent.

    Args:
        recording: The episode.
        environment: One environment of its domain.
        goal_ids: Ids of the domain's goals, in the order of their numbers.

    Yields:
        What is seen before the first step and after each one (of the one environment), and how the step ended.

    Raises:
        ValueError: It ends otherwise than it did: the domain, the goals or their tests are not those that it was
            played with.
    """
    keys = jax.random.wrap_key_data(jnp.asarray(episode_key(recording.seed, recording.goal, recording.episode)))
    state, observation = environment.begin(keys, jnp.asarray([goal_ids.index(recording.goal)], jnp.int32))
    yield _first(observation), None
    move = jax.jit(environment.step)
    for number, step in enumerate(recording.steps, 1):
        action = environment.noop_action if step["action"] is None else step["action"]
        state, observation, outcome = move(state, jnp.asarray([action], jnp.int32))
        expected = [step.get(name, False) for name in Outcome._fields]
        if [bool(flag[0]) for flag in outcome] != expected:
            raise ValueError(
                f"step {number} of the episode ends otherwise than it did when it was played; the goals, or the "
                "version of the game, are not the same"
            )
        yield _first(observation), outcome


def animate(recording: Recording, loaded: LoadedRun, path: str | Path, fps: float = 8.0) -> tuple[int, int]:
    """Draw an episode as an animated WebP: what the agent sees, the goal, and what it does, calls included.

    Args:
        recording: The episode.
        loaded: The run whose domain it belongs to.
        path: The file, replaced if it exists.
        fps: Frames a second.

    Returns:
        The number of frames, and the steps from one to the next.

    Raises:
        ValueError: The episode ends otherwise than it did; `fps` is not positive.
    """
    tasks = loaded.domain.tasks
    environment = loaded.domain.make_environment(1, queue_capacity=1)
    every = -(-len(recording.steps) // MOST_FRAMES)
    names = _action_names(environment)
    text = tasks[tasks.index(recording.goal)].text
    frames = []
    for number, (observation, _) in enumerate(replay(recording, environment, tasks.ids)):
        last = number == len(recording.steps)
        if number % every == 0 or last:
            doing = recording.outcome if last else _doing(recording, recording.steps[number], names)
            frames.append(_draw(environment, observation, (text, f"step {number}: {doing}")))
    return save_animation(path, frames, fps), every


def _doing(recording: Recording, step: Mapping[str, Any], names: Sequence[str]) -> str:
    if step["calls"] is not None:
        return f"calls {step['calls']}"
    doing = str(names[step["action"]])
    return f"{doing}, for {step['pursuing']} ({step['remaining']} left)" if step["remaining"] else doing


def _draw(environment: BatchedEnvironment, observation: Observation, lines: Sequence[str]) -> Image.Image:
    cells, features = np.asarray(observation.cells), np.asarray(observation.features)
    if environment.observation_spec == OBSERVATION_SPEC:
        from forethought.craftax.frames import draw

        return draw(cells, features, *lines)
    return captioned(grid(cells, tile=56), lines)


def _action_names(environment: BatchedEnvironment) -> list[str]:
    if environment.observation_spec == OBSERVATION_SPEC:
        from forethought.craftax.interface import ACTIONS

        return [name.replace("_", " ") for name in ACTIONS]
    return [f"action {number}" for number in range(environment.num_actions)]


def _first(observation: Observation) -> Observation:
    return Observation(observation.cells[0], observation.features[0])
