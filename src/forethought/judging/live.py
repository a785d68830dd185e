"""Ask a model live: several requests at a time, one shared pause, a cap on spending, and every reply kept first."""

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from forethought.judging.backend import Answer, Backend, Busy, Failure, Lost, Rejected
from forethought.judging.batch_log import held_targets
from forethought.judging.cost import BYTES_PER_TOKEN, Price, tokens
from forethought.judging.journal import now
from forethought.judging.pause import Pause
from forethought.judging.replies import Reply
from forethought.judging.requests import request_record
from forethought.judging.state import Request, State
from forethought.judging.store import Run, Writer
from forethought.judging.wording import Message, Wording

LONGEST_PAUSE = 3600.0
"""Seconds; a provider that asks for a longer pause ends the run, to be continued later."""

CUT = 0.7
"""Share of a prompt's tokens below which the model cannot have read all of it."""

NOTHING = Answer("", None, None, None, {})
"""What came back where nothing did."""


@dataclass(frozen=True)
class Options:
    """How to ask.

    Attributes:
        concurrency: most requests in flight, at least 1.
        max_usd: stop before more US dollars than this are spent, those of earlier calls counted in; None for no cap.
        price: of the model; None if unknown, and then no cap can be kept.
        pilot: queries to ask before `confirm` is called; 0 for none.
        patience: failures in a row, with a pause after each, before giving up.
        guess_usd: expected cost of one request until replies show it.

    Raises:
        ValueError: a number out of range, or a cap without a price.
    """

    concurrency: int = 8
    max_usd: float | None = None
    price: Price | None = None
    pilot: int = 4
    patience: int = 10
    guess_usd: float = 0.0

    def __post_init__(self):
        for name, least in (("concurrency", 1), ("pilot", 0), ("patience", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if self.max_usd is not None and self.price is None:
            raise ValueError("a cap on spending needs the model's price, which is not listed; give it in dollars")
        if self.max_usd is not None and not self.max_usd > 0:
            raise ValueError(f"max_usd is {self.max_usd}; it must be more than 0")


@dataclass(frozen=True)
class Outcome:
    """How it ended.

    Attributes:
        status: `complete`; `given up` if some targets never got a valid judgment; `declined` after the pilot; `budget`;
            `interrupted`; or `failed`, when the provider left no hope.
        reason: one line for a person.
    """

    status: str
    reason: str


class Seat:
    """A run held for writing, with the requests that it still needs."""

    def __init__(self, run: Run, writer: Writer, asks: int | None = None):
        self.run = run
        self.writer = writer
        self.state: State = run.state(asks)
        self.waiting: deque[Wording | Request] = deque()
        self.rung = run.dialect()
        self.is_settled = self.rung is not None
        held = held_targets(run)
        for query in run.plan.queries:
            self.add(self.state.pending(query, held))

    def add(self, requests: Sequence[Request]) -> None:
        """Let requests wait for their turn."""
        for request in requests:
            self.state.note_attempt(request.query.id, request.attempt)
        self.waiting.extend(requests)


class Live:
    """Asks everything that some runs still need.

    Args:
        seats: the runs, held for writing; they share the pause and the cap.
        backend: whom to ask.
        options: how.
        confirm: called once after the pilot with a line about cost; False ends the run. None asks nobody.
        tell: called with a line worth reading.
        progress: called after every reply.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        backend: Backend,
        options: Options | None = None,
        *,
        confirm: Callable[[str], bool] | None = None,
        tell: Callable[[str], None] = lambda _: None,
        progress: Callable[["Live"], None] = lambda _: None,
    ):
        self.seats = list(seats)
        self.backend = backend
        self.options = options or Options()
        self._confirm = confirm
        self._tell = tell
        self._progress = progress
        self._tasks: dict[asyncio.Task[None], Seat] = {}
        self._limit = float(min(4, self.options.concurrency))
        self._pause = Pause(self.options.patience)
        self._ending: Outcome | None = None
        self._pilot_left: int | None = None
        self._rejections = 0
        self.started = monotonic()
        self.answered = 0

    @property
    def in_flight(self) -> int:
        """Requests without an answer yet."""
        return len(self._tasks)

    @property
    def waiting(self) -> int:
        """Requests still to be sent, second tries that replies may call for left out."""
        return sum(len(seat.waiting) for seat in self.seats)

    @property
    def spent_usd(self) -> float:
        """Known cost so far, earlier calls counted in."""
        return sum(seat.state.cost_usd for seat in self.seats)

    def expected_usd(self, seat: Seat) -> float:
        """Cost to expect of one more request of a run."""
        state = seat.state
        return state.cost_usd / state.priced if state.priced else self.options.guess_usd

    def remaining_usd(self) -> float:
        """Cost to expect of everything that is waiting or in flight."""
        under_way = sum(self.expected_usd(seat) for seat in self._tasks.values())
        return under_way + sum(len(seat.waiting) * self.expected_usd(seat) for seat in self.seats)

    def run(self) -> Outcome:
        """Ask until all is answered or something ends it; everything received is on disk by then."""
        return asyncio.run(self.main())

    async def main(self) -> Outcome:
        """`run`, for callers with an event loop of their own."""
        async with self.backend:
            return await self._main()

    async def _main(self) -> Outcome:
        for line in self.backend.notices() if self.waiting else ():
            self._tell(line)
        if self._confirm is not None and self.waiting:
            answered = sum(seat.state.replies for seat in self.seats)
            self._pilot_left = max(0, self.options.pilot - answered)
            with self._signals():
                await self._drain()
            self._pilot_left = None
            if self._ending is None and self.waiting and not self._confirm(self._question()):
                self._end("declined", "not continued after the pilot; its replies are kept")
        with self._signals():
            await self._drain()
        return self._ending or self._finished()

    async def _drain(self) -> None:
        try:
            while True:
                while self._may_launch():
                    self._launch()
                if not self._tasks and (self._ending or not self.waiting or self._pilot_left == 0):
                    return
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(min(1.0, max(0.0, self._pause.until - monotonic())))
                for task in [task for task in self._tasks if task.done()]:
                    del self._tasks[task]
                    if not task.cancelled():
                        task.result()
        except BaseException as error:
            if not isinstance(error, Exception):
                for task in self._tasks:
                    task.cancel()
            # Whatever went wrong, the replies under way are paid for and are kept.
            await asyncio.gather(*self._tasks, return_exceptions=True)
            raise

    def _may_launch(self) -> bool:
        if self._ending or not self.waiting or self._pilot_left == 0 or self._pause.until > monotonic():
            return False
        if len(self._tasks) >= int(self._limit):
            return False
        if self.options.max_usd is not None:
            seat = self._next_seat()
            under_way = sum(self.expected_usd(other) for other in self._tasks.values())
            unknown = sum(other.state.maybe_paid * self.expected_usd(other) for other in self.seats)
            if self.spent_usd + unknown + under_way + self.expected_usd(seat) > self.options.max_usd:
                if not self._tasks:
                    self._end("budget", f"${self.spent_usd:.2f} spent; the next request could exceed the cap")
                return False
        return True

    def _next_seat(self) -> Seat:
        with_work = [seat for seat in self.seats if seat.waiting]
        if self._pilot_left is None:
            return with_work[0]
        under_way = list(self._tasks.values())
        return min(with_work, key=lambda seat: seat.state.replies + under_way.count(seat))

    def _launch(self) -> None:
        seat = self._next_seat()
        if self._pilot_left is not None:
            self._pilot_left -= 1
        job = seat.waiting.popleft()
        if isinstance(job, Request):
            job = Wording(seat.run.plan, job, self.backend.provider)
        self._tasks[asyncio.create_task(self._ask(seat, job))] = seat

    async def _ask(self, seat: Seat, job: Wording) -> None:
        try:
            await self._send(seat, job)
        except OSError as error:
            if error.filename is None:
                raise
            self._end("failed", f"{error.filename} cannot be written: {error.strerror}; nothing more is sent")

    async def _send(self, seat: Seat, job: Wording) -> None:
        message = job.message(seat.rung)
        request = job.request
        seat.writer.request(request_record(request, message, "live"))
        sent = monotonic()
        try:
            answer = await self.backend.ask(message)
        except Busy as busy:
            self._again(seat, job)
            self._wait(busy, sent)
        except Rejected as rejected:
            self._rejected(seat, job, message, rejected)
        except Lost as lost:
            self._keep(seat, request, message, NOTHING, str(lost), maybe_paid=True)
            self._wait(lost, sent)
        except Failure as failure:
            self._again(seat, job)
            self._end("failed", f"the provider refuses: {failure}")
        else:
            self._received(seat, request, message, answer)

    def _received(self, seat: Seat, request: Request, message: Message, answer: Answer) -> None:
        read, whole = answer.usage.get("input", 0), len(message.prompt.encode())
        cut = 0 < read < CUT * whole / (BYTES_PER_TOKEN + 0.5)
        error = f"the model read {read} tokens of a prompt of about {tokens(message.prompt)}" if cut else None
        self._keep(seat, request, message, answer, error)
        if error:
            self._end("failed", f"{error}: the server cuts long prompts; raise its context length")
            return
        self._pause.over()
        self._rejections = 0
        self._limit = min(self._limit + 0.1, float(self.options.concurrency))
        if not seat.is_settled:
            seat.rung, seat.is_settled = message.dialect, True
            seat.writer.settle_dialect(message.dialect)

    def _keep(
        self,
        seat: Seat,
        request: Request,
        message: Message,
        answer: Answer,
        error: str | None,
        *,
        maybe_paid: bool = False,
    ) -> None:
        """Store first; look at the content only then."""
        price = self.options.price
        reply = Reply(
            query=request.query.id,
            attempt=request.attempt,
            targets=request.targets,
            text=answer.text,
            received=now(),
            finish=answer.finish,
            model_served=answer.model_served,
            usage=answer.usage,
            cost_usd=round(price.of(answer.usage), 8) if price and answer.usage else None,
            response_id=answer.response_id,
            prompt_hash=message.prompt_hash,
            schema_hash=message.schema_hash,
            via="live",
            error=error,
            maybe_paid=maybe_paid,
        )
        seat.writer.reply(reply)
        self._notice_model(seat, reply)
        seat.state.take(reply)
        self.answered += 1
        # Other targets of this query are in the hands of other requests.
        others = set(request.query.targets) - set(request.targets)
        seat.add(seat.state.pending(request.query, {(request.query.id, target) for target in others}))
        self._progress(self)

    def _again(self, seat: Seat, job: Wording) -> None:
        seat.waiting.appendleft(job)
        if self._pilot_left is not None:
            self._pilot_left += 1

    def _wait(self, failure: Failure, sent: float) -> None:
        asked = failure.retry_after if isinstance(failure, Busy) else None
        if asked is not None and asked > LONGEST_PAUSE:
            self._end("failed", f"the provider asks to wait {asked:.0f} s ({failure}); run again then")
            return
        if not self._pause.begin(asked, sent):
            self._end("failed", f"{self.options.patience} failures in a row, the last: {failure}")
        elif self._pause.is_new:
            self._limit = max(1.0, self._limit / 2)
            self._tell(f"pausing {max(0.0, self._pause.until - monotonic()):.0f} s: {failure}")

    def _rejected(self, seat: Seat, job: Wording, message: Message, rejected: Rejected) -> None:
        if not seat.is_settled:
            self._again(seat, job)
            self._descend(seat, message, rejected)
            return
        if job.message(seat.rung).dialect != message.dialect:
            # It set out before a looser form was taken, and is asked again in that.
            self._again(seat, job)
            return
        # Others were taken in this form, so it is this request that the provider does not like.
        self._keep(seat, job.request, message, NOTHING, f"the provider does not take this request: {rejected}")
        self._rejections += 1
        if self._rejections >= self.options.patience:
            self._end("failed", f"{self._rejections} requests in a row were not taken, the last: {rejected}")

    def _descend(self, seat: Seat, message: Message, rejected: Rejected) -> None:
        ladder = self.backend.provider.ladder
        if message.dialect not in ladder or message.dialect == ladder[-1]:
            self._end("failed", f"the provider takes the request in no form: {rejected}")
            return
        below = ladder[ladder.index(message.dialect) + 1]
        if seat.rung is None or ladder.index(seat.rung) < ladder.index(below):
            seat.rung = below
            self._tell(f"the provider refused the {message.dialect} schema ({rejected}); trying {below}")

    def _notice_model(self, seat: Seat, reply: Reply) -> None:
        asked, served = seat.run.plan.settings.model.partition(":")[2], reply.model_served
        if not served or served in seat.state.served:
            return
        before = ", ".join(seat.state.served)
        if before:
            self._tell(f"warning: replies now come from {served}; before, from {before}")
        elif asked not in served and served not in asked:
            self._tell(f"warning: {asked} was asked, {served} answered")

    def _question(self) -> str:
        replies = sum(seat.state.replies for seat in self.seats)
        output = sum(seat.state.usage["output"] for seat in self.seats)
        bad, judged = (sum(getattr(seat.state, name) for seat in self.seats) for name in ("bad", "judged"))
        parts = [f"{replies} replies so far: {judged} judgments valid, {bad} not"]
        parts.append(f"{output / max(replies, 1):,.0f} output tokens a reply")
        if self.options.price is None:
            parts.append("price unknown")
        else:
            parts.append(
                f"${self.spent_usd:.2f} spent; the {self.waiting} queries left: about ${self.remaining_usd():.2f}"
            )
        return "; ".join(parts)

    def _end(self, status: str, reason: str) -> None:
        if self._ending is None:
            self._ending = Outcome(status, reason)

    def _finished(self) -> Outcome:
        given_up = sum(len(targets) for seat in self.seats for targets in seat.state.given_up().values())
        if given_up:
            return Outcome("given up", f"{given_up} judgments got no valid reply; raise the number of asks to go on")
        if any(seat.state.missing() for seat in self.seats):
            return Outcome("given up", "all that can be asked live is answered; the rest waits for a batch")
        return Outcome("complete", "every judgment is in")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM lets requests in flight finish, the second drops them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, caught = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)

        def stop() -> None:
            if self._ending is not None:
                for task in self._tasks:
                    task.cancel()
            else:
                self._tell(f"stopping when the {len(self._tasks)} requests in flight are answered; once more: at once")
            self._end("interrupted", "stopped; every reply received is kept")

        for number in caught:
            loop.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)
