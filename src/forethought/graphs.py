"""The graphs that a language model's judgments become: what helps what, what shows that a task is ready, what bores."""

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from forethought.files import replacing
from forethought.tasks import TaskSet, unknown_id

G = TypeVar("G", bound="_Graph")
P = TypeVar("P", bound="_Pairs")


@dataclass(frozen=True)
class Provenance:
    """Where a graph's judgments come from."""

    model_asked: str | None = None
    """Model named in the request."""
    model_served: str | None = None
    """Model that the provider says has answered."""
    prompt_hash: str | None = None
    """SHA-256 of the prompt templates and contexts."""
    repetitions: int | None = None
    """R, the independent repetitions of every judgment."""
    block_sizes: dict[str, int] | None = None
    """Goals shown in one query, by role."""
    date: str | None = None
    """When the judgments were made."""
    token_usage: dict[str, int] | None = None
    """Tokens used, by kind; None if it was not recorded."""
    learner: str | None = None
    """The learner that the judgments are about."""
    notes: tuple[str, ...] = ()
    """What a reader of the graph should know."""


class _Graph:
    """What both kinds of graph share: ids, sparse weights, stored selections, provenance, and their file."""

    kind: ClassVar[str]
    ids: tuple[str, ...]
    weights: sparse.csr_array
    selections: Any
    asked: sparse.csr_array | None
    provenance: Provenance

    @classmethod
    def load(cls: type[G], path: str | Path) -> G:
        """Read and check a graph file.

        Raises:
            ValueError: the file is not a graph of this kind, or the first thing that is wrong in it.
        """
        document = _read(path)
        if document.get("kind") != cls.kind:
            raise ValueError(f"{path}: holds a graph of kind {document.get('kind')!r}; {cls.kind!r} is needed")
        graph, problems = cls._parse(document)
        if problems or graph is None:
            raise ValueError(f"{path}: {problems[0]}")
        return graph

    def save(self, path: str | Path) -> None:
        """Write the canonical JSON file: same graph, same bytes; an old file is replaced only by a whole new one."""
        document = {"kind": self.kind, "version": 1, "provenance": asdict(self.provenance), "ids": self.ids}
        if self.asked is not None:
            document["asked"] = _edges(self.asked, "count")
        document |= self._content()
        lines = (f"{json.dumps(key)}: {json.dumps(v, ensure_ascii=False)}" for key, v in document.items())
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def align(self: G, tasks: TaskSet) -> G:
        """The graph in the order of a task set that has the same ids.

        Raises:
            ValueError: the ids differ; `restrict` gives the graph of a subset.
        """
        if tasks.ids == self.ids:
            return self
        missing = [id for id in tasks.ids if id not in set(self.ids)]
        if missing:
            raise ValueError(f"the {self.kind} graph has no task {_some(missing)}; it is about other tasks")
        extra = [id for id in self.ids if id not in tasks]
        if extra:
            raise ValueError(
                f"the {self.kind} graph has tasks that the task set lacks: {_some(extra)}; use graph.restrict(tasks)"
            )
        return self.restrict(tasks)

    def restrict(self: G, tasks: TaskSet | Iterable[str]) -> G:
        """The graph of a subset of its tasks, in the order given."""
        ids = tuple(tasks.ids if isinstance(tasks, TaskSet) else tasks)
        position = {id: i for i, id in enumerate(self.ids)}
        for id in ids:
            if id not in position:
                raise ValueError(f"the {self.kind} graph does not know this task: {unknown_id(id, self.ids)}")
        if len(set(ids)) < len(ids):
            raise ValueError(f"the subset of the {self.kind} graph names a task more than once")
        return self._take(ids, np.array([position[id] for id in ids], dtype=np.int64))

    def _asked_among(self, kept: Int[np.ndarray, " task"]) -> sparse.csr_array | None:
        return None if self.asked is None else _counts(self.asked[kept][:, kept].tocoo())

    def _content(self) -> dict[str, Any]:
        raise NotImplementedError

    def _take(self: G, ids: tuple[str, ...], kept: Int[np.ndarray, " task"]) -> G:
        raise NotImplementedError

    @classmethod
    def _parse(cls: type[G], document: dict[str, Any]) -> tuple[G | None, list[str]]:
        raise NotImplementedError


