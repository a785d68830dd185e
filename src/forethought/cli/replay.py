"""`forethought replay`: an episode of a run as an animation."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input


def command(arguments: Sequence[str]) -> int:
    """Run `forethought replay`."""
    from forethought.cli.parsing import call

    return call(replay, arguments, "forethought replay")


def replay(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    goal: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GOAL")],
    episode: int = 0,
    trace: str | None = None,
    out: str = "",
    fps: float = 8.0,
    env: Literal["auto", "engine", "jax"] | None = None,
) -> int:
    """Draw one evaluation episode of a run's agent, as an animated WebP that any browser shows.

    The agent plays the episode, then the episode is played again from its seed and actions, and drawn: what is in view,
    the goal's text, the step, what is done, and the subroutine being called.

    Args:
        run: Directory of the run.
        goal: Id of the goal, one that the run trained on.
        episode: Number of the episode, from 0; the evaluations of the run play the same ones.
        trace: Draw the episode in this file (forethought eval --trace) instead; the agent is not asked then.
        out: The file; default: GOAL-EPISODE.webp in the run's folder.
        fps: Steps a second.
        env: What plays Craftax: engine, jax or auto; default: what the run was trained with.
    """
    path = Path(out) if out else Path(run) / f"{goal}-{episode}.webp"
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"--out: {path} given; allowed is a file in a folder that exists")
    if not fps > 0:
        raise UsageError(f"--fps: {fps} given; allowed are positive numbers")
    if episode < 0:
        raise UsageError(f"--episode: {episode} given; episodes are numbered from 0")
    from forethought.devices import prepare

    with bad_input():
        prepare("cpu")
    from forethought.policies import load_run
    from forethought.replay import animate, read_recording, record

    with bad_input():
        loaded = load_run(run, {"device": "cpu"} | ({} if env is None else {"environment.backend": env}))
        loaded.domain.tasks.index(goal)
        if trace is None:
            print(f"playing episode {episode} of {goal} ...", file=sys.stderr)
            recording = record(loaded, goal, episode)
        else:
            recording = read_recording(trace)
            if recording.goal != goal:
                raise UsageError(f"--trace: {trace} is an episode of {recording.goal}, not of {goal}")
        frames, every = animate(recording, loaded, path, fps)
    left_out = "" if every == 1 else f", one for every {every} steps"
    print(f"{goal}, episode {recording.episode}: {recording.outcome}; {frames} frames{left_out} in {path}")
    return 0
