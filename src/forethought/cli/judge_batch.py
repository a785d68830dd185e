"""`forethought judge batch`: ask through a provider's batch API."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import tyro

from forethought.cli.errors import UsageError, bad_input, nearest
from forethought.cli.judge import runs_in
from forethought.cli.judge_run import GUESSED_THOUGHTS, ask, backend_for, known_price, require_answer

if TYPE_CHECKING:
    from forethought.judging.batches import Batches
    from forethought.judging.store import Run

T = TypeVar("T")
Directory = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]

USAGE = """usage: forethought judge batch submit|status|collect|cancel DIR

Ask through the batch API of OpenAI, Anthropic or Gemini: half the price, hours to wait, nothing has to keep running.

  submit     a probe of 4 queries; once it is collected and valid, submit again for the rest
  status     what the provider says of the batches
  collect    store the replies of batches that have ended; never waits
  cancel     ask the provider to stop; what is done can still be collected

  forethought judge batch ACTION --help    all about one action"""


def batch(arguments: Sequence[str]) -> int:
    """Run `forethought judge batch`."""
    from forethought.cli.parsing import call

    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    actions: dict[str, Callable[..., int]] = {"submit": submit, "status": status, "collect": collect, "cancel": cancel}
    name, *rest = arguments
    if name not in actions:
        raise UsageError(f"no command 'judge batch {name}'{nearest(name, actions)}; allowed are {', '.join(actions)}")
    return call(actions[name], rest, f"forethought judge batch {name}")


def submit(
    directory: Directory,
    yes: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    max_usd: float | None = None,
    price: tuple[float, float] | None = None,
    dialect: str | None = None,
    adopt: str | None = None,
    resubmit: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Submit what is still to be asked: first a probe of 4 queries, and when it has come back valid, the rest.

    Args:
        directory: Directory of the plan.
        yes: Do not ask before submitting.
        max_usd: Do not submit if all replies together could cost more than this, in US dollars.
        price: Dollars for a million input and output tokens of live requests, where the list has none.
        dialect: How to ask for structure: strict, targets, loose, json, prompted; default: the best that is taken.
        adopt: The provider's id of a batch whose creation was never confirmed here.
        resubmit: Submit the queries of a batch that was never confirmed again; check first that it does not exist.
    """
    from forethought.judging.providers import DIALECTS

    if dialect is not None and dialect not in DIALECTS:
        raise UsageError(f"--dialect: {dialect!r} given; allowed are {', '.join(DIALECTS)}")
    require_answer(yes)
    runs = runs_in(directory)

    async def one(batches: "Batches") -> str:
        if adopt is not None:
            await batches.adopt(adopt)
            return f"adopted {adopt}"
        if resubmit:
            batches.abandon()
        state = batches.run.state()
        waiting = batches.waiting(state)
        if not waiting:
            return "nothing to submit"
        cost = _cost(batches, len(waiting))
        if max_usd is not None and (cost is None or state.cost_usd + cost > max_usd):
            known = "its price is unknown" if cost is None else f"it could cost ${cost:.2f}"
            raise UsageError(
                f"--max-usd: not submitted, {known}, ${state.cost_usd:.2f} are spent, {max_usd} is the cap"
            )
        shown = "at an unknown price" if cost is None else f"for about ${cost:.2f}"
        if not yes and not ask(f"{batches.run.plan.kind}: {len(waiting)} queries {shown} as a batch. Submit?"):
            return "not submitted"
        done = await batches.submit(dialect)
        if done.is_probe:
            rest = f"; collect it, then submit the other {done.left}" if done.left else ""
            return f"a probe of {done.queries} queries is submitted as {', '.join(done.batches)}{rest}"
        return f"{done.queries} queries are submitted as {', '.join(done.batches)}"

    return _each(runs, price, "judge batch submit", one)


def status(directory: Directory) -> int:
    """Show what the provider says of every batch.

    Args:
        directory: Directory of the run.
    """
    return _each(runs_in(directory), None, "judge batch status", lambda batches: _standings(batches.standings()))


def collect(directory: Directory, price: tuple[float, float] | None = None) -> int:
    """Store the replies of the batches that have ended; what failed in them can be asked again.

    Args:
        directory: Directory of the run.
        price: Dollars for a million input and output tokens of live requests, where the list has none.
    """
    return _each(runs_in(directory), price, "judge batch collect", lambda batches: _standings(batches.collect()))


def cancel(directory: Directory) -> int:
    """Ask the provider to cancel the open batches.

    Args:
        directory: Directory of the run.
    """

    async def one(batches: "Batches") -> str:
        return f"{await batches.cancel()} batches are to be cancelled; collect what they have done"

    return _each(runs_in(directory), None, "judge batch cancel", one)


def _each(
    runs: "list[Run]",
    price: tuple[float, float] | None,
    purpose: str,
    action: "Callable[[Batches], Awaitable[str]]",
) -> int:
    from forethought.judging.backend import Failure
    from forethought.judging.batches import Batches

    async def all_of_them() -> None:
        async with backend_for(runs) as backend:
            for line in backend.notices():
                print(line)
            for run in runs:
                with run.writing(purpose) as writer:
                    batches = Batches(run, writer, backend, known_price(run, price))
                    print(f"{run.plan.kind}: {await action(batches)}")

    with bad_input():
        try:
            asyncio.run(all_of_them())
        except Failure as failure:
            raise UsageError(f"the provider refuses: {failure}") from failure
    return 0


async def _standings(found: Awaitable[list]) -> str:
    batches = await found
    if not batches:
        return "no batch to report"
    lines = []
    for batch in batches:
        detail = f": {batch.detail}" if batch.detail else ""
        lines.append(f"  {batch.id or '-'}  {batch.queries} queries  {batch.status} since {batch.submitted}{detail}")
    return "\n".join(["", *lines])


def _cost(batches: "Batches", queries: int) -> float | None:
    from forethought.judging.cost import BATCH, estimate

    if batches.price is None:
        return None
    need = estimate(batches.run.plan)
    return batches.price.of(need.usage(GUESSED_THOUGHTS)) / need.queries * queries * BATCH