class _Pairs(_Graph):
    """What the graphs share whose judgments select sources for each target, each weighing its share of votes."""

    def __init__(
        self,
        ids: Sequence[str],
        weights: Any,
        selections: Any = None,
        provenance: Provenance | None = None,
        asked: sparse.csr_array | None = None,
    ):
        self.ids = tuple(ids)
        self.weights = _csr(weights)
        self.selections = selections
        self.asked = asked
        self.provenance = provenance or Provenance()
        _raise_first(_weight_problems(self.kind, self.ids, self.weights))

    @classmethod
    def from_weights(cls: type[P], ids: Sequence[str], weights: Any, provenance: Provenance | None = None) -> P:
        """A graph from a dense or sparse matrix [source target] of weights in [0, 1] with a zero diagonal."""
        return cls(ids, weights, None, provenance)

    @classmethod
    def from_selections(
        cls: type[P],
        ids: Sequence[str],
        selections: Sequence[Sequence[Sequence[int]]],
        provenance: Provenance | None = None,
        asked: Any = None,
    ) -> P:
        """A graph from judgments: an edge's weight is the share of repetitions that include it (paper, Eq. 4).

        Args:
            ids: the tasks.
            selections: `selections[r][t]` holds the positions of the sources selected for target t in repetition r.
            provenance: where the judgments come from.
            asked: matrix [source target] of how many repetitions asked about each pair, if not all did; the weight is
                then the share of those that did.

        >>> graph = LearningConnectivity.from_selections(["a", "b"], [[[], [0]], [[1], [0]]])
        >>> graph.weights.toarray().tolist()
        [[0.0, 1.0], [0.5, 0.0]]
        """
        kept = tuple(tuple(tuple(sorted(map(int, chosen))) for chosen in repetition) for repetition in selections)
        asked = None if asked is None else _counts(sparse.coo_array(asked))
        _raise_first(_selection_problems(cls.kind, tuple(ids), kept) or _asked_problems(tuple(ids), asked, kept))
        return cls(ids, _votes_as_shares(len(ids), kept, asked), kept, provenance, asked)

    def _content(self) -> dict[str, Any]:
        return {"selections": self.selections, "weights": _edges(self.weights)}

    def _take(self: P, ids: tuple[str, ...], kept: Int[np.ndarray, " task"]) -> P:
        selections = None
        if self.selections is not None:
            new = _new_positions(len(self.ids), kept)
            selections = tuple(
                tuple(tuple(sorted(new[s] for s in repetition[t] if s in new)) for t in kept)
                for repetition in self.selections
            )
        weights = self.weights[kept][:, kept]
        return type(self)(ids, weights, selections, self.provenance, self._asked_among(kept))

    @classmethod
    def _parse(cls: type[P], document: dict[str, Any]) -> tuple[P | None, list[str]]:
        ids, weights, provenance, problems = _parse_common(cls.kind, document)
        if problems:
            return None, problems
        selections = _tuples(document.get("selections"))
        asked, problems = _parse_asked(document, len(ids))
        if selections is not None and not problems:
            problems = _selection_problems(cls.kind, ids, selections) or _asked_problems(ids, asked, selections)
            if not problems and not _same(_votes_as_shares(len(ids), selections, asked), weights):
                problems = ["the weights do not follow from the stored selections (Eq. 4)"]
        return (None, problems) if problems else (cls(ids, weights, selections, provenance, asked), [])


class LearningConnectivity(_Pairs):
    """C: how likely useful learning on one task benefits another (paper, Section 4.1).

    Attributes:
        ids: the tasks, in the order of the rows and columns.
        weights: CSR, float64 [source target] in [0, 1], no self edges.
        selections: per repetition and target, the sources that were selected (positions in `ids`); None if the
            weights were given directly.
        asked: CSR, int64 [source target], in how many repetitions a model was asked about the pair; None if it was
            asked about every pair in each.
        provenance: where the judgments come from.
    """

    kind = "learning_connectivity"


