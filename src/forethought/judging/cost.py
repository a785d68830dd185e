"""What a run will cost and what a reply did cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from forethought.judging.blocks import Query
from forethought.judging.plan import Plan
from forethought.judging.providers import provider_of
from forethought.judging.state import Request
from forethought.judging.wording import Wording

BYTES_PER_TOKEN = 4
"""UTF-8 bytes of a prompt in one token; within a tenth of two tokenizers' counts for the shipped prompts."""

THOUGHTS = (3_000, 8_000, 20_000)
"""Tokens of thinking in one reply, in three cases: they make up most of the cost, and only a pilot tells."""

VISIBLE = {"learning_connectivity": 90, "feasibility_evidence": 50, "interestingness": 60}
"""Tokens that a reply spends on one target, thinking left out, by kind of judgment: a guess."""

BATCH = 0.5
"""Price of a batch relative to live requests, at every provider with a batch API."""

SAMPLE = 24
"""Prompts that are rendered to estimate the length of all."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self):
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1e6:
                raise ValueError(f"the {name} price is {value}; it must be dollars for a million tokens, at least 0")

    def of(self, usage: Mapping[str, int], *, batch: bool = False) -> float:
        """US dollars for the tokens of a reply: `input`, of them `cached`, and `output`."""
        cached = min(usage.get("cached", 0), usage.get("input", 0))
        fresh = usage.get("input", 0) - cached
        rate = self.input if self.cached is None else self.cached
        total = fresh * self.input + cached * rate + usage.get("output", 0) * self.output
        return total / 1e6 * (BATCH if batch else 1)


@dataclass(frozen=True)
class Estimate:
    """What a plan, or what is left of it, will take.

    Attributes:
        queries: requests.
        input_tokens: tokens of all prompts.
        visible_tokens: tokens of all replies, thinking left out.
    """

    queries: int
    input_tokens: int
    visible_tokens: int

    def usage(self, thoughts: int) -> dict[str, int]:
        """Tokens of everything, with a number of tokens of thinking for each query."""
        return {"input": self.input_tokens, "output": self.visible_tokens + self.queries * thoughts}

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.queries + other.queries,
            self.input_tokens + other.input_tokens,
            self.visible_tokens + other.visible_tokens,
        )


def estimate(plan: Plan, queries: Sequence[Query] | None = None) -> Estimate:
    """The size of a plan's requests, from a sample of rendered prompts.

    Args:
        plan: what would be asked.
        queries: the queries left; None for all.
    """
    left = plan.queries if queries is None else queries
    if not left:
        return Estimate(0, 0, 0)
    provider = provider_of(plan.settings.model, plan.settings.base_url)
    sample = left[:: max(1, len(left) // SAMPLE)]
    sizes = [tokens(Wording(plan, Request(query, 1, query.targets), provider).message().prompt) for query in sample]
    targets = sum(len(query.targets) for query in left)
    return Estimate(len(left), round(sum(sizes) / len(sizes) * len(left)), targets * VISIBLE[plan.kind])


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return max(1, len(text.encode()) // BYTES_PER_TOKEN)


def price_of(model: str, base_url: str | None = None, input_tokens: int = 10_000) -> Price | None:
    """The listed price of a model today; None if it is not known, or the price list is not installed.

    Args:
        model: `PROVIDER:NAME`.
        base_url: address of a server of one's own, which has no listed price.
        input_tokens: size of one request, on which some prices depend.
    """
    provider = provider_of(model, base_url)
    if provider.free:
        return Price(0.0, 0.0)
    if provider.prices is None:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ModuleNotFoundError:
        return None
    found = []
    for usage in (
        Usage(input_tokens=input_tokens, output_tokens=0),
        Usage(input_tokens=input_tokens, output_tokens=1000),
        Usage(input_tokens=input_tokens, cache_read_tokens=input_tokens, output_tokens=0),
    ):
        try:
            price = calc_price(
                usage,
                model.partition(":")[2],
                provider_id=provider.prices,
                genai_request_timestamp=datetime.now(UTC),
            )
        except (LookupError, ValueError):
            return None
        found.append(float(price.total_price))
    fresh, with_output, cached = found
    return Price(
        round(fresh / input_tokens * 1e6, 6),
        round((with_output - fresh) / 1000 * 1e6, 6),
        round(cached / input_tokens * 1e6, 6),
    )
