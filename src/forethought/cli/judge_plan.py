"""`forethought judge plan`: every query, and what they will cost."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from forethought.cli.errors import UsageError, bad_input

if TYPE_CHECKING:
    from forethought.judging.plan import Plan
    from forethought.judging.prompts import Prompts
    from forethought.judging.pruning import Pruning
    from forethought.tasks import TaskSet

PRUNE_ABOVE = 512
"""Tasks above which not every pair is asked about unless told so."""

CANDIDATES = {"learning_connectivity": 128, "feasibility_evidence": 256}
"""Candidates for a block of targets where not every pair is asked about, by kind of judgment."""

GOAL_SUITE = "What counts as success on a goal is what its text says. Ids are labels only."

KIND_NAMES = {
    "both": ("learning_connectivity", "feasibility_evidence"),
    "connectivity": ("learning_connectivity",),
    "evidence": ("feasibility_evidence",),
}


@dataclass(frozen=True)
class Domain:
    """What is judged, and what the model is told; the texts of the benchmark ship, those of other domains are files.

    Attributes:
        tasks: craftax (the 256 goals), or a task file (JSON, YAML or CSV).
        kind: both, connectivity (what helps what) or evidence (what shows that a task is ready).
        learner: A name for the learner. For craftax, primitive (default) and subroutines have contexts that ship.
        domain: What the domain is called; default: the task file's name.
        environment: Text file on how the domain works; needed for tasks of your own.
        goal_suite: Text file on how the goals are to be read.
        learner_context: Text file on the learner, its training and its rewards; needed for tasks of your own.
        connectivity_template: Jinja template in place of the one that ships.
        evidence_template: Likewise.
    """

    tasks: str = "craftax"
    kind: str = "both"
    learner: str = ""
    domain: str = ""
    environment: str = ""
    goal_suite: str = ""
    learner_context: str = ""
    connectivity_template: str = ""
    evidence_template: str = ""

    def kinds(self) -> tuple[str, ...]:
        """The kinds of judgment asked for."""
        if self.kind not in KIND_NAMES:
            raise UsageError(f"--kind: {self.kind!r} given; allowed are {', '.join(KIND_NAMES)}")
        return KIND_NAMES[self.kind]

    @property
    def learner_name(self) -> str | None:
        """The name of the learner, for provenance."""
        return self.learner or ("primitive" if self.tasks == "craftax" and not self.learner_context else None)

    def load_tasks(self) -> "TaskSet":
        """The task set."""
        from forethought.tasks import TaskSet

        if self.tasks == "craftax":
            from forethought.craftax.shipped import goals

            return goals()
        if not Path(self.tasks).is_file():
            raise UsageError(f"--tasks: {self.tasks!r} is neither craftax nor a file")
        return TaskSet.load(self.tasks)

    def prompts(self, kind: str) -> "Prompts":
        """Template and contexts of a kind of judgment."""
        from forethought.judging.prompts import Prompts, default_template, read_text

        template = {"learning_connectivity": self.connectivity_template, "feasibility_evidence": self.evidence_template}
        texts = {name: read_text(path) if path else None for name, path in self._contexts().items()}
        if self.tasks == "craftax":
            from forethought.craftax import shipped

            # With a context of one's own, the name need not be one that ships.
            default = shipped.prompts(kind, shipped.LEARNERS[0] if texts["learner"] else self.learner_name or "")
            texts = {name: getattr(default, name) if text is None else text for name, text in texts.items()}
        flags = {"environment": "--environment", "learner": "--learner-context"}
        for name, flag in flags.items():
            if not texts[name]:
                raise UsageError(
                    f"{flag}: a text file is needed for tasks of your own; the model knows nothing of them"
                )
        return Prompts(
            kind=kind,
            template=read_text(template[kind]) if template[kind] else default_template(kind),
            environment=texts["environment"] or "",
            goal_suite=texts["goal_suite"] or GOAL_SUITE,
            learner=texts["learner"] or "",
            domain_name=self.domain or ("Craftax" if self.tasks == "craftax" else Path(self.tasks).stem),
        )

    def _contexts(self) -> dict[str, str]:
        return {"environment": self.environment, "goal_suite": self.goal_suite, "learner": self.learner_context}


CRAFTAX = Domain()
"""The benchmark, as the primitive learner meets it."""


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
        source_block: Most sources in one connectivity query; default 64.
        target_block: Most targets in one query; default 16 for connectivity and 8 for evidence.
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
            connectivity = kind == "learning_connectivity"
            plans.append(
                make_plan(
                    tasks,
                    domain.prompts(kind),
                    settings,
                    repetitions=repetitions,
                    source_block=source_block if connectivity else None,
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


def describe(plans: "list[Plan]", models: tuple[str, ...], price: tuple[float, float] | None) -> list[str]:
    """What some plans will take, as lines of text."""
    from forethought.judging.cost import BATCH, THOUGHTS, Price, estimate, price_of
    from forethought.judging.providers import provider_of

    first = plans[0]
    learner = f", learner {first.learner}" if first.learner else ""
    lines = [f"{len(first.tasks):,} tasks{learner}, {len(first.repetitions)} repetitions"]
    for plan in plans:
        need = estimate(plan)
        blocks = " and ".join(f"{size} {role.replace('_', ' ')}" for role, size in plan.block_sizes.items())
        lines.append(
            f"{plan.kind:22}{need.queries:7,} queries of at most {blocks}, "
            f"about {need.input_tokens // need.queries:,} input tokens each"
        )
        lines += [f"{'':22}{text}" for text in _pairs(plan)]
    total = sum((estimate(plan) for plan in plans[1:]), estimate(first))
    lines += [
        f"{'in all':22}{total.queries:7,} queries, {total.input_tokens / 1e6:.2f} M input tokens, "
        f"{total.visible_tokens / 1e6:.2f} M output tokens and thinking on top",
        "",
        f"{'dollars, if a reply takes this many tokens of thinking:':58}"
        + "".join(f"{thoughts:>10,}" for thoughts in THOUGHTS)
        + f"{'as batch':>20}",
    ]
    for number, model in enumerate(models):
        base_url = first.settings.base_url if number == 0 else None
        listed = Price(*price) if price and number == 0 else price_of(model, base_url)
        if listed is None:
            lines.append(f"{model:58}price unknown; give --price, or install forethought[llm] for the price list")
            continue
        costs = [listed.of(total.usage(thoughts)) for thoughts in THOUGHTS]
        named = f"{model} (${listed.input:g} in, ${listed.output:g} out a million)"
        batch = f"{costs[0] * BATCH:.2f} to {costs[-1] * BATCH:.2f}" if provider_of(model, base_url).batches else "none"
        lines.append(f"{named:58}" + "".join(f"{cost:>10.2f}" for cost in costs) + f"{batch:>20}")
    lines.append(
        "Only replies tell how much a model thinks: judge run asks 4 queries, then says what the rest will cost."
    )
    return lines


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
    from forethought.embeddings import Embeddings
    from forethought.judging.pruning import Pruning, text_vectors

    if candidates != "auto" and not candidates.isdigit():
        raise UsageError(f"--candidates: {candidates!r} given; allowed are all, auto and a number")
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
    number = CANDIDATES[kind] if candidates == "auto" else int(candidates)
    return Pruning(min(number, len(tasks)), random_share, vectors, name)
