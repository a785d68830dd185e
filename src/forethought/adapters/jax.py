"""The curriculum in pure JAX, for a loop that is compiled as a whole.

    from forethought.adapters import jax as fx

    state = fx.init(tasks, connectivity=connectivity, feasibility=evidence)
    chosen = fx.sample(state, key, 64)
    state = fx.update(state, chosen, successes)

It decides as `forethought.Curriculum` does, by the same formulas: given the same history, its probabilities and
estimates are those of the NumPy curriculum, to rounding (1e-6 with `jax_enable_x64`; single precision otherwise). Its
draws come from a JAX key, so they follow the same distribution but are other draws.

The state is a frozen pytree of what changes; `init` runs outside of compiled code, everything else inside or outside:
under `jit`, `vmap` (many runs at once) and `scan` (as a carry). Tasks, weights, graphs and settings never change; they
are static, constants of the compiled program, and all runs of a `vmap` share them.

For the methods of the paper. An update costs what all tasks cost, and all edges where one crosses the solved threshold
(under `vmap` always), while the NumPy curriculum works on what has changed only: for very many tasks that is the one.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike
from scipy import sparse

from forethought.adapters import missing
from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.curriculum.curriculum import Slots
from forethought.curriculum.estimates import NEVER, SMALLEST_SLOPE
from forethought.curriculum.methods import METHODS, Method
from forethought.curriculum.scores import INTERMEDIATE
from forethought.tasks import unknown_id

try:
    import jax
    import jax.numpy as jnp
    from jax.core import Tracer
except ModuleNotFoundError as error:
    raise missing("JAX", "jax") from error

if TYPE_CHECKING:
    from forethought.graphs import FeasibilityEvidence, LearningConnectivity
    from forethought.tasks import TaskSet

PAPER_METHODS = ("unif", "target", "i-diff", "alp", "alp+d", "alp+f", "alp+d+f", "perm")
"""The methods that this module has."""

SINGLE_SMALLEST_SLOPE = 1e-6
"""`SMALLEST_SLOPE` for single precision, whose rounding is above the double's."""

_TARGETS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Edges:
    """Weighted edges, in the order of `into` or `out_of`, whichever is summed or maximised over."""

    out_of: np.ndarray
    into: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """What a curriculum decides about, and how; never changes, and equals another of the same content."""

    ids: tuple[str, ...]
    method: Method
    config: CurriculumConfig
    weights: np.ndarray
    connectivity: Edges | None
    """Weights are kappa C, in the order of `out_of`."""
    evidence: Edges | None
    """In the order of `into`."""
    from_scratch: np.ndarray
    digest: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@partial(
    jax.tree_util.register_dataclass,
    meta_fields=("problem",),
    data_fields=(
        "iteration",
        "success_rate",
        "learning_progress",
        "observations",
        "history_times",
        "history_values",
        "downstream_potential",
        "feasibility",
    ),
)
@dataclass(frozen=True)
class State:
    """A curriculum between two iterations: a pytree, never changed in place.

    The names are those of `Curriculum`: `downstream_potential` and `feasibility` are 0 for methods without them. Under
    `vmap`, or between two uses of it, the arrays of several runs stand side by side (`batch`).
    """

    problem: Problem
    iteration: Int[Array, "*batch"]
    success_rate: Float[Array, "*batch task"]
    learning_progress: Float[Array, "*batch task"]
    observations: Int[Array, "*batch task"]
    history_times: Int[Array, "*batch task point"]
    history_values: Float[Array, "*batch task point"]
    downstream_potential: Float[Array, "*batch task"]
    feasibility: Float[Array, "*batch task"]


