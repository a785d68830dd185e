"""From a run's valid replies to its graph; nothing that a model has not said is filled in (paper, Eqs. 4 and 5)."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse

from forethought import __version__
from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity, Provenance
from forethought.judging.plan import Plan
from forethought.judging.state import Judgment, State
from forethought.judging.store import Run

PAIRS: dict[str, type[LearningConnectivity] | type[Interestingness]] = {
    graph.kind: graph for graph in (LearningConnectivity, Interestingness)
}
"""The graphs whose judgments are about pairs, by kind."""

Selections = list[list[tuple[int, ...] | None]]
"""Per repetition and target, what was selected; None for a target without a judgment."""


def build_graph(run: Run, partial: bool = False) -> LearningConnectivity | FeasibilityEvidence | Interestingness:
    """The graph of a run.

    An edge of learning connectivity, or of interestingness, weighs the yes votes over the repetitions that asked about
    its pair. The evidence of a task is averaged over the repetitions that judged it.

    Args:
        run: the run, of any kind.
        partial: whether judgments may be missing. Then a pair about which no repetition was answered has no edge.

    Raises:
        ValueError: judgments are missing and `partial` is false, or there is none at all, or none about a task whose
            evidence is needed.
    """
    state, judgments = State(run.plan), []
    for reply in run.replies():
        judgment, _ = state.take(reply)
        if judgment.selections:
            judgments.append(judgment)
    missing = sum(map(len, state.missing().values()))
    if not judgments:
        raise ValueError(f"{run.path} has no valid judgment yet; there is no graph to build")
    if missing and not partial:
        raise ValueError(
            f"{run.path} lacks {missing} of {state.wanted} judgments, {_first_missing(run.plan, state)}; "
            "run it again to ask for them, or build a partial graph"
        )
    plan = run.plan
    selections, provenance = _selections(plan, judgments), _provenance(plan, state, judgments, missing)
    if plan.kind in PAIRS:
        chosen = [[sources or () for sources in repetition] for repetition in selections]
        asked = _asked(plan, judgments) if missing or plan.pruning else None
        return PAIRS[plan.kind].from_selections(plan.tasks.ids, chosen, provenance, asked)
    judged = np.array([[chosen is not None for chosen in repetition] for repetition in selections]).any(axis=0)
    if not judged.all():
        without = plan.tasks.ids[int(np.flatnonzero(~judged)[0])]
        raise ValueError(f"{run.path} has no judgment of {without!r} at all; its evidence cannot be left open")
    asked = _asked(plan, judgments) if plan.pruning else None
    return FeasibilityEvidence.from_selections(plan.tasks.ids, selections, provenance, asked)


def _selections(plan: Plan, judgments: Iterable[Judgment]) -> Selections:
    """What every repetition selected; of pairs, a target is judged by one query for each block of sources."""
    selections: Selections = [[None] * len(plan.tasks) for _ in plan.repetitions]
    for judgment in judgments:
        repetition = selections[judgment.repetition]
        for target, chosen in judgment.selections.items():
            repetition[target] = (repetition[target] or ()) + chosen
    return selections


def _asked(plan: Plan, judgments: Iterable[Judgment]) -> sparse.coo_array:
    """How many repetitions have an answer about each pair [source target]."""
    rows, columns = [], []
    for judgment in judgments:
        targets = np.array(list(judgment.selections), dtype=np.int64)
        sources = np.array(judgment.sources_listed, dtype=np.int64)
        source, target = np.repeat(sources, targets.size), np.tile(targets, sources.size)
        rows.append(source[source != target])
        columns.append(target[source != target])
    size = len(plan.tasks)
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.coo_array((np.ones(places[0].size, np.int64), places), shape=(size, size))


def _provenance(plan: Plan, state: State, judgments: Sequence[Judgment], missing: int) -> Provenance:
    served = Counter(judgment.model_served for judgment in judgments if judgment.model_served)
    days = sorted({judgment.received[:10] for judgment in judgments if judgment.received})
    return Provenance(
        model_asked=plan.settings.model,
        model_served=_served(served),
        prompt_hash=plan.prompts.digest,
        repetitions=len(plan.repetitions),
        block_sizes=plan.block_sizes,
        date=" to ".join(dict.fromkeys((days[0], days[-1]))) if days else None,
        token_usage=dict(sorted(state.usage.items())) or None,
        learner=plan.learner,
        notes=(*plan.notes, *_notes(plan, state, missing)),
    )


def _served(served: Counter[str]) -> str | None:
    """The model that answered; with the number of its replies where there were several."""
    if len(served) < 2:
        return next(iter(served), None)
    return ", ".join(f"{model} ({count} replies)" for model, count in served.most_common())


def _notes(plan: Plan, state: State, missing: int) -> list[str]:
    notes = [
        f"Plan {plan.digest}; learner context {hashlib.sha256(plan.prompts.learner.encode()).hexdigest()} (SHA-256).",
        f"Thinking {plan.settings.thinking or 'as the model chooses'}; shuffles of "
        f"{'unknown seed' if plan.seed is None else f'seed {plan.seed}'}; built by forethought {__version__}.",
    ]
    cost = f", ${state.cost_usd:.2f}" if state.cost_usd else ""
    unpriced = f", {state.unpriced} of unknown price" if state.unpriced and state.cost_usd else ""
    again = f"; {state.bad} judgments were not valid and asked again" if state.bad else ""
    notes.append(f"{state.replies} replies{cost}{unpriced}{again}.")
    if plan.pruning:
        chosen = ", ".join(f"{name} {value}" for name, value in plan.pruning.items())
        notes.append(f"A repetition asked about {plan.share_asked:.1%} of the pairs, on average ({chosen}).")
    if missing:
        notes.append(f"Partial: {missing} of {state.wanted} judgments are missing.")
    return notes


def _first_missing(plan: Plan, state: State) -> str:
    query, targets = next(iter(state.missing().items()))
    return f"the first that of {plan.tasks.ids[targets[0]]!r} in query {query}"
