"""A graph against a finished run: do the predicted edges go with the gains that training brought?"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtrit
from scipy.stats import rankdata

from forethought.experiments.effects import Effects, History, measure_effects
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.rundir import RunDirectory

BLOCKS = 20
"""Blocks of iterations, over all runs, from which intervals are made."""

LEAST_ITERATIONS = 40
"""Iterations that are needed, over all runs."""

EDGE = 0.5
"""Weight from which a pair counts as an edge when the clearest gains are looked up."""

MOST_TASKS = 1500
"""Tasks up to which the effects of all on all fit into the memory of a small machine."""

FLIPS = 400
"""Random signs drawn to find how far chance alone moves the share of edges."""


@dataclass(frozen=True)
class Estimated:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class TransferComparison:
    """How a graph's edges go with measured effects."""

    kind: str
    """The kind of graph."""
    iterations: int
    """Iterations, over all runs."""
    uniform: bool
    """Whether every run drew from one and the same distribution throughout."""
    horizon: int
    """H, iterations in which a gain is looked for."""
    pairs: int
    """Ordered pairs of tasks whose effect could be measured."""
    targets: int
    """Targets among them."""
    rank_correlation: Estimated
    """Spearman's rank correlation of a target's measured effects with its edges' weights, mean over the targets; 0
    where the graph knows nothing of the run."""
    ranked_targets: int
    """Targets with edges of different weights, over which that mean runs."""
    top: int
    """k, how many of the clearest positive effects are looked up in the graph."""
    precision: Estimated
    """Share of these that are edges."""
    base_rate: float
    """Share of edges among all measured pairs: what a graph that knows nothing would reach."""
    lowest_share: float
    """Share of edges among the k clearest effects below the mean, to hold the precision against."""
    clearest: tuple[tuple[str, str, float, float, float], ...]
    """The clearest effects: source, target, gain a selection, score (standard errors), weight in the graph."""