class Interestingness(_Pairs):
    """Which tasks stop being interesting once another is mastered (Zhang et al. 2023, the model of interestingness).

    Attributes:
        ids: the tasks, in the order of the rows and columns.
        weights: CSR, float64 [mastered task] in [0, 1], how surely mastering the one makes the other boring; pairs
            that are not stored leave it interesting.
        selections: per repetition and task, the tasks whose mastery was judged to make it boring (positions in `ids`);
            None if the weights were given directly.
        asked: as in `LearningConnectivity`.
        provenance: where the judgments come from.
    """

    kind = "interestingness"

    @classmethod
    def from_judgments(
        cls, ids: Sequence[str], interesting: Any, provenance: Provenance | None = None
    ) -> "Interestingness":
        """A graph from a matrix [mastered task] of answers to "is the task still interesting?".

        Args:
            ids: the tasks.
            interesting: truth values, or shares of several answers in [0, 1]; the diagonal is not used.
            provenance: where the judgments come from.

        Raises:
            ValueError: the matrix is not square over the ids, or an answer is not in [0, 1].

        >>> Interestingness.from_judgments(["a", "b"], [[True, False], [True, True]]).weights.toarray().tolist()
        [[0.0, 1.0], [0.0, 0.0]]
        """
        boring = 1.0 - np.asarray(interesting, np.float64)
        if boring.shape == (len(ids), len(ids)):
            np.fill_diagonal(boring, 0.0)
        return cls(ids, boring, None, provenance)