def init(
    tasks: "TaskSet",
    *,
    connectivity: "LearningConnectivity | None" = None,
    feasibility: "FeasibilityEvidence | None" = None,
    method: str | None = None,
    weights: ArrayLike | None = None,
    seed: int = 0,
    config: CurriculumConfig | None = None,
) -> State:
    """A curriculum that has seen nothing; runs on the host.

    Args:
        tasks: as for `Curriculum`.
        connectivity: as for `Curriculum`.
        feasibility: as for `Curriculum`.
        method: one of `PAPER_METHODS`, or None for the fullest of them that the given graphs allow.
        weights: as for `Curriculum`.
        seed: of the permutation of `perm`, which is that of a `Curriculum` of this seed; no other method uses it.
        config: as for `Curriculum`.

    Raises:
        ValueError: as for `Curriculum`, and for a method that is not of the paper.
    """
    if method in METHODS and method not in PAPER_METHODS:
        raise ValueError(f"method is {method!r}; allowed in JAX: {', '.join(PAPER_METHODS)}")
    model = Curriculum(
        tasks,
        connectivity=connectivity,
        feasibility=feasibility,
        method=method,
        weights=weights,
        seed=seed,
        config=config,
    )
    row, config, size = METHODS[model.method], model.config, len(tasks)
    edges, evidence, from_scratch = None, None, np.zeros(size)
    if row.downstream and connectivity is not None:
        graph = sparse.csr_array(connectivity.align(tasks).weights)
        if row.permuted:
            order = model.state_dict()["permutation"]
            graph = sparse.csr_array(graph[order][:, order])
        coo = sparse.coo_array(graph)
        sources, targets = coo.coords
        kept = (sources != targets) & (coo.data > 0)
        edges = Edges(sources[kept], targets[kept], coo.data[kept] * config.path_discount)
    if row.feasibility and feasibility is not None:
        aligned = feasibility.align(tasks)
        coo = sparse.coo_array(sparse.csc_array(aligned.weights))
        evidence, from_scratch = (
            Edges(coo.coords[0], coo.coords[1], coo.data),
            np.asarray(aligned.from_scratch, np.float64),
        )
    parts = [tasks.ids, model.method, config, model.weights.tolist(), from_scratch.tolist()]
    for graph in (edges, evidence):
        parts += [] if graph is None else [array.tolist() for array in (graph.out_of, graph.into, graph.weights)]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    problem = Problem(tasks.ids, row, config, model.weights, edges, evidence, from_scratch, digest)
    nothing = jnp.zeros(size)
    times = jnp.full((size, config.max_observations), NEVER, jnp.int32).at[:, -1].set(-1)
    return State(
        problem=problem,
        iteration=jnp.zeros((), jnp.int32),
        success_rate=nothing,
        learning_progress=nothing,
        observations=jnp.zeros(size, jnp.int32),
        history_times=times,
        history_values=jnp.zeros(times.shape),
        downstream_potential=_potential(problem, nothing),
        feasibility=_feasibility(problem, nothing),
    )


@jax.jit
def probabilities(state: State) -> Float[Array, " task"]:
    """q: what the next draws that are not fixed follow; sums to 1 (paper, Section 4.3)."""
    problem, config = state.problem, state.problem.config
    size, weights = len(problem.ids), jnp.asarray(problem.weights)
    uniform = jnp.full(size, 1 / size)
    if problem.method.score == "uniform":
        return uniform
    if problem.method.score == "target":
        return weights / weights.sum()
    downstream = state.downstream_potential if problem.method.downstream else None
    if problem.method.score == "intermediate":
        low, high = INTERMEDIATE
        signal = ((state.success_rate >= low) & (state.success_rate <= high)).astype(weights.dtype)
    else:
        signal = _progress_signal(state.learning_progress, config.exponent, config.progress)
    mixed = (1 - config.exploration) * _shares(_valued(signal, weights, downstream, config.downstream_coefficient))
    guided = config.exploration * config.feasibility_share if problem.method.feasibility else 0.0
    if problem.method.feasibility:
        ready = state.feasibility * (state.success_rate <= config.feasibility_threshold)
        mixed += guided * _shares(_valued(ready, weights, downstream, config.downstream_coefficient))
    mixed += (config.exploration - guided) * uniform
    return jnp.where(state.iteration < config.warmup, uniform, mixed / mixed.sum())


