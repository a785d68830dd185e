"""How far the repetitions of a judgment agree, chance taken out.

A repetition that was asked about a pair of tasks voted yes (the edge is there) or no. Over all pairs u with n_u >= 2
votes, k_u of them yes, and with n_1 yes votes and n_0 no votes in sum, n = n_0 + n_1:

    o        = sum of k_u (n_u - k_u) / (n_u - 1)                 disagreeing votes
    agreement          = 1 - 2 o / n                              of two repetitions, on a pair
    positive agreement = 1 - o / n_1                              given that one of them says yes
    alpha              = 1 - (n - 1) o / (n_0 n_1)                Krippendorff's alpha for two categories

Alpha is 1 for full agreement and 0 for what chance gives with the same shares of yes and no; it allows pairs with
different numbers of votes, and with many pairs equals Fleiss' kappa (K. Krippendorff, Content Analysis, 4th ed.,
2018, ch. 12; J. L. Fleiss, Psychological Bulletin 76, 1971). Few edges exist among many pairs, so plain agreement is
high whatever the model does: read alpha, and beside it positive agreement (D. V. Cicchetti and A. R. Feinstein,
Journal of Clinical Epidemiology 43, 1990).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from forethought.graphs import FeasibilityEvidence, LearningConnectivity, votes_of


@dataclass(frozen=True)
class Agreement:
    """Agreement of the repetitions about one kind of edge; None where it is not defined."""

    pairs: int
    """Pairs with at least two votes."""
    edges_per_repetition: tuple[int, ...]
    """Yes votes of each repetition."""
    observed: float | None
    """Probability that two repetitions agree on a pair."""
    positive: float | None
    """Probability that another repetition has an edge that one has."""
    alpha: float | None
    """Krippendorff's alpha, at most 1; None if all votes are the same."""
    kappa: Float[np.ndarray, "repetition repetition"] | None
    """Cohen's kappa of every two repetitions, NaN where it is undefined; None if they were not all asked the same."""


def agreements(graph: LearningConnectivity | FeasibilityEvidence) -> dict[str, Agreement]:
    """Agreement by kind of edge: "connectivity", or "evidence" and "from scratch".

    Empty for a graph without selections or with one repetition.
    """
    if graph.selections is None or len(graph.selections) < 2:
        return {}
    if isinstance(graph, LearningConnectivity):
        return {"connectivity": _of_pairs(graph.selections, len(graph.ids), graph.asked)}
    judged = np.array([[chosen is not None for chosen in repetition] for repetition in graph.selections])
    asked = graph.asked
    if not judged.all():
        counts = _judged_pairs(judged)
        asked = counts if asked is None else sparse.csr_array(asked.minimum(counts))
    return {
        "evidence": _of_pairs(graph.selections, len(graph.ids), asked),
        "from scratch": _of_tasks(graph.selections, judged),
    }


def agreement(
    yes: Int[np.ndarray, " group"],
    asked: Int[np.ndarray, " group"],
    count: Int[np.ndarray, " group"],
    edges_per_repetition: Sequence[int] = (),
    kappa: Float[np.ndarray, "repetition repetition"] | None = None,
) -> Agreement:
    """Agreement from a table of votes: `count` pairs were asked `asked` times and got `yes` yes votes.

    Two pairs with three votes each, 3 and 1 of them yes:

    >>> one = agreement(np.array([3, 1]), np.array([3, 3]), np.array([1, 1]))
    >>> round(one.observed, 3), round(one.positive, 3), round(one.alpha, 3)
    (0.667, 0.75, 0.375)
    """
    used = asked >= 2
    yes, asked, count = (array[used].astype(np.float64) for array in (yes, asked, count))
    split = float((count * yes * (asked - yes) / (asked - 1)).sum())
    ones, total = float((count * yes).sum()), float((count * asked).sum())
    zeros = total - ones
    return Agreement(
        pairs=int(count.sum()),
        edges_per_repetition=tuple(edges_per_repetition),
        observed=1 - 2 * split / total if total else None,
        positive=1 - split / ones if ones else None,
        alpha=1 - (total - 1) * split / (zeros * ones) if zeros and ones else None,
        kappa=kappa,
    )