class FeasibilityEvidence(_Graph):
    """E: competence on which tasks shows that a task is ready for direct training (paper, Section 4.2).

    Attributes:
        ids: the tasks, in the order of the rows and columns.
        weights: CSR, float64 [source task] in [0, 1], no self edges.
        from_scratch: float64 [task], the weight of the auxiliary source; with it every column sums to 1.
        selections: per repetition and task the selected sources (positions in `ids`), () for feasible from
            scratch, None for a judgment of which a restriction has left nothing; None altogether if the weights
            were given directly.
        asked: CSR, int64 [source task], in how many repetitions each pair was on offer; None if every pair always was.
        provenance: where the judgments come from.
    """

    kind = "feasibility_evidence"

    def __init__(
        self,
        ids: Sequence[str],
        weights: Any,
        from_scratch: Any,
        selections: Any = None,
        provenance: Provenance | None = None,
        asked: sparse.csr_array | None = None,
        *,
        restricted: bool = False,
    ):
        self.ids = tuple(ids)
        self.weights = _csr(weights)
        self.from_scratch: Float[np.ndarray, " task"] = np.array(from_scratch, dtype=np.float64)
        self.selections = selections
        self.asked = asked
        self.provenance = provenance or Provenance()
        self.restricted = restricted
        _raise_first(
            _weight_problems(self.kind, self.ids, self.weights)
            or _column_problems(self.ids, self.weights, self.from_scratch, restricted)
        )

    @classmethod
    def from_weights(
        cls, ids: Sequence[str], weights: Any, from_scratch: Any, provenance: Provenance | None = None
    ) -> "FeasibilityEvidence":
        """A graph from a matrix [source task] and a vector [task] of from-scratch weights; columns sum to 1."""
        return cls(ids, weights, from_scratch, None, provenance)

    @classmethod
    def from_selections(
        cls,
        ids: Sequence[str],
        selections: Sequence[Sequence[Sequence[int] | None]],
        provenance: Provenance | None = None,
        asked: Any = None,
    ) -> "FeasibilityEvidence":
        """A graph from judgments; each repetition spreads weight 1 over what it selected (paper, Eqs. 5 and 6).

        Args:
            ids: the tasks.
            selections: `selections[r][m]` holds the positions of the sources selected for task m in repetition r;
                empty means feasible from scratch.
            provenance: where the judgments come from.
            asked: matrix [source task] of how many repetitions had each pair on offer, if not all did; it does not
                change the weights.

        >>> graph = FeasibilityEvidence.from_selections(["a", "b", "c"], [[[], [0], [0, 1]], [[], [], [1]]])
        >>> graph.weights.toarray().tolist(), graph.from_scratch.tolist()
        ([[0.0, 0.5, 0.25], [0.0, 0.0, 0.75], [0.0, 0.0, 0.0]], [1.0, 0.5, 0.0])
        """
        kept = tuple(
            tuple(None if chosen is None else tuple(sorted(map(int, chosen))) for chosen in repetition)
            for repetition in selections
        )
        asked = None if asked is None else _counts(sparse.coo_array(asked))
        _raise_first(_selection_problems(cls.kind, tuple(ids), kept) or _asked_problems(tuple(ids), asked, kept))
        return cls(ids, *_evidence(len(ids), kept), kept, provenance, asked)

    @property
    def without_evidence(self) -> tuple[str, ...]:
        """Tasks of which a restriction has left no evidence; their feasibility is 0 (restricted graphs only)."""
        return tuple(id for id, total in zip(self.ids, _column_sums(self), strict=True) if total == 0)

    def restrict(self, tasks: TaskSet | Iterable[str]) -> "FeasibilityEvidence":
        """The graph of a subset: Eq. 5 again over the selections cut to it, without the repetitions left empty.

        Warns with the names of tasks that have no evidence left.
        """
        graph = super().restrict(tasks)
        if graph.without_evidence:
            warnings.warn(
                f"no evidence is left in the restricted graph for {_some(graph.without_evidence)}; "
                "their feasibility is 0",
                stacklevel=2,
            )
        return graph

    def _content(self) -> dict[str, Any]:
        return {
            "restricted": self.restricted,
            "selections": self.selections,
            "from_scratch": self.from_scratch.tolist(),
            "weights": _edges(self.weights),
        }

    def _take(self, ids: tuple[str, ...], kept: Int[np.ndarray, " task"]) -> "FeasibilityEvidence":
        restricted = self.restricted or len(ids) < len(self.ids)
        if self.selections is None:
            weights, scratch = self.weights[kept][:, kept], self.from_scratch[kept]
            totals = np.asarray(weights.sum(axis=0)).ravel() + scratch
            scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
            if restricted:
                weights, scratch = _csr(weights @ sparse.diags_array(scale)), scratch * scale
            return type(self)(ids, weights, scratch, None, self.provenance, restricted=restricted)
        new = _new_positions(len(self.ids), kept)

        def cut(chosen: tuple[int, ...] | None) -> tuple[int, ...] | None:
            left = tuple(sorted(new[s] for s in chosen or () if s in new))
            return left if left or chosen == () else None

        selections = tuple(tuple(cut(repetition[m]) for m in kept) for repetition in self.selections)
        weights, scratch = _evidence(len(ids), selections)
        asked = self._asked_among(kept)
        return type(self)(ids, weights, scratch, selections, self.provenance, asked, restricted=restricted)

    @classmethod
    def _parse(cls, document: dict[str, Any]) -> "tuple[FeasibilityEvidence | None, list[str]]":
        ids, weights, provenance, problems = _parse_common(cls.kind, document)
        if problems:
            return None, problems
        try:
            scratch = np.array(document["from_scratch"], dtype=np.float64)
        except (KeyError, TypeError, ValueError):
            return None, ["the field from_scratch is missing or not a list of numbers"]
        restricted = bool(document.get("restricted", False))
        selections = _tuples(document.get("selections"))
        asked, problems = _parse_asked(document, len(ids))
        problems = problems or _column_problems(ids, weights, scratch, restricted)
        if selections is not None and not problems:
            problems = _selection_problems(cls.kind, ids, selections) or _asked_problems(ids, asked, selections)
            if not problems:
                expected, from_scratch = _evidence(len(ids), selections)
                if not _same(expected, weights) or not np.allclose(from_scratch, scratch, atol=1e-9):
                    problems = ["the weights do not follow from the stored selections (Eq. 5)"]
        if problems:
            return None, problems
        return cls(ids, weights, scratch, selections, provenance, asked, restricted=restricted), []