def sample(state: State, key: Any, k: int, fixed: Slots | None = None) -> Int[Array, " k"]:
    """Draw tasks for the next iteration, with replacement, as `Curriculum.sample`.

    Args:
        state: the curriculum; it does not change by drawing.
        key: a JAX random key.
        k: tasks to draw, at least 1; a Python number, not traced.
        fixed: task (index or id) -> slots that it gets; they come first. Not for the method `target`.

    Raises:
        ValueError: if `k`, an index or a number of slots is out of range, or the fixed slots exceed `k`.
        KeyError: if a fixed id is unknown.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k is {k!r}; allowed: a whole number >= 1")
    held = _fixed_slots(state.problem, int(k), fixed or {})
    if state.problem.method.score == "target":
        held = held[:0]
    return _drawn(state, key, int(k), tuple(held))


def update(state: State, task_indices: Any, successes: Any, episodes: Any = None) -> State:
    """Take in one iteration's finished episodes, and advance the iteration by one, as `Curriculum.update`.

    Args:
        state: the curriculum.
        task_indices: the task of each entry, in any order; a task may have several entries, or none.
        successes: outcome or mean outcome of each entry, in [0, 1].
        episodes: finished episodes behind each entry (default 1); entries with 0 are ignored, which fills up arrays
            of a fixed length.

    Returns:
        The curriculum after it.

    Raises:
        ValueError: if the shapes differ or the types are wrong; outside of compiled code also if an index, a rate or
            a count is out of range or not a number. Compiled code cannot raise: there such an entry is ignored.
    """
    return _updated(state, *_entries(len(state.problem.ids), task_indices, successes, episodes))


# ---------------------------------------------------------------------- formulas


@partial(jax.jit, static_argnums=(2, 3))
def _drawn(state: State, key: Any, k: int, held: tuple[int, ...]) -> Int[Array, " k"]:
    cumulative = jnp.cumsum(probabilities(state))
    points = jax.random.uniform(key, (k - len(held),), cumulative.dtype) * cumulative[-1]
    drawn = jnp.searchsorted(cumulative, points, side="right")
    drawn = jnp.minimum(drawn, cumulative.size - 1).astype(jnp.int32)
    return jnp.concatenate([jnp.asarray(held, jnp.int32), drawn])


@jax.jit
def _updated(
    state: State, indices: Int[Array, " entry"], rates: Float[Array, " entry"], counts: Float[Array, " entry"]
) -> State:
    size, config = len(state.problem.ids), state.problem.config
    rates, seen = _pooled(size, indices, rates, counts)
    averaged = _product(1 - config.smoothing, state.success_rate) + _product(config.smoothing, rates)
    success_rate = jnp.where(seen, jnp.where(state.observations == 0, rates, averaged), state.success_rate)
    now = jnp.full((size, 1), state.iteration)
    times = jnp.concatenate([state.history_times[:, 1:], now], axis=1)
    values = jnp.concatenate([state.history_values[:, 1:], rates[:, None]], axis=1)
    times = jnp.where(seen[:, None], times, state.history_times)
    values = jnp.where(seen[:, None], values, state.history_values)
    progress = jnp.where(seen, _slopes(times, values, config.lookback), state.learning_progress)
    solved = [rate >= config.solved_threshold for rate in (state.success_rate, success_rate)]
    potential = state.downstream_potential
    if state.problem.method.downstream:
        potential = jax.lax.cond(
            (solved[0] != solved[1]).any(),
            partial(_potential, state.problem),
            lambda _: state.downstream_potential,
            success_rate,
        )
    return replace(
        state,
        iteration=state.iteration + 1,
        success_rate=success_rate,
        learning_progress=progress,
        observations=state.observations + seen,
        history_times=times,
        history_values=values,
        downstream_potential=potential,
        feasibility=_feasibility(state.problem, success_rate),
    )


@partial(jax.jit, static_argnums=0)
def _potential(problem: Problem, success_rate: Float[Array, " task"]) -> Float[Array, " task"]:
    """D(m) = sum over targets t != m of w(t) B(m, t), B by L rounds of relaxation (paper, Section 4.1)."""
    edges, size = problem.connectivity, len(problem.ids)
    if edges is None or edges.weights.size == 0:
        return jnp.zeros(size)
    length = min(problem.config.max_path_length, max(size - 1, 1))
    strengths = jnp.asarray(edges.weights) * (success_rate < problem.config.solved_threshold)[edges.into]

    def worth(target: Int[Array, ""], weight: Float[Array, ""]) -> Float[Array, " task"]:
        def relax(_: Any, best: Float[Array, " task"]) -> Float[Array, " task"]:
            steps = strengths * best[edges.into]
            return jnp.maximum(best, jax.ops.segment_max(steps, edges.out_of, size, indices_are_sorted=True))

        best = jax.lax.fori_loop(0, length, relax, jnp.zeros(size).at[target].set(1.0))
        return weight * best.at[target].set(0.0)

    targets = np.flatnonzero(problem.weights)
    pairs = jnp.asarray(targets), jnp.asarray(problem.weights[targets])
    return jax.lax.map(lambda pair: worth(*pair), pairs, batch_size=_TARGETS_AT_ONCE).sum(axis=0)


def _feasibility(problem: Problem, success_rate: Float[Array, " task"]) -> Float[Array, " task"]:
    """f(m) = E(bottom, m) + sum over s of E(s, m) P(s) (paper, Section 4.2)."""
    base, edges = jnp.asarray(problem.from_scratch), problem.evidence
    if edges is None:
        return base
    evidence = jnp.asarray(edges.weights) * success_rate[edges.out_of]
    return jnp.minimum(base + jax.ops.segment_sum(evidence, edges.into, base.size, indices_are_sorted=True), 1.0)


def _slopes(
    times: Int[Array, "task point"], values: Float[Array, "task point"], lookback: int
) -> Float[Array, " task"]:
    """Least-squares slopes, as `forethought.curriculum.estimates.slopes` (paper, A.2)."""
    x = times.astype(values.dtype) - times[:, -1:].astype(values.dtype)
    inside = x >= -lookback
    alone = ~inside[:, -2]
    inside = inside.at[:, -2].set(True)
    x = x.at[:, -2].set(jnp.where(alone, -lookback, x[:, -2]))
    points = inside.sum(axis=1, keepdims=True)
    x, y = jnp.where(inside, x, 0.0), jnp.where(inside, values, 0.0)
    dx = jnp.where(inside, x - x.sum(axis=1, keepdims=True) / points, 0.0)
    dy = jnp.where(inside, y - y.sum(axis=1, keepdims=True) / points, 0.0)
    slope = (dx * dy).sum(axis=1) / (dx * dx).sum(axis=1)
    smallest = SMALLEST_SLOPE if values.dtype == jnp.float64 else SINGLE_SMALLEST_SLOPE
    return jnp.where(jnp.abs(slope) < smallest, 0.0, slope)


def _progress_signal(
    progress: Float[Array, " task"], exponent: float, kind: Literal["absolute", "positive"]
) -> Float[Array, " task"]:
    """h(x): |x|^rho or max(x, 0)^rho (paper, Section 5)."""
    magnitude = jnp.abs(progress) if kind == "absolute" else jnp.maximum(progress, 0.0)
    return jnp.sqrt(magnitude) if exponent == 0.5 else magnitude**exponent


def _valued(
    signal: Float[Array, " task"],
    weights: Float[Array, " task"],
    downstream: Float[Array, " task"] | None,
    coefficient: float,
) -> Float[Array, " task"]:
    """A signal times w-tilde + alpha D-tilde over where it is positive, or times w without D (paper, A.3)."""
    if downstream is None:
        return signal * weights
    active = signal > 0
    count = jnp.maximum(active.sum(), 1)
    mean_weight = jnp.where(active, weights, 0.0).sum() / count
    larger = jnp.maximum(mean_weight, jnp.where(active, downstream, 0.0).sum() / count)
    return signal * (weights * _inverse(mean_weight) + downstream * (coefficient * _inverse(larger)))


def _product(a: Any, b: Any) -> Array:
    """The product of two numbers >= 0, rounded by itself.

    The absolute value keeps a compiler from fusing the product with the sum that follows into one rounding; a rate
    would then fall on the other side of a threshold than in NumPy.
    """
    return jnp.abs(a * b)


def _inverse(number: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.where(number > 0, 1 / jnp.where(number > 0, number, 1.0), 0.0)


def _shares(score: Float[Array, " task"]) -> Float[Array, " task"]:
    """N[S]: the score as shares, or uniform if it is 0 everywhere (paper, App. D)."""
    total = score.sum()
    return jnp.where(total > 0, score / jnp.where(total > 0, total, 1.0), 1 / score.size)


# ---------------------------------------------------------------------- what comes in


def _entries(size: int, task_indices: Any, successes: Any, episodes: Any) -> tuple[Array, Array, Array]:
    """Entries of the right shapes and types, their values checked unless they are traced."""
    given = (task_indices, successes) if episodes is None else (task_indices, successes, episodes)
    # Inside of compiled code a list holds numbers that are traced one by one.
    traced = any(isinstance(value, Tracer) for value in jax.tree.leaves(given))
    arrays = [value if isinstance(value, jax.Array) else (jnp if traced else np).asarray(value) for value in given]
    # An empty list has no type of its own.
    arrays = [array.astype(np.int32) if array.size == 0 else array for array in arrays]
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"task_indices, successes and episodes have shapes {shapes}; allowed: the same, flat")
    allowed = (("task_indices", 0, size - 1, True), ("successes", 0, 1, False), ("episodes", 0, np.inf, True))
    for (name, low, high, whole), array in zip(allowed, arrays, strict=False):
        kinds = (jnp.integer,) if whole else (jnp.integer, jnp.floating, np.bool_)
        if not any(jnp.issubdtype(array.dtype, kind) for kind in kinds):
            raise ValueError(f"{name} has type {array.dtype}; allowed: {'whole ' if whole else ''}numbers")
        if traced:
            continue
        values = np.asarray(array, np.float64)
        bad = ~((values >= low) & (values <= high))
        if bad.any():
            at = int(np.argmax(bad))
            raise ValueError(f"{name}[{at}] is {values[at]:g}; allowed: {low} to {high}")
    floats = jnp.zeros(0).dtype
    counts = arrays[2] if episodes is not None else np.ones(arrays[0].shape)
    return jnp.asarray(arrays[0], jnp.int32), jnp.asarray(arrays[1], floats), jnp.asarray(counts, floats)


def _pooled(
    size: int, indices: Int[Array, " entry"], rates: Float[Array, " entry"], counts: Float[Array, " entry"]
) -> tuple[Float[Array, " task"], Bool[Array, " task"]]:
    """One success rate per task, whatever the order of the entries, and which tasks have one."""
    order = jnp.lexsort((counts, rates, indices))
    indices, rates, counts = indices[order], rates[order], counts[order]
    valid = (indices >= 0) & (indices < size) & (rates >= 0) & (rates <= 1) & (counts > 0)
    indices, rates, counts = (jnp.where(valid, *pair) for pair in ((indices, size), (rates, 0.0), (counts, 0.0)))
    number = jnp.zeros(size).at[indices].add(counts, mode="drop")
    total = jnp.zeros(size).at[indices].add(_product(rates, counts), mode="drop")
    seen = number > 0
    return jnp.clip(total / jnp.where(seen, number, 1.0), 0.0, 1.0), seen


def _fixed_slots(problem: Problem, k: int, fixed: Slots) -> list[int]:
    held: list[int] = []
    for task, slots in fixed.items():
        if isinstance(task, str):
            if task not in problem.ids:
                raise KeyError(unknown_id(task, problem.ids))
            index = problem.ids.index(task)
        else:
            index = task
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < len(problem.ids):
            raise ValueError(f"task index is {task!r}; allowed: whole numbers from 0 to {len(problem.ids) - 1}")
        if isinstance(slots, bool) or not isinstance(slots, int | np.integer) or slots < 0:
            raise ValueError(f"fixed slots of task {task!r} are {slots!r}; allowed: whole numbers >= 0")
        held += [int(index)] * int(slots)
    if len(held) > k:
        raise ValueError(f"fixed slots add up to {len(held)}; allowed: at most k = {k}")
    return held
