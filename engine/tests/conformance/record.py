"""Plays the scenarios with Craftax itself and records every field of every step.

python -m conformance.record games.npz --steps 300
"""

import argparse
from pathlib import Path

import numpy as np

from . import reference
from .coverage import Coverage
from .fields import Fields, copy, one
from .policies import Players
from .recording import Recording
from .scenarios import MAX_TIMESTEPS, SCENARIOS, Scenario, seats, starts


def record(steps: int, scenarios: tuple[Scenario, ...] = SCENARIOS, seed: int = 0, worlds: int = 64) -> Recording:
    """Play games.

    Args:
        steps: How many steps each environment makes.
        scenarios: What they play.
        seed: Of worlds, edits and policies.
        worlds: How many different worlds are made; environments beyond them share worlds with other chances.
    """
    rng = np.random.default_rng(seed)
    places = seats(scenarios)
    keys = rng.integers(0, 2**32, (worlds, 2), np.uint32)
    states = starts(reference.make_worlds(keys), places, rng)
    names = [f"{place.scenario.name} {place.number} ({place.policy})" for place in places]
    recording = Recording(names, states, MAX_TIMESTEPS)
    players = Players([place.policy for place in places], seed)
    coverage = Coverage()
    game = reference.unflatten(states)
    for step in range(steps):
        renewing = [
            index
            for index, place in enumerate(places)
            if step and place.scenario.renew is not None and step % place.scenario.every == 0
        ]
        if renewing:
            edited = _renew(states, renewing, places, rng)
            recording.renew(np.array(renewing), states, edited)
            states, game = edited, reference.unflatten(edited)
        actions = players.actions(states, step)
        game, reward, done = reference.step(game, actions, MAX_TIMESTEPS)
        after = reference.flatten(game)
        changes = recording.add(actions, states, after, np.asarray(reward), np.asarray(done))
        coverage.add(states, actions, after, np.asarray(done), changes)
        changes.apply(states)
        del after  # its arrays are views of what the next step overwrites
    recording.notes |= {"coverage": coverage.to_json(), "worlds": keys.tolist()}
    return recording


def _renew(states: Fields, envs: list[int], places: list, rng: np.random.Generator) -> Fields:
    edited = copy(states)
    for index in envs:
        places[index].scenario.renew(one(edited, index), rng, places[index].number)
    return edited


def main() -> None:
    """Record to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=int, default=1, help="play every so many environments of each scenario only")
    args = parser.parse_args()
    scenarios = tuple(s._replace(count=-(-s.count // args.share)) for s in SCENARIOS)
    recording = record(args.steps, scenarios, args.seed)
    recording.save(args.path)
    print(f"{recording.num_envs} environments, {len(recording)} steps, {args.path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
