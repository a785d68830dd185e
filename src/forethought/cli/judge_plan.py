"""`forethought judge plan`: every query, and what they will cost."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input
from forethought.cli.judge_domain import CRAFTAX, Domain

if TYPE_CHECKING:
    from forethought.judging.cost import Estimate
    from forethought.judging.plan import Plan
    from forethought.judging.pruning import Pruning
    from forethought.tasks import TaskSet

PRUNE_ABOVE = 512
"""Tasks above which not every pair is asked about unless told so."""

CANDIDATES = {"learning_connectivity": 128, "feasibility_evidence": 256, "interestingness": 128}
"""Candidates for a block of targets where not every pair is asked about, by kind of judgment."""


def plan(
    directory: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = "",
    domain: Annotated[Domain, tyro.conf.arg(name="")] = CRAFTAX,
    model: str = "google:gemini-3.8-flash",
    compare: tuple[str, ...] = (),
    base_url: str | None = None,
    thinking: str = "high",
    shape: str = "records",
    repetitions: int = 5,
    source_block: int | None = None,
    target_block: int | None = None,
    seed: int = 0,
    candidates: str = "auto",
    random_share: float = 0.25,
    embeddings: str = "",
    price: tuple[float, float] | None = None,
) -> int:
    """Lay out a judging run and say what it will take. Nothing is sent.

    Args:
        directory: Where to keep the plan for `judge run`; without it, the figures are printed only.
        domain: What is judged, and what the model is told.
        model: PROVIDER:NAME. Providers: google, openai, anthropic, openrouter, vllm, ollama, openai-chat and others.
        compare: More models to give figures for.
        base_url: Address of an OpenAI-compatible server (vLLM, Ollama, llama.cpp), for its model.
        thinking: How much the model should think: minimal, low, medium, high, xhigh, or none to leave it to the model.
        shape: Shape of a reply: records (a list) or keyed (an object with one property a target).
        repetitions: Independent repetitions of every judgment.
        source_block: Most sources in one query, except of evidence; default 64.
        target_block: Most targets in one query; default 8 for evidence, otherwise 16.
        seed: Of the shuffles.
        candidates: Sources to offer to a block of targets: all, a number, or auto (all up to 512 tasks).
        random_share: Part of the candidates drawn at random where not all are offered; the rest are nearest neighbours.
        embeddings: File of goal vectors (forethought embed) to find neighbours by; default: shared wording.
        price: Dollars for a million input and output tokens, where the list has none.
    """
    from forethought.judging.plan import Settings, make_plan
    from forethought.judging.providers import provider_of
    from forethought.judging.store import create_run

    with bad_input():
        tasks = domain.load_tasks()
        for name in (model, *compare):
            provider_of(name)
        settings = Settings(model, base_url, None if thinking == "none" else thinking, shape)
        plans = []
        for kind in domain.kinds():
            plans.append(
                make_plan(
                    tasks,
                    domain.prompts(kind),
                    settings,
                    repetitions=repetitions,
                    source_block=None if kind == "feasibility_evidence" else source_block,
                    target_block=target_block,
                    seed=seed,
                    pruning=_pruning(kind, tasks, domain.tasks, candidates, random_share, embeddings),
                    learner=domain.learner_name,
                )
            )
        print("\n".join(describe(plans, (model, *compare), price)))
        if directory:
            for made in plans:
                create_run(Path(directory) / made.kind, made)
            print(f"\nplan in {directory}; nothing was sent; ask with: forethought judge run {directory}")
    return 0


def describe(plans: "Sequence[Plan]", models: Sequence[str], price: tuple[float, float] | None) -> list[str]:
    """What some plans will take, as lines of text."""
    from forethought.judging.cost import estimate

    first = plans[0]
    learner = f", learner {first.learner}" if first.learner else ""
    lines = [f"{len(first.tasks):,} tasks{learner}, {len(first.repetitions)} repetitions"]
    needs = [estimate(plan) for plan in plans]
    for plan, need in zip(plans, needs, strict=True):
        blocks = " and ".join(f"{size} {role.replace('_', ' ')}" for role, size in plan.block_sizes.items())
        lines.append(
            f"{plan.kind:22}{need.queries:7,} queries of at most {blocks}, "
            f"about {need.input_tokens // need.queries:,} input tokens each"
        )
        lines += [f"{'':22}{text}" for text in _pairs(plan)]
    total = sum(needs[1:], needs[0])
    lines += [
        f"{'in all':22}{total.queries:7,} queries, {total.input_tokens / 1e6:.2f} M input tokens, "
        f"{total.visible_tokens / 1e6:.2f} M output tokens and thinking on top",
        "",
        *_costs(total, models, first.settings.base_url, price),
        "Only replies tell how much a model thinks: judge run asks 4 queries, then says what the rest will cost.",
    ]
    return lines


def _costs(
    total: "Estimate", models: Sequence[str], base_url: str | None, price: tuple[float, float] | None
) -> list[str]:
    """A table of costs; `base_url` and `price` are those of the first model."""
    from forethought.judging.cost import BATCH, THOUGHTS, Price, price_of
    from forethought.judging.providers import provider_of

    rows = [("dollars, if a reply takes this many tokens of thinking:", [f"{n:,}" for n in THOUGHTS], "as batch")]
    unknown = []
    for number, model in enumerate(models):
        url = base_url if number == 0 else None
        listed = Price(*price) if price and number == 0 else price_of(model, url)
        if listed is None:
            hint = "give --price" if url else "give --price, or install forethought[llm] for the price list"
            unknown.append(f"{model}: price unknown; {hint}")
            continue
        costs = [listed.of(total.usage(thoughts)) for thoughts in THOUGHTS]
        batch = f"{costs[0] * BATCH:.2f} to {costs[-1] * BATCH:.2f}" if provider_of(model, url).batches else "none"
        name = f"{model} (${listed.input:g} in, ${listed.output:g} out a million)"
        rows.append((name, [f"{cost:.2f}" for cost in costs], batch))
    width = max(len(name) for name, _, _ in rows)
    table = [f"{name:{width}}{''.join(f'{cost:>10}' for cost in costs)}{batch:>20}" for name, costs, batch in rows]
    return (table if len(rows) > 1 else []) + unknown


def _pairs(plan: "Plan") -> list[str]:
    if plan.pruning is None:
        return ["every ordered pair is asked about once a repetition"]
    drawn = round(plan.pruning["random_share"] * plan.pruning["candidates"])
    size = len(plan.tasks)
    return [
        f"pruned: a block of targets is offered {plan.pruning['candidates']} of {size:,} tasks, "
        f"{plan.pruning['candidates'] - drawn} nearest by {plan.pruning['vectors_from']} and {drawn} drawn at random;",
        f"{plan.share_asked:.1%} of the {size * (size - 1):,} ordered pairs are asked about in a repetition, "
        f"{plan.share_ever_asked:.1%} in any; a pair never asked about gets no edge",
    ]


def _pruning(
    kind: str, tasks: "TaskSet", source: str, candidates: str, random_share: float, embeddings: str
) -> "Pruning | None":
    if candidates == "all" or (candidates == "auto" and len(tasks) <= PRUNE_ABOVE):
        return None
    if candidates != "auto" and not candidates.isdigit():
        raise UsageError(f"--candidates: {candidates!r} given; allowed are all, auto and a number")
    number = CANDIDATES[kind] if candidates == "auto" else int(candidates)
    if number >= len(tasks):
        return None
    from forethought.embeddings import Embeddings
    from forethought.judging.pruning import Pruning, text_vectors

    with warnings.catch_warnings():
        # Tasks with nearly the same vector are hard to tell apart for a policy; here they are neighbours, no more.
        warnings.simplefilter("ignore")
        if embeddings:
            found = Embeddings.load(embeddings)
            vectors, name = found.for_tasks(tasks), found.model
        elif source == "craftax":
            from forethought.craftax.shipped import embeddings as shipped

            vectors, name = shipped().for_tasks(tasks), "all-MiniLM-L6-v2"
        else:
            vectors, name = text_vectors(tasks.texts), "shared wording"
    return Pruning(number, random_share, vectors, name)
