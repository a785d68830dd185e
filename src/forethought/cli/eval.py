"""`forethought eval`: measure the agent of a run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from forethought.cli.errors import UsageError, bad_input

if TYPE_CHECKING:
    from forethought.evaluation import EvaluationResult

RESULT = "eval.parquet"


def command(arguments: Sequence[str]) -> int:
    """Run `forethought eval`."""
    from forethought.cli.parsing import call

    return call(evaluate, arguments, "forethought eval")


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    goals: Annotated[tuple[str, ...], tyro.conf.arg(metavar="GOAL ...")] = (),
    episodes: int | None = None,
    trace: str | None = None,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    env: Literal["auto", "engine", "jax"] | None = None,
) -> int:
    """Measure the agent in a run's last checkpoint; prints a table and writes it to eval.parquet in the run.

    Worlds and actions come from the run's seed, so a second call gives the same numbers.

    Args:
        run: Directory of the run.
        goals: Ids of the goals, with spaces or commas between them; default: all that the run trained on.
        episodes: Episodes per goal; default: as in the run's own evaluations.
        trace: Instead play the first episode of one goal and write it to this file, step by step, as JSON lines with
            the subroutines that it called.
        device: auto, cpu or gpu.
        env: What plays Craftax: engine, jax or auto; default: what the run was trained with.
    """
    from forethought.config import load_config
    from forethought.rundir import CONFIG, EVALUATION_COLUMNS, RunDirectory

    wanted = tuple(part for goal in goals for part in goal.split(",") if part)
    if trace is not None and len(wanted) != 1:
        raise UsageError(f"--trace shows an episode of one goal; name it with --goals (got {len(wanted)})")
    if trace is not None and (Path(trace).is_dir() or not Path(trace).parent.is_dir()):
        raise UsageError(f"--trace: {trace} given; allowed is a file in a folder that exists")
    changes: dict[str, Any] = {"device": device, "evaluation.goals": wanted}
    if env is not None:
        changes["environment.backend"] = env
    if episodes is not None:
        changes["evaluation.episodes"] = episodes
    with bad_input():
        from forethought.devices import prepare
        from forethought.domains import choose_backend, load_domain

        directory = RunDirectory(run)
        config = choose_backend(load_config(directory.path / CONFIG, overrides=changes))
        domain = load_domain(config)
        print(f"device: {prepare(config.device)}", file=sys.stderr)

    from forethought.evaluation import Evaluator
    from forethought.policies import restore_run
    from forethought.trace import write_trace

    with bad_input():
        loaded = restore_run(run, config, domain)
    learner, state, eligible = loaded.learner, loaded.state, loaded.eligible
    if trace is not None:
        goal = domain.tasks.index(wanted[0])
        ids = domain.tasks.ids
        steps = write_trace(trace, learner, state, domain.make_environment(1), ids, goal, eligible, seed=config.seed)
        print(f"{steps} steps of {wanted[0]} written to {trace}")
        return 0
    evaluator = Evaluator(
        learner,
        domain.make_environment,
        domain.tasks.ids,
        goals=[domain.tasks.index(goal) for goal in wanted] or None,
        episodes=config.evaluation.episodes,
        num_envs=config.evaluation.num_envs,
        seed=config.seed,
        chunk=config.evaluation.chunk,
    )
    result = evaluator.run(state, eligible)
    assert result is not None
    import polars as pl

    columns = result.columns(loaded.iteration, loaded.steps)
    pl.DataFrame({name: columns[name] for name in EVALUATION_COLUMNS}).write_parquet(directory.path / RESULT)
    print(f"after iteration {loaded.iteration}, {config.evaluation.episodes} episodes per goal")
    print(table(result))
    print(f"written to {directory.path / RESULT}")
    return 0


def table(result: "EvaluationResult") -> str:
    """Each goal's success rate and interval, best first, and the mean."""
    rates, (low, high) = result.success_rate, result.wilson
    width = max(len(goal) for goal in result.goals)
    lines = [f"{'goal':{width}}  success   95 % interval"]
    for index in sorted(range(len(result.goals)), key=lambda index: -rates[index]):
        lines.append(f"{result.goals[index]:{width}}  {rates[index]:7.1%}   {low[index]:.1%} to {high[index]:.1%}")
    return "\n".join([*lines, f"{'mean':{width}}  {rates.mean():7.1%}"])
