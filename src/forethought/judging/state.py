"""How far a run has come: what its replies have settled, what is still to be asked, what was spent."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from forethought.judging.blocks import Query
from forethought.judging.plan import Plan
from forethought.judging.replies import Reply, Verdict, judge


@dataclass(frozen=True)
class Judgment:
    """What one reply has settled.

    Attributes:
        kind: kind of judgment.
        repetition: number of the repetition, from 0.
        query: id of the query.
        targets_asked: positions of the tasks that the request asked to judge.
        sources_listed: positions of the tasks that were offered, in the order shown.
        selections: sources chosen, by target, for the targets that this reply settled; empty evidence means feasible
            from scratch.
        model_served: the model that answered.
        received: when, ISO 8601 in UTC.
    """

    kind: str
    repetition: int
    query: str
    targets_asked: tuple[int, ...]
    sources_listed: tuple[int, ...]
    selections: dict[int, tuple[int, ...]]
    model_served: str | None = None
    received: str | None = None


@dataclass(frozen=True)
class Request:
    """A query put to the model once more, about the targets that have no valid judgment yet."""

    query: Query
    attempt: int
    targets: tuple[int, ...]
    problems: tuple[str, ...] = ()
    """What was wrong with these targets in the reply before."""

    @property
    def id(self) -> str:
        """The name under which its reply is found again, such as `lc-r0-t03-s1-a1`."""
        return f"{self.query.id}-a{self.attempt}"


class State:
    """The state of a run, from its plan and the replies taken in so far.

    Args:
        plan: what the run asks.
        asks: how often one target is asked before it is given up; None takes the plan's number.

    Attributes:
        plan: what the run asks.
        cost_usd: known cost of all replies, valid or not.
        usage: tokens by kind, over all replies.
        replies: number of replies with an answer.
        priced: replies whose cost is known.
        unpriced: replies whose cost is not.
        errors: requests that ended without a usable answer.
        maybe_paid: those of them that brought nothing and may have been paid for.
        bad: judgments that were not valid.
        empty: connectivity replies about several targets that name no source for any.
        served: replies by the model that answered.
    """

    def __init__(self, plan: Plan, asks: int | None = None):
        self.plan = plan
        self._most_asks = plan.settings.asks if asks is None else asks
        self.cost_usd = 0.0
        self.usage: Counter[str] = Counter()
        self.replies = 0
        self.priced = 0
        self.unpriced = 0
        self.errors = 0
        self.maybe_paid = 0
        self.bad = 0
        self.empty = 0
        self.served: Counter[str] = Counter()
        self._settled: dict[str, set[int]] = {}
        self._asks: Counter[tuple[str, int]] = Counter()
        self._last: dict[tuple[str, int], _Fault] = {}
        self._attempts: dict[str, int] = {}

    def take(self, reply: Reply) -> tuple[Judgment, Verdict]:
        """Take in a stored reply; the judgment holds the targets that it is the first to settle.

        Raises:
            ValueError: the reply does not belong to this plan.
        """
        query = self.plan.by_id.get(reply.query)
        if query is None or not set(reply.targets) <= set(query.targets):
            raise ValueError(f"a reply to {reply.query!r} about {reply.targets} does not belong to this plan")
        self.note_attempt(reply.query, reply.attempt)
        self._count(reply)
        if reply.error is None:
            verdict = judge(self.plan, query, reply.targets, reply.text)
        else:
            verdict = Verdict({}, dict.fromkeys(reply.targets, reply.error))
        settled = self._settled.setdefault(query.id, set())
        new = {target: chosen for target, chosen in verdict.selections.items() if target not in settled}
        settled.update(new)
        for target, problem in verdict.problems.items():
            self._last[query.id, target] = _Fault(reply.attempt, reply.finish == "length", problem, reply.error is None)
        self._asks.update((query.id, target) for target in reply.targets)
        self.bad += len(verdict.problems) if reply.error is None else 0
        if self.plan.kind == "learning_connectivity" and len(verdict.selections) > 2:
            self.empty += not any(verdict.selections.values())
        judgment = Judgment(
            kind=self.plan.kind,
            repetition=query.repetition,
            query=query.id,
            targets_asked=reply.targets,
            sources_listed=query.sources,
            selections=new,
            model_served=reply.model_served,
            received=reply.received,
        )
        return judgment, verdict

    def note_attempt(self, query: str, attempt: int) -> None:
        """Let later requests about a query have higher numbers than this one."""
        self._attempts[query] = max(attempt, self._attempts.get(query, 0))

    def missing(self) -> dict[str, tuple[int, ...]]:
        """Targets without a valid judgment, by query."""
        found = {query.id: self._open(query) for query in self.plan.queries}
        return {id: targets for id, targets in found.items() if targets}

    def given_up(self) -> dict[str, dict[int, str]]:
        """Targets that were asked as often as the plan allows in vain, with what was wrong the last time, by query."""
        found = {
            query.id: {t: self._last[query.id, t].what for t in self._open(query) if self._is_exhausted(query, t)}
            for query in self.plan.queries
        }
        return {id: targets for id, targets in found.items() if targets}

    def pending(self, query: Query, held: Collection[tuple[str, int]] = ()) -> list[Request]:
        """The requests that a query needs now, each with a number of its own.

        Bad targets are asked again in one request, or in two halves where the reply was cut off.

        Args:
            query: a query of the plan.
            held: query id and target of judgments that are under way elsewhere.
        """
        faults = {t: self._last.get((query.id, t), _NEVER_ASKED) for t in self._open(query)}
        groups: dict[int, list[int]] = {}
        for target, fault in faults.items():
            if (query.id, target) not in held and not self._is_exhausted(query, target):
                groups.setdefault(fault.attempt, []).append(target)
        parts: list[list[int]] = []
        for _, targets in sorted(groups.items()):
            middle = (len(targets) + 1) // 2
            in_halves = faults[targets[0]].cut_off and len(targets) > 1
            parts += [targets[:middle], targets[middle:]] if in_halves else [targets]
        first = self._attempts.get(query.id, 0) + 1
        return [
            Request(
                query,
                first + number,
                tuple(targets),
                tuple(dict.fromkeys(faults[t].what for t in targets if faults[t].is_the_models)),
            )
            for number, targets in enumerate(parts)
        ]

    @property
    def judged(self) -> int:
        """Judgments settled, over all queries and targets."""
        return sum(map(len, self._settled.values()))

    @property
    def wanted(self) -> int:
        """Judgments that the plan asks for."""
        return sum(len(query.targets) for query in self.plan.queries)

    def _open(self, query: Query) -> tuple[int, ...]:
        settled = self._settled.get(query.id, ())
        return tuple(target for target in query.targets if target not in settled)

    def _is_exhausted(self, query: Query, target: int) -> bool:
        return self._asks[query.id, target] >= self._most_asks

    def _count(self, reply: Reply) -> None:
        if reply.error is None:
            self.replies += 1
        else:
            self.errors += 1
            self.maybe_paid += reply.maybe_paid
        self.usage.update(reply.usage)
        if reply.cost_usd is None:
            self.unpriced += reply.error is None or bool(reply.usage)
        else:
            self.priced += 1
            self.cost_usd += reply.cost_usd
        if reply.model_served:
            self.served[reply.model_served] += 1


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a target has no valid judgment, as of the last request about it."""

    attempt: int
    cut_off: bool
    what: str
    is_the_models: bool


_NEVER_ASKED = _Fault(0, False, "", False)