def cohens_kappa(
    both: Float[np.ndarray, "..."],
    first: Float[np.ndarray, "..."],
    second: Float[np.ndarray, "..."],
    pairs: float,
) -> Float[np.ndarray, "..."]:
    """Cohen's kappa of two judges from how many of `pairs` both, the first and the second say yes to.

    kappa = (p_o - p_e) / (1 - p_e) with observed agreement p_o and that expected by chance p_e (J. Cohen, Educational
    and Psychological Measurement 20, 1960); NaN where p_e is 1.

    >>> round(float(cohens_kappa(np.array(20.0), np.array(25.0), np.array(30.0), 50.0)), 3)
    0.4
    """
    p, q = first / pairs, second / pairs
    expected = p * q + (1 - p) * (1 - q)
    observed = 1 - p - q + 2 * both / pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def _of_pairs(selections: Sequence, size: int, asked: sparse.csr_array | None) -> Agreement:
    """Agreement about the ordered pairs of two different tasks."""
    votes = votes_of(selections, size).tocoo()
    kept = votes.row != votes.col
    yes = votes.data[kept].astype(np.int64)
    repetitions, pairs = len(selections), size * (size - 1)
    sizes = [sum(len(chosen or ()) for chosen in repetition) for repetition in selections]
    if asked is None:
        times = np.full(yes.size, repetitions)
        silent = {repetitions: pairs - yes.size}
        kappa = _pairwise(selections, size, pairs)
    else:
        times = np.asarray(asked[votes.row[kept], votes.col[kept]]).ravel().astype(np.int64)
        every = asked.tocoo()
        numbers, counts = np.unique(every.data[every.row != every.col], return_counts=True)
        voted = dict(zip(*np.unique(times, return_counts=True), strict=True))
        silent = {int(n): int(c) - int(voted.get(n, 0)) for n, c in zip(numbers, counts, strict=True)}
        kappa = None
    return agreement(
        np.append(yes, np.zeros(len(silent), np.int64)),
        np.append(times, np.array(list(silent), np.int64)),
        np.append(np.ones(yes.size, np.int64), np.array(list(silent.values()), np.int64)),
        sizes,
        kappa,
    )


def _pairwise(selections: Sequence, size: int, pairs: int) -> Float[np.ndarray, "repetition repetition"]:
    each = [votes_of([repetition], size) for repetition in selections]
    sizes = np.array([votes.nnz for votes in each], np.float64)
    both = np.array([[a.multiply(b).sum() for b in each] for a in each], np.float64)
    return cohens_kappa(both, sizes[:, None], sizes[None, :], float(pairs))


def _of_tasks(selections: Sequence, judged: np.ndarray) -> Agreement:
    """Agreement about which tasks are feasible from scratch."""
    scratch = np.array([[chosen == () for chosen in repetition] for repetition in selections])
    sizes = scratch.sum(axis=1)
    kappa = None
    if judged.all():
        votes = scratch.astype(np.float64)
        kappa = cohens_kappa(votes @ votes.T, votes.sum(1)[:, None], votes.sum(1)[None, :], float(votes.shape[1]))
    ones = np.ones(scratch.shape[1], np.int64)
    return agreement(scratch.sum(axis=0), judged.sum(axis=0), ones, [int(s) for s in sizes], kappa)


def _judged_pairs(judged: np.ndarray) -> sparse.csr_array:
    """How often each pair [source target] was judged, where some repetitions left out some targets."""
    size = judged.shape[1]
    counts = np.tile(judged.sum(axis=0), (size, 1))
    np.fill_diagonal(counts, 0)
    return sparse.csr_array(counts)