GRAPHS: dict[str, type[LearningConnectivity] | type[FeasibilityEvidence]] = {
    graph.kind: graph for graph in (LearningConnectivity, FeasibilityEvidence)
}
"""The kinds of graph of the paper, by the name that stands in their files."""


def load_graph(path: str | Path) -> LearningConnectivity | FeasibilityEvidence:
    """Read a graph file of either kind of the paper."""
    document = _read(path)
    if document.get("kind") not in GRAPHS:
        raise ValueError(f"{path}: holds a graph of kind {document.get('kind')!r}; {' or '.join(GRAPHS)} is needed")
    return GRAPHS[document["kind"]].load(path)


def check_graph(path: str | Path) -> list[str]:
    """Everything that is wrong with a graph file of any kind, one line each; empty if it is sound."""
    kinds = GRAPHS | {Interestingness.kind: Interestingness}
    try:
        document = _read(path)
    except ValueError as error:
        return [str(error)]
    if document.get("kind") not in kinds:
        return [f"{path}: holds a graph of kind {document.get('kind')!r}; {' or '.join(kinds)} is needed"]
    return [f"{path}: {problem}" for problem in kinds[document["kind"]]._parse(document)[1]]


def strongest(weights: Float[np.ndarray, " task"], ids: Sequence[str], k: int = 10) -> list[tuple[str, float]]:
    """The ids of the k largest positive weights, largest first, ties in the order of the ids given."""
    order = np.argsort(-weights, kind="stable")[:k]
    return [(str(ids[i]), float(weights[i])) for i in order if weights[i] > 0]


def describe_task(
    connectivity: LearningConnectivity, evidence: FeasibilityEvidence, task: str, k: int = 10
) -> dict[str, list[tuple[str, float]]]:
    """What the graphs say of one task: its strongest `sources`, `targets` and `evidence`, with their weights.

    The evidence "from scratch" stands for the auxiliary source.
    """
    return describe_in(connectivity, task, k) | describe_in(evidence, task, k)


def describe_in(
    graph: LearningConnectivity | FeasibilityEvidence, task: str, k: int = 10
) -> dict[str, list[tuple[str, float]]]:
    """One graph's part of `describe_task`; a KeyError names a task that it does not know."""
    if task not in graph.ids:
        raise KeyError(unknown_id(task, graph.ids))
    place = graph.ids.index(task)
    incoming = graph.weights[:, [place]].toarray().ravel()
    if isinstance(graph, FeasibilityEvidence):
        weights = np.append(incoming, graph.from_scratch[place])
        return {"evidence": strongest(weights, (*graph.ids, "from scratch"), k)}
    outgoing = graph.weights[[place], :].toarray().ravel()
    return {"sources": strongest(incoming, graph.ids, k), "targets": strongest(outgoing, graph.ids, k)}


def votes_of(selections: Any, size: int) -> sparse.csr_array:
    """In how many repetitions each source was selected for each target: CSR, float64 [source target]."""
    edges = [(s, t) for repetition in selections for t, chosen in enumerate(repetition) for s in chosen or ()]
    rows, columns = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return _csr(sparse.coo_array((np.ones(len(edges)), (rows, columns)), shape=(size, size)))


def _votes_as_shares(size: int, selections: Any, asked: sparse.csr_array | None) -> sparse.csr_array:
    """Eq. 4, as counts divided by the repetitions that asked, so that the weights are the nearest floats to r / R."""
    votes = votes_of(selections, size)
    if asked is None:
        return _csr(votes / len(selections))
    entries = votes.tocoo()
    shares = entries.data / asked[entries.coords]
    return _csr(sparse.coo_array((shares, entries.coords), shape=votes.shape))


def _evidence(size: int, selections: Any) -> tuple[sparse.csr_array, Float[np.ndarray, " task"]]:
    """Eq. 5 over the judgments that are left of each task."""
    rows, columns, values = [], [], []
    from_scratch = np.zeros(size)
    for m in range(size):
        judged = [repetition[m] for repetition in selections if repetition[m] is not None]
        for chosen in judged:
            if not chosen:
                from_scratch[m] += 1 / len(judged)
            for source in chosen:
                rows.append(source)
                columns.append(m)
                values.append(1 / (len(judged) * len(chosen)))
    weights = sparse.coo_array((np.array(values, dtype=np.float64), (rows, columns)), shape=(size, size))
    return _csr(weights), np.minimum(from_scratch, 1.0)


