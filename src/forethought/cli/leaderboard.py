"""`forethought leaderboard`: results on the benchmark, checked; add one, or measure one again."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input

if TYPE_CHECKING:
    from forethought.evaluation import EvaluationResult

RANDOM = "random"
"""Stands for a run: every action with the same chance."""


def command(arguments: Sequence[str]) -> int:
    """Run `forethought leaderboard`."""
    from forethought.cli.parsing import call

    return call(leaderboard, arguments, "forethought leaderboard")


def leaderboard(
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = "results/leaderboard.jsonl",
    add: str = "",
    verify: str = "",
    name: str = "",
    policy: str = "",
    note: str = "",
    episodes: int = 128,
    seed: int = 0,
    env: Literal["auto", "engine", "jax"] = "auto",
) -> int:
    """Show the leaderboard, after checking every line; with --add or --verify measure a policy on all 256 goals.

    A fault in the file ends in exit code 2 and one line that names the line and the field.

    Args:
        file: The leaderboard.
        add: Directory of a run whose agent is measured and added under --name, not verified; `random` for random
            actions.
        verify: The same, to measure the entry called --name again; it becomes verified if every goal has the same
            successes.
        name: Name of the entry.
        policy: With --add: where others find the policy.
        note: With --add: what else there is to say.
        episodes: With --add: episodes of each goal.
        seed: With --add: seed of the evaluation, the same for all who are to be compared.
        env: What plays Craftax: engine, jax or auto.
    """
    from forethought.leaderboard import Entry, differences, make_entry, read_leaderboard, table, write_leaderboard

    if add and verify:
        raise UsageError("--add and --verify: one of them at a time")
    if (add or verify) and not name:
        raise UsageError("--name: not set; name the entry")

    def current() -> list[Entry]:
        """What the file holds now: others may add to it while a policy is measured."""
        return [] if add and not Path(file).exists() else read_leaderboard(file)

    with bad_input():
        entries = current()
        found = next((entry for entry in entries if entry.name == name), None)
        if add and found is not None:
            raise UsageError(f"--name: {name!r} given, but there is such an entry already")
        if verify and found is None:
            raise UsageError(f"--name: {name!r} given; entries are {', '.join(repr(e.name) for e in entries)}")
        if add and not Path(file).resolve().parent.is_dir():
            raise UsageError(f"{file}: its folder does not exist")
    if add:
        fields, result = _measured(add, None, episodes, seed, 4096, env)
        fields |= {"policy": policy} if policy else {}
        with bad_input():
            entry = make_entry(result, name=name, note=note, seed=seed, episode_limit=4096, **fields)
            try:
                entries = [*current(), entry]
                write_leaderboard(entries, file)
            except (OSError, ValueError):
                # Hours may have gone into it.
                print(f"measured, but not added: {entry.model_dump_json()}", file=sys.stderr)
                raise
    elif verify and found is not None:
        _, result = _measured(verify, found.goal_ids, found.episodes, found.seed, found.episode_limit, env)
        if lines := differences(found, result):
            print("\n".join([f"{name}: not the same", *lines]), file=sys.stderr)
            return 1
        with bad_input():
            entries = current()
            if found not in entries:
                raise UsageError(f"{file}: the entry {name!r} has changed while it was measured; nothing is marked")
            entries[entries.index(found)] = found.model_copy(update={"verified": True})
            write_leaderboard(entries, file)
    print(table(entries))
    return 0


def _measured(
    source: str, goals: Sequence[str] | None, episodes: int, seed: int, limit: int, env: str
) -> tuple[dict[str, Any], "EvaluationResult"]:
    """What is known of a policy, and its successes."""
    from forethought.devices import prepare

    with bad_input():
        prepare("auto")
    from forethought.benchmark import craftax_domain, evaluate
    from forethought.craftax.interface import NUM_ACTIONS
    from forethought.craftax.shipped import goals as benchmark_goals
    from forethought.policies import RandomPolicy, load_run

    asked = tuple(goals or benchmark_goals().ids)
    fields: dict[str, Any] = {}
    with bad_input():
        if source == RANDOM:
            policy, fields["policy"] = RandomPolicy(NUM_ACTIONS), "forethought.policies.RandomPolicy(43)"
            domain = craftax_domain(asked, embeddings=None, backend=env, episode_limit=limit)
        else:
            loaded = load_run(source, {"environment.episode_limit": limit, "environment.backend": env})
            if loaded.config.tasks.domain != "craftax":
                raise UsageError(f"{source}: a run of {loaded.config.tasks.domain}; the leaderboard is of Craftax")
            policy = loaded.policy
            domain = policy.domain([goal for goal in asked if goal not in policy.ids])
            fields["policy"] = str(source)
            fields["training"] = {
                "method": loaded.config.method,
                "learner": loaded.config.learner,
                "steps": loaded.steps,
                "seed": loaded.config.seed,
            }
    print(f"measuring: {episodes} episodes of {len(asked)} goals ...", file=sys.stderr)
    result = evaluate(policy, asked, episodes, seed=seed, domain=domain, num_envs=1024, chunk=128)
    return fields, result
