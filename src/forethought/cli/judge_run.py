"""`forethought judge run`: ask a model live."""

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input
from forethought.cli.judge import runs_in

if TYPE_CHECKING:
    from forethought.judging.backend import Backend
    from forethought.judging.cost import Price
    from forethought.judging.live import Live
    from forethought.judging.store import Run

EXIT_CODES = {"complete": 0, "declined": 0, "given up": 1, "failed": 1, "budget": 85, "interrupted": 85}
"""Exit code by how a run ended; 85 is a stop with everything saved, to be continued."""

GUESSED_THOUGHTS = 8_000
"""Tokens of thinking in a reply, for the cap on spending until replies show it."""

PLAIN_INTERVAL = 30.0
"""Seconds between two lines of progress where there is no terminal."""


def run(
    directory: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    yes: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    max_usd: float | None = None,
    price: tuple[float, float] | None = None,
    concurrency: int = 8,
    asks: int | None = None,
) -> int:
    """Ask a model everything that a planned run still needs.

    Four queries are asked first; then you are told what the rest will cost, and asked. Replies are on disk before they
    are looked at: a run that was stopped or killed continues where it was, and pays for no reply twice that it has
    received. Ctrl-C lets the requests in flight finish, a second one drops them. The key is read from the provider's
    environment variable (GOOGLE_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY, ...), or for a server of your own from
    FORETHOUGHT_API_KEY.

    Exit codes: 0 done, or not continued after the question; 1 the provider refuses, or judgments stay without a valid
    reply; 2 bad input; 85 stopped with everything saved (Ctrl-C, or the cap on spending).

    Args:
        directory: Directory of the plan.
        yes: Do not ask; go on after the first queries.
        max_usd: Stop before more than this is spent, in US dollars; what earlier calls spent counts.
        price: Dollars for a million input and output tokens, where the list has none.
        concurrency: Most requests in flight.
        asks: Ask about one target up to this often before giving it up; default: as planned (4).
    """
    from forethought.judging.live import Live, Options, Seat

    runs = runs_in(directory)
    require_answer(yes)
    if asks is not None and asks < 1:
        raise UsageError(f"--asks: {asks} given; allowed are 1 and more")
    progress = _Progress()
    confirm = None if yes else lambda question: progress.ask(f"{question}. Go on?")
    with ExitStack() as held:
        with bad_input():
            listed = known_price(runs[0], price)
            guess = _guess(runs, listed) if listed else 0.0
            options = Options(concurrency, max_usd, listed, guess_usd=guess)
            backend = backend_for(runs)
            seats = [Seat(run, held.enter_context(run.writing("judge run")), asks) for run in runs]
        live = Live(seats, backend, options, confirm=confirm, tell=progress.tell, progress=progress.show)
        outcome = live.run()
    progress.show(live, last=True)
    print(f"{outcome.status}: {outcome.reason}", file=sys.stderr)
    if outcome.status == "complete":
        print(f"make the graphs with: forethought judge build {directory}")
    for seat in live.seats:
        if seat.state.empty:
            print(f"warning: {seat.state.empty} replies name no source for any target; look at them", file=sys.stderr)
        for query, targets in list(seat.state.given_up().items())[:5]:
            for target, problem in targets.items():
                print(f"  {query}: {seat.run.plan.tasks.ids[target]}: {problem}", file=sys.stderr)
    return EXIT_CODES[outcome.status]


def require_answer(yes: bool) -> None:
    """Refuse to start what will have to ask, where nobody can answer."""
    if not yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on before money is spent; add --yes to go on without a question")


def ask(question: str) -> bool:
    """A yes or no from the terminal; anything else, and the end of input, is a no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        return False


def backend_for(runs: "list[Run]") -> "Backend":
    """The model that some runs are to be asked of."""
    from forethought.judging.backend import Backend

    settings = {run.plan.settings for run in runs}
    if len(settings) > 1:
        raise UsageError("the runs in this directory are planned for different models; run each by its own directory")
    return Backend(runs[0].plan.settings)


def known_price(run: "Run", price: tuple[float, float] | None) -> "Price | None":
    """The price given, else the listed one."""
    from forethought.judging.cost import Price, price_of

    settings = run.plan.settings
    return Price(*price) if price is not None else price_of(settings.model, settings.base_url)


def _guess(runs: "list[Run]", price: "Price") -> float:
    from forethought.judging.cost import estimate

    needs = [estimate(run.plan) for run in runs]
    return max(price.of(need.usage(GUESSED_THOUGHTS)) / need.queries for need in needs)


class _Progress:
    """One line about the run: renewed in place on a terminal, every half minute elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0
        self._width = 0

    def show(self, live: "Live", last: bool = False) -> None:
        """Show where the run stands, if it is time."""
        now = time.monotonic()
        if not last and now - self._shown < (0.2 if self._terminal else PLAIN_INTERVAL):
            return
        self._shown = now
        line = status_line(live)
        if self._terminal:
            print(f"\r{line:{self._width}}", end="\n" if last else "", file=sys.stderr, flush=True)
            self._width = 0 if last else len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        """Print a line of its own."""
        self._clear()
        print(text, file=sys.stderr, flush=True)

    def ask(self, question: str) -> bool:
        """Ask on a line of its own."""
        self._clear()
        return ask(question)

    def _clear(self) -> None:
        if self._width:
            print(f"\r{'':{self._width}}\r", end="", file=sys.stderr)
            self._width = 0


def status_line(live: "Live") -> str:
    """Judgments, replies, cost so far and to come, faults and time left."""
    states = [seat.state for seat in live.seats]
    judged, wanted, replies, bad = (sum(getattr(s, n) for s in states) for n in ("judged", "wanted", "replies", "bad"))
    parts = [f"{judged:,}/{wanted:,} judgments", f"{replies:,} replies"]
    if live.options.price is not None:
        parts.append(f"${live.spent_usd:.2f} of about ${live.spent_usd + live.remaining_usd():.2f}")
    parts += [f"{bad} invalid"] if bad else []
    parts += [f"{live.in_flight} in flight"] if live.in_flight else []
    if live.answered and live.waiting:
        seconds = (time.monotonic() - live.started) / live.answered * live.waiting
        parts.append(f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left")
    return "  ".join(parts)