def _csr(weights: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(weights, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _new_positions(size: int, kept: Int[np.ndarray, " task"]) -> dict[int, int]:
    return {int(old): new for new, old in enumerate(kept)}


def _column_sums(graph: FeasibilityEvidence) -> Float[np.ndarray, " task"]:
    return np.asarray(graph.weights.sum(axis=0)).ravel() + graph.from_scratch


def _same(a: sparse.csr_array, b: sparse.csr_array) -> bool:
    difference = abs(a - b)
    return difference.nnz == 0 or float(difference.max()) < 1e-9


def _counts(entries: sparse.coo_array) -> sparse.csr_array:
    matrix = sparse.csr_array(entries, dtype=np.int64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _edges(weights: sparse.csr_array, name: str = "weight") -> dict[str, list[Any]]:
    entries = weights.tocoo()
    return {"source": entries.row.tolist(), "target": entries.col.tolist(), name: entries.data.tolist()}


def _entries(edges: Any, name: str, size: int, what: str) -> tuple[sparse.coo_array | None, list[str]]:
    """The matrix of a file's lists source, target and `name`, or what is wrong with them."""
    try:
        rows, columns = (np.array(edges[field], dtype=np.int64).reshape(-1) for field in ("source", "target"))
        values = np.array(edges[name], dtype=np.float64).reshape(-1)
    except (TypeError, KeyError, ValueError):
        return None, [f"the field {what} must hold the lists source, target and {name}"]
    if not len(rows) == len(columns) == len(values):
        return None, [f"the source, target and {name} of the {what} differ in length"]
    outside = [int(i) for i in (*rows, *columns) if not 0 <= i < size]
    if outside:
        return None, [f"an edge of the {what} names the position {outside[0]}; there are {size} tasks"]
    if len(set(zip(rows.tolist(), columns.tolist(), strict=True))) < len(rows):
        return None, [f"the {what} list an edge more than once"]
    return sparse.coo_array((values, (rows, columns)), shape=(size, size)), []


def _some(ids: Sequence[str], most: int = 5) -> str:
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(map(repr, ids[:most])) + more


def _raise_first(problems: list[str]) -> None:
    if problems:
        raise ValueError(problems[0])


def _tuples(selections: Any) -> Any:
    return tuple(map(_tuples, selections)) if isinstance(selections, list) else selections


def _weight_problems(kind: str, ids: tuple[str, ...], weights: sparse.csr_array) -> list[str]:
    if len(set(ids)) < len(ids):
        return [f"the {kind} graph names the task {next(i for i in ids if ids.count(i) > 1)!r} more than once"]
    if weights.shape != (len(ids), len(ids)):
        return [f"the {kind} weights have the shape {weights.shape}; {len(ids)} tasks need {(len(ids),) * 2}"]
    entries = weights.tocoo()
    bad = np.flatnonzero(~((entries.data >= 0) & (entries.data <= 1 + 1e-12)))
    own = np.flatnonzero(entries.row == entries.col)
    problems = [
        f"the edge {ids[entries.row[i]]!r} -> {ids[entries.col[i]]!r} weighs {entries.data[i]}; it must lie in [0, 1]"
        for i in bad[:20]
    ]
    return problems + [f"the task {ids[entries.row[i]]!r} has an edge to itself" for i in own[:20]]


def _column_problems(
    ids: tuple[str, ...], weights: sparse.csr_array, from_scratch: Float[np.ndarray, "..."], restricted: bool
) -> list[str]:
    if from_scratch.shape != (len(ids),):
        return [f"from_scratch has the shape {from_scratch.shape}; one weight for each of {len(ids)} tasks is needed"]
    bad = np.flatnonzero(~((from_scratch >= 0) & (from_scratch <= 1 + 1e-12)))
    if bad.size:
        return [f"{ids[i]!r} has the from-scratch weight {from_scratch[i]}; it must lie in [0, 1]" for i in bad[:20]]
    totals = np.asarray(weights.sum(axis=0)).ravel() + from_scratch
    allowed = np.isclose(totals, 1, atol=1e-9) | (restricted & (totals == 0))
    return [
        f"the evidence for {ids[i]!r} sums to {totals[i]:.6g}; with the from-scratch weight it must sum to 1"
        for i in np.flatnonzero(~allowed)[:20]
    ]


def _selection_problems(kind: str, ids: tuple[str, ...], selections: Any) -> list[str]:
    if not selections:
        return [f"the {kind} graph has no repetition of judgments; at least one is needed"]
    problems = []
    for r, repetition in enumerate(selections):
        if not isinstance(repetition, tuple) or len(repetition) != len(ids):
            problems.append(f"repetition {r} does not hold one judgment for each of {len(ids)} tasks")
            continue
        for target, chosen in enumerate(repetition):
            if chosen is None:
                continue
            wrong = [s for s in chosen if not isinstance(s, int) or not 0 <= s < len(ids)]
            if wrong:
                problems.append(f"repetition {r} selects the position {wrong[0]!r} for {ids[target]!r}; no such task")
            elif target in chosen:
                problems.append(f"repetition {r} selects {ids[target]!r} for itself")
            elif len(set(chosen)) < len(chosen):
                problems.append(f"repetition {r} selects a task twice for {ids[target]!r}")
    return problems


def _asked_problems(ids: tuple[str, ...], asked: sparse.csr_array | None, selections: Any) -> list[str]:
    if asked is None:
        return []
    if asked.shape != (len(ids), len(ids)):
        return [f"the counts asked have the shape {asked.shape}; {len(ids)} tasks need {(len(ids),) * 2}"]
    entries = asked.tocoo()
    bad = np.flatnonzero((entries.data < 0) | (entries.data > len(selections)))
    problems = [
        f"{ids[entries.row[i]]!r} -> {ids[entries.col[i]]!r} was asked about in {entries.data[i]} repetitions; "
        f"there are {len(selections)}"
        for i in bad[:20]
    ]
    votes = votes_of(selections, len(ids)).tocoo()
    unasked = np.flatnonzero(votes.data > asked[votes.coords]) if votes.nnz else ()
    return problems + [
        f"{ids[votes.row[i]]!r} -> {ids[votes.col[i]]!r} was selected more often than it was asked about"
        for i in unasked[:20]
    ]


def _read(path: str | Path) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such graph file") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: not a readable graph file: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{path}: not a graph file: it holds a {type(document).__name__}, not an object")
    return document


def _parse_asked(document: dict[str, Any], size: int) -> tuple[sparse.csr_array | None, list[str]]:
    """How often a file says that pairs were asked about, and what is wrong with it; None if it does not say."""
    if "asked" not in document:
        return None, []
    entries, problems = _entries(document["asked"], "count", size, "asked")
    return None if entries is None else _counts(entries), problems


def _parse_common(
    kind: str, document: dict[str, Any]
) -> tuple[tuple[str, ...], sparse.csr_array, Provenance, list[str]]:
    """Ids, weights and provenance of a file's document, and what is wrong with them."""
    nothing: tuple[tuple[str, ...], sparse.csr_array, Provenance] = ((), _csr((0, 0)), Provenance())
    if document.get("version") != 1:
        return *nothing, [f"has the version {document.get('version')!r}; this forethought reads version 1"]
    ids = document.get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(id, str) and id for id in ids):
        return *nothing, ["the field ids must be a list of non-empty texts"]
    known = {field.name for field in fields(Provenance)}
    stored = document.get("provenance")
    if not isinstance(stored, dict) or set(stored) - known:
        return *nothing, [f"the field provenance must be an object with fields among {', '.join(sorted(known))}"]
    entries, problems = _entries(document.get("weights"), "weight", len(ids), "weights")
    if problems or entries is None:
        return *nothing, problems
    weights = _csr(entries)
    provenance = Provenance(**{**stored, "notes": tuple(stored.get("notes") or ())})
    return tuple(ids), weights, provenance, _weight_problems(kind, tuple(ids), weights)