def compare_transfer(
    runs: str | Path | Sequence[str | Path],
    graph: LearningConnectivity | FeasibilityEvidence,
    *,
    horizon: int = 8,
    top: int = 100,
) -> TransferComparison:
    """Measure who helped whom in one or more runs, and hold a graph against it.

    The effects are those of `forethought.experiments.effects`. The correlation's interval comes from leaving out one
    block of iterations after another (delete-a-group jackknife, Student's t; in simulations it covers somewhat more
    often than it promises). The precision jumps too much for that; its interval is as wide as chance makes it, found by
    giving each block's effects a random sign. Uniform runs tell most; in adaptive ones the clearest effects are mostly
    of tasks trained often, so hold the precision against `lowest_share` there.

    Args:
        runs: run directories over the same tasks, finished or not.
        graph: the graph; it must know the runs' tasks.
        horizon: H, iterations after training on a task in which a gain is looked for, at least 1.
        top: k, how many of the clearest gains are looked up in the graph, at least 1.

    Raises:
        ValueError: a number out of range, a directory that is no run, runs over different tasks, too few iterations,
            no target that ever changed, or a graph without one of the tasks.
    """
    for name, value in (("horizon", horizon), ("top", top)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be 1 or more")
    paths = [runs] if isinstance(runs, str | Path) else list(runs)
    if not paths:
        raise ValueError("no run is named; at least one is needed")
    ids, histories = _read(paths)
    if len(ids) > MOST_TASKS:
        raise ValueError(f"{paths[0]} is about {len(ids)} tasks; effects can be measured among up to {MOST_TASKS}")
    iterations = sum(len(history.rate) for history in histories)
    if iterations < LEAST_ITERATIONS:
        raise ValueError(f"{paths[0]}: {iterations} iterations are recorded; at least {LEAST_ITERATIONS} are needed")
    effects = measure_effects(histories, horizon, max(2, round(BLOCKS / len(histories))))
    with warnings.catch_warnings():
        # Evidence that a restriction leaves without sources is no news here.
        warnings.simplefilter("ignore", UserWarning)
        weights = graph.restrict(ids).weights.toarray()
    effect, score = effects.effect(), effects.score()
    usable = np.isfinite(effect) & np.isfinite(score) & effects.measured & ~np.eye(len(ids), dtype=bool)
    if not usable.any():
        raise ValueError(
            f"{paths[0]}: no effect can be measured: no success rate ever changed, or only one task was trained on"
        )
    top = min(top, int(usable.sum()) // 2)
    by_score = np.where(usable, score, -np.inf)
    edges = weights >= EDGE
    order = np.argsort(-by_score, axis=None, kind="stable")[:top]
    ranked = _ranked_targets(weights, usable)
    return TransferComparison(
        kind=graph.kind,
        iterations=iterations,
        uniform=all(np.allclose(h.probability, histories[0].probability[0]) for h in histories),
        horizon=horizon,
        pairs=int(usable.sum()),
        targets=int(usable.any(axis=0).sum()),
        rank_correlation=_correlation(effects, weights, usable, ranked),
        ranked_targets=int(ranked.sum()),
        top=top,
        precision=_precision(effects, edges, usable, top),
        base_rate=float(edges[usable].mean()),
        lowest_share=_share(-score, edges, usable, top),
        clearest=tuple(
            (ids[s], ids[t], float(effect[s, t]), float(score[s, t]), float(weights[s, t]))
            for s, t in zip(*np.unravel_index(order, score.shape), strict=True)
        ),
    )


def comparison_text(found: TransferComparison, most: int = 10) -> str:
    """The comparison as a table, then the clearest gains."""
    sampling = "uniform" if found.uniform else "adaptive: gains weighted by 1/q, hold the precision against the lowest"
    rows = [
        ("iterations", f"{found.iterations:,} ({sampling})"),
        ("pairs measured", f"{found.pairs:,}, of {found.targets} targets; gains within {found.horizon} iterations"),
        (
            "rank correlation with the edges",
            f"{_interval(found.rank_correlation)}, mean of {found.ranked_targets} targets",
        ),
        (f"edges among the {found.top} clearest gains", _interval(found.precision)),
        (f"edges among the {found.top} lowest", f"{found.lowest_share:.3f}"),
        ("edges among all pairs", f"{found.base_rate:.3f}"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{found.kind.replace('_', ' ')} against measured gains", ""]
    lines += [f"  {name.ljust(width)}  {value}" for name, value in rows]
    lines += ["", "clearest gains (success rate a selection, standard errors, weight in the graph)", ""]
    lines += [f"  {e:+.4f}  {z:5.1f}  {w:4.2f}  {s} -> {t}" for s, t, e, z, w in found.clearest[:most]]
    return "\n".join(lines) + "\n"


def _read(paths: Sequence[str | Path]) -> tuple[tuple[str, ...], list[History]]:
    read = [_history(RunDirectory(path)) for path in paths]
    ids = read[0][0]
    for path, (others, _) in zip(paths, read, strict=True):
        if others != ids:
            raise ValueError(f"{path} is about other tasks than {paths[0]}; runs over the same tasks are needed")
    return ids, [history for _, history in read]


def _history(run: RunDirectory) -> tuple[tuple[str, ...], History]:
    table = run.curriculum().sort("iteration", maintain_order=True)
    if not len(table):
        raise ValueError(f"{run.path} has no records of its curriculum yet")
    ids = tuple(table["task"].unique(maintain_order=True).to_list())
    shape = (-1, len(ids))

    def column(name: str) -> Float[np.ndarray, "iteration task"]:
        return table[name].to_numpy().astype(np.float64).reshape(shape)

    selections, q, share = column("selections"), column("probability"), column("effective_share")
    total = selections.sum(axis=1, keepdims=True)
    # The share is (fixed + (k - fixed) q) / k: its least ratio to q is that of a task without fixed selections.
    ratio = np.divide(share, q, out=np.full_like(q, np.inf), where=q > 0)
    drawn = np.round(total * np.minimum(ratio.min(axis=1, keepdims=True), 1.0))
    fixed = np.round(share * total - drawn * q)
    episodes = column("episodes")
    rate = np.divide(column("successes"), episodes, out=np.full_like(episodes, np.nan), where=episodes > 0)
    return ids, History(selections - fixed, q, fixed, rate, column("success_rate"))


def _correlation(
    effects: Effects,
    weights: Float[np.ndarray, "source target"],
    usable: Bool[np.ndarray, "source target"],
    ranked: Bool[np.ndarray, " target"],
) -> Estimated:
    if not ranked.any():
        return Estimated(float("nan"), float("nan"), float("nan"))
    targets = [(t, usable[:, t], _standard(rankdata(weights[usable[:, t], t]))) for t in np.flatnonzero(ranked)]

    def mean(without: int | None) -> float:
        effect = effects.effect(without)
        found = [_standard(rankdata(np.nan_to_num(effect[rows, t]))) @ weight for t, rows, weight in targets]
        return float(np.mean(found))

    return _jackknife(mean, len(effects.products))


def _jackknife(statistic: Callable[[int | None], float], blocks: int) -> Estimated:
    value = statistic(None)
    each = np.array([statistic(block) for block in range(blocks)])
    error = float(np.sqrt((blocks - 1) / blocks * ((each - each.mean()) ** 2).sum()))
    reach = float(stdtrit(blocks - 1, 0.975)) * error
    return Estimated(value, value - reach, value + reach)


def _precision(
    effects: Effects, edges: Bool[np.ndarray, "source target"], usable: Bool[np.ndarray, "source target"], top: int
) -> Estimated:
    rng = np.random.default_rng(0)
    blocks = len(effects.products)
    parts, noise = effects.products[:, usable], np.sqrt(effects.noise.sum(axis=0)[usable])
    hits = edges[usable]

    def share(signs: Float[np.ndarray, " block"]) -> float:
        scores = (signs @ parts) / noise
        return float(hits[np.argpartition(-scores, top - 1)[:top]].mean())

    value = share(np.ones(blocks))
    chance = np.array([share(rng.choice([-1.0, 1.0], blocks)) for _ in range(FLIPS)])
    reach = float(stdtrit(blocks - 1, 0.975)) * float(chance.std())
    return Estimated(value, max(value - reach, 0.0), min(value + reach, 1.0))


def _share(
    score: Float[np.ndarray, "source target"],
    edges: Bool[np.ndarray, "source target"],
    usable: Bool[np.ndarray, "source target"],
    top: int,
) -> float:
    best = np.argsort(-score[usable], kind="stable")[:top]
    return float(edges[usable][best].mean())


def _ranked_targets(
    weights: Float[np.ndarray, "source target"], usable: Bool[np.ndarray, "source target"]
) -> Bool[np.ndarray, " target"]:
    """Targets whose edges differ in weight, so that they can be ranked."""
    highest, lowest = (np.where(usable, weights, fill) for fill in (-np.inf, np.inf))
    return usable.any(axis=0) & (highest.max(axis=0) > lowest.min(axis=0))


def _standard(ranks: Float[np.ndarray, " source"]) -> Float[np.ndarray, " source"]:
    """Ranks about their mean, at length 1; zeros if they are all the same."""
    centred = ranks - ranks.mean()
    length = np.linalg.norm(centred)
    return centred / length if length > 0 else centred


def _interval(number: Estimated) -> str:
    return f"{number.value:.3f} [{number.low:.3f}, {number.high:.3f}]"
