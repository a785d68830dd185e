"""`Curriculum`: choose tasks, hear how they went, choose better (paper, Algorithm 1)."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike
from scipy import sparse

from forethought.curriculum.config import CurriculumConfig
from forethought.curriculum.estimates import Estimates
from forethought.curriculum.feasibility import Feasibility
from forethought.curriculum.interest import Interest
from forethought.curriculum.methods import resolve
from forethought.curriculum.potential import DownstreamPotential
from forethought.curriculum.primary import make_primary
from forethought.curriculum.scores import distribution, feasibility_signal, normalisers, valued
from forethought.tasks import checked_weights

if TYPE_CHECKING:
    from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
    from forethought.tasks import TaskSet

Slots = Mapping[int, int] | Mapping[str, int] | Mapping[int | str, int]
"""Task (index or id) -> its fixed slots."""

STATE_VERSION = 1


class Curriculum:
    """Decides which tasks to train on, iteration after iteration.

    Args:
        tasks: the tasks; their weights say how much each matters.
        connectivity: which task's learning helps which other, over the same ids in any order.
        feasibility: which tasks' competence tells that another is ready, over the same ids in any order.
        interestingness: which mastered tasks make which other boring, over the same ids in any order; for `omni`.
        method: a name of `METHODS`, or None for the fullest ALP method that connectivity and feasibility allow.
        weights: importance of each task in place of the tasks' own, >= 0 with a positive sum; any float type.
        seed: of the curriculum's own random numbers, >= 0.
        config: everything else.

    Raises:
        ValueError: if a graph is over other ids or missing for the method, weights are no weights, the method is
            unknown, or `target` is asked for without exactly one weighted task.

    Example:
        >>> from forethought.tasks import Task, TaskSet
        >>> tasks = TaskSet([Task("walk", "Walk to the tree"), Task("wood", "Collect wood")])
        >>> curriculum = Curriculum(tasks, seed=1)
        >>> chosen = curriculum.sample(8)
        >>> curriculum.update(chosen, [1, 0, 0, 1, 1, 1, 0, 0])
        >>> curriculum.iteration, float(curriculum.probabilities.sum())
        (1, 1.0)
    """

    def __init__(
        self,
        tasks: "TaskSet",
        *,
        connectivity: "LearningConnectivity | None" = None,
        feasibility: "FeasibilityEvidence | None" = None,
        interestingness: "Interestingness | None" = None,
        method: str | None = None,
        weights: ArrayLike | None = None,
        seed: int = 0,
        config: CurriculumConfig | None = None,
    ):
        self.tasks = tasks
        self.config = config = config or CurriculumConfig()
        self.method, self._method = resolve(
            method,
            connectivity=connectivity is not None,
            feasibility=feasibility is not None,
            interestingness=interestingness is not None,
        )
        self.weights = tasks.weights if weights is None else checked_weights(weights, tasks.ids)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed is {seed!r}; allowed: a whole number >= 0")
        weighted = np.flatnonzero(self.weights)
        if self._method.score == "target" and weighted.size != 1:
            raise ValueError(f"method 'target' needs exactly one task with a positive weight; {weighted.size} have one")
        connected = None if connectivity is None else connectivity.align(tasks)
        evidence = None if feasibility is None else feasibility.align(tasks)
        boring = None if interestingness is None else interestingness.align(tasks)

        # Children of the seed: the permutation must not shift the draws that paired runs compare.
        draws, permutation = np.random.SeedSequence(int(seed)).spawn(2)
        self._rng = np.random.default_rng(draws)
        self._permutation = (
            np.random.default_rng(permutation).permutation(len(tasks)) if self._method.permuted else None
        )
        self._iteration = 0
        self._estimates = self._new_estimates()
        self._connectivity: sparse.csr_array | None = None
        self._potential: DownstreamPotential | None = None
        if self._method.downstream and connected is not None:
            self._connectivity = sparse.csr_array(connected.weights)
            self._potential = self._new_potential(self._permutation)
        self._feasibility: Feasibility | None = None
        if self._method.feasibility and evidence is not None:
            self._feasibility = Feasibility(sparse.csr_array(evidence.weights), evidence.from_scratch)
        self._interest: Interest | None = None
        if self._method.interestingness and boring is not None:
            self._interest = Interest(
                sparse.csr_array(boring.weights), config.boring_threshold, config.boring_weight, config.solved_threshold
            )
        order = sparse.csr_array(connected.weights) if self._method.prerequisites and connected is not None else None
        self._primary = make_primary(self._method.score, len(tasks), config, order, self._interest)
        self._warned = False
        self._cached: _Decision | None = None

    # ------------------------------------------------------------------ deciding

    def sample(self, k: int, fixed: Slots | None = None) -> Int64[np.ndarray, " k"]:
        """Draw tasks for the next iteration, with replacement.

        Args:
            k: tasks to draw, at least 1.
            fixed: task (index or id) -> slots that it gets whatever the distribution; they come first, in the
                mapping's order. They count from the first iteration on and for every method but `target`.

        Returns:
            Task indices; the fixed ones first, the rest drawn from `probabilities`.

        Raises:
            ValueError: if `k` or a number of slots is out of range, or the fixed slots exceed `k`.
            KeyError: if a fixed id is unknown.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k is {k!r}; allowed: a whole number >= 1")
        held = self._fixed_slots(int(k), fixed or {})
        if self._method.score == "target":
            held = held[:0]
        cumulative = self._decision().cumulative
        points = self._rng.random(int(k) - held.size) * cumulative[-1]
        drawn = np.searchsorted(cumulative, points, side="right")
        return np.concatenate([held, np.minimum(drawn, self.weights.size - 1)]).astype(np.int64)

    def update(self, task_indices: ArrayLike, successes: ArrayLike, episodes: ArrayLike | None = None) -> None:
        """Take in one iteration's finished episodes, and advance the iteration by one.

        Args:
            task_indices: the task of each entry, in any order; a task may have several entries, or none.
            successes: outcome or mean outcome of each entry, in [0, 1].
            episodes: finished episodes behind each entry (default 1); entries with 0 are ignored. A task's entries
                are pooled by their episodes.

        Raises:
            ValueError: if an index, a rate or a count is out of range, not a number, or the shapes differ. Nothing
                has changed then.
        """
        indices, rates = self._pooled(task_indices, successes, episodes)
        config = self.config
        if indices.size:
            estimates = self._estimates
            before = estimates.success_rate[indices]
            estimates.observe(indices, rates, self._iteration)
            if self._primary is not None:
                self._primary.observe(indices, rates, before, estimates)
            if self._potential is not None:
                self._potential.update(indices, estimates.success_rate, config.solved_threshold)
            if self._feasibility is not None:
                self._feasibility.update(indices, estimates.success_rate)
        self._iteration += 1
        self._cached = None

    # ------------------------------------------------------------------ beliefs

    @property
    def iteration(self) -> int:
        """Iterations completed: calls of `update`."""
        return self._iteration

    @property
    def probabilities(self) -> Float64[np.ndarray, " task"]:
        """q: what the next draws that are not fixed follow; sums to 1."""
        return self._decision().probabilities.copy()

    @property
    def success_rate(self) -> Float64[np.ndarray, " task"]:
        """P-hat in [0, 1]; 0 for a task never observed (paper, A.2)."""
        return self._estimates.success_rate.copy()

    @property
    def learning_progress(self) -> Float64[np.ndarray, " task"]:
        """LP-hat, success rate per iteration, either sign; 0 for a task never observed (paper, A.2)."""
        return self._estimates.learning_progress.copy()

    @property
    def downstream_potential(self) -> Float64[np.ndarray, " task"]:
        """D >= 0 (paper, Section 4.1); 0 everywhere for a method without it."""
        return np.zeros(self.weights.size) if self._potential is None else self._potential.values.copy()

    @property
    def feasibility(self) -> Float64[np.ndarray, " task"]:
        """F in [0, 1] (paper, Section 4.2); 0 everywhere for a method without it."""
        return np.zeros(self.weights.size) if self._feasibility is None else self._feasibility.values.copy()

    @property
    def interestingness(self) -> Float64[np.ndarray, " task"]:
        """What learning progress is multiplied by, in [0, 1]; 1 everywhere for a method that masks nothing."""
        if self._interest is None:
            return np.ones(self.weights.size)
        return self._interest.factors(self._estimates.success_rate).copy()

    def explain(self, task: int | str) -> dict[str, Any]:
        """The terms of a task's probability.

        Args:
            task: index or id.

        Returns:
            The probability, the parts of it that come from each component (they add up to it), the component's
            signals, and weight and downstream potential as they are and as normalised for each component (A.3).

        Raises:
            KeyError: if the id is unknown.
            ValueError: if the index is out of range.
        """
        index = self._task_index(task)
        decision = self._decision()
        estimates = self._estimates
        result: dict[str, Any] = {
            "task": self.tasks.ids[index],
            "iteration": self._iteration,
            "method": self.method,
            "warmup": self._warming_up,
            "probability": float(decision.probabilities[index]),
            "weight": float(self.weights[index]),
            "success_rate": float(estimates.success_rate[index]),
            "learning_progress": float(estimates.learning_progress[index]),
            "observations": int(estimates.observations[index]),
        }
        if self._potential is not None:
            result["downstream_potential"] = float(self._potential.values[index])
        if self._feasibility is not None:
            result["feasibility"] = float(self._feasibility.values[index])
        if self._interest is not None:
            result["interestingness"] = float(self._interest.factors(estimates.success_rate)[index])
        for part in decision.parts:
            result[f"{part.name}_probability"] = float(part.share * part.shares[index])
            if part.signal is None:
                continue
            result[f"{part.name}_signal"] = float(part.signal[index])
            if self._potential is not None:
                by_weight, by_downstream = normalisers(part.signal > 0, self.weights, self._potential.values)
                result[f"{part.name}_normalised_weight"] = float(self.weights[index] * by_weight)
                result[f"{part.name}_normalised_downstream"] = float(self._potential.values[index] * by_downstream)
        return result

    def metrics(self) -> dict[str, float]:
        """The curriculum's state in a few numbers, for logs."""
        decision = self._decision()
        rates = self._estimates.success_rate
        q = decision.probabilities
        positive = q[q > 0]
        result = {
            "iteration": float(self._iteration),
            "warmup": float(self._warming_up),
            "mean_success_rate": float(rates.mean()),
            "weighted_success_rate": float(np.dot(rates, self.weights) / self.weights.sum()),
            "solved_share": float((rates >= self.config.solved_threshold).mean()),
            "observed_share": float((self._estimates.observations > 0).mean()),
            "mean_absolute_progress": float(np.abs(self._estimates.learning_progress).mean()),
            "largest_probability": float(q.max()),
            "effective_tasks": float(np.exp(-np.sum(positive * np.log(positive)))),
        }
        if self._potential is not None:
            result["mean_downstream_potential"] = float(self._potential.values.mean())
        if self._feasibility is not None:
            result["mean_feasibility"] = float(self._feasibility.values.mean())
        if self._interest is not None:
            result["boring_share"] = float((self._interest.factors(rates) < 1).mean())
        for part in decision.parts:
            if part.signal is not None:
                result[f"{part.name}_active_share"] = float((part.signal > 0).mean())
                result[f"{part.name}_fell_back"] = float(not part.positive)
        return result

    # ------------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """All that changes over a run: numbers, strings and NumPy arrays under flat names, safe for npz and JSON."""
        state: dict[str, Any] = {
            "version": STATE_VERSION,
            "tasks": _digest(self.tasks.ids),
            "method": self.method,
            "config": json.dumps(asdict(self.config), sort_keys=True),
            "iteration": self._iteration,
            "warned": int(self._warned),
            "rng": json.dumps(self._rng.bit_generator.state),
        }
        state |= {name: array.copy() for name, array in (self._estimates.arrays() | self._own_arrays()).items()}
        if self._permutation is not None:
            state["permutation"] = self._permutation.copy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken.

        Raises:
            ValueError: if the state is incomplete, of another version, or of other tasks, another method or other
                settings; nothing has changed then.
        """
        state = {
            name: value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
            for name, value in state.items()
        }
        mine = self.state_dict()
        if missing := sorted(mine.keys() - state.keys()):
            raise ValueError(f"curriculum state lacks {', '.join(missing)}")
        for name in ("version", "tasks", "method", "config"):
            if state[name] != mine[name] and not (name == "config" and _same_settings(state[name], self.config)):
                raise ValueError(
                    f"curriculum state was saved with other {name}: {state[name]!r}; this curriculum has {mine[name]!r}"
                )
        estimates = self._new_estimates()
        for name, array in estimates.arrays().items():
            _copy_checked(name, state[name], array)
        rates = estimates.success_rate
        if not np.all((rates >= 0) & (rates <= 1)) or not np.isfinite(estimates.learning_progress).all():
            raise ValueError("curriculum state holds success rates or learning progress that are out of range")
        own = {name: array.copy() for name, array in self._own_arrays().items()}
        for name, array in own.items():
            _copy_checked(name, state[name], array)
            if not np.all((array >= 0) & (array <= 1)):
                raise ValueError(f"curriculum state holds {name} out of range; allowed: 0 to 1")
        iteration = int(state["iteration"])
        if iteration < 0:
            raise ValueError(f"curriculum state has iteration {iteration}; allowed: >= 0")
        rng = np.random.default_rng(0)
        rng.bit_generator.state = json.loads(state["rng"])
        potential, permutation = self._potential, self._permutation
        if permutation is not None:
            permutation = permutation.copy()
            _copy_checked("permutation", state["permutation"], permutation)
            if not np.array_equal(np.sort(permutation), np.arange(permutation.size)):
                raise ValueError("curriculum state holds a permutation that is none")
            if not np.array_equal(permutation, mine["permutation"]):
                potential = self._new_potential(permutation)

        self._estimates, self._rng, self._iteration = estimates, rng, iteration
        self._permutation, self._potential = permutation, potential
        self._warned = bool(state["warned"])
        for name, array in self._own_arrays().items():
            array[...] = own[name]
        if self._primary is not None:
            self._primary.refresh(estimates)
        if potential is not None:
            potential.refresh(rates, self.config.solved_threshold)
        if self._feasibility is not None:
            self._feasibility.refresh(rates)
        self._cached = None

    # ------------------------------------------------------------------ inside

    @property
    def _warming_up(self) -> bool:
        return self._method.adaptive and self._iteration < self.config.warmup

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {} if self._primary is None else self._primary.arrays()

    def _new_estimates(self) -> Estimates:
        config = self.config
        return Estimates(
            len(self.tasks),
            smoothing=config.smoothing,
            max_observations=config.max_observations,
            lookback=config.lookback,
        )

    def _new_potential(self, permutation: Int64[np.ndarray, " task"] | None) -> DownstreamPotential:
        graph = self._connectivity
        assert graph is not None
        if permutation is not None:
            graph = sparse.csr_array(graph[permutation][:, permutation])
        return DownstreamPotential(
            graph,
            self.weights,
            max_path_length=self.config.max_path_length,
            path_discount=self.config.path_discount,
        )

    def _decision(self) -> "_Decision":
        if self._cached is None:
            self._cached = _Decision(self._parts(), self.weights.size)
        return self._cached

    def _parts(self) -> "list[_Part]":
        """The mixture of Section 4.3, component by component."""
        method, config, size = self._method, self.config, self.weights.size
        if method.score == "uniform" or self._warming_up:
            return [_Part("uniform", 1.0, np.full(size, 1 / size))]
        if method.score == "target":
            return [_Part("target", 1.0, self.weights / self.weights.sum())]
        rates = self._estimates.success_rate
        downstream = None if self._potential is None else self._potential.values
        guided = config.exploration * config.feasibility_share if method.feasibility else 0.0
        assert self._primary is not None
        signals = [
            (name, (1 - config.exploration) * share, signal)
            for name, share, signal in self._primary.signals(self._estimates, self._iteration)
        ]
        if self._feasibility is not None:
            ready = feasibility_signal(rates, self._feasibility.values, config.feasibility_threshold)
            signals.append(("feasibility", guided, ready))
        parts = [
            _Part(
                name,
                share,
                *distribution(valued(signal, self.weights, downstream, config.downstream_coefficient)),
                signal,
            )
            for name, share, signal in signals
        ]
        if downstream is not None and not any(part.positive for part in parts):
            self._warn_of_blindness()
        parts.append(_Part("uniform", config.exploration - guided, np.full(size, 1 / size)))
        return parts

    def _warn_of_blindness(self) -> None:
        """Say once that the scores are 0 everywhere although there is something left to learn (reading 6)."""
        unsolved = self._estimates.success_rate < self.config.solved_threshold
        if self._warned or not np.any(unsolved & (self.weights > 0)):
            return
        self._warned = True
        warnings.warn(
            f"after {self._iteration} iterations no task with progress or feasibility has weight or downstream "
            f"potential, so sampling is uniform; max_path_length = {self.config.max_path_length} edges may be too "
            "short to reach the weighted tasks from what the learner can do",
            UserWarning,
            stacklevel=2,
        )

    def _task_index(self, task: int | str) -> int:
        if isinstance(task, str):
            return self.tasks.index(task)
        if isinstance(task, bool) or not isinstance(task, int | np.integer) or not 0 <= task < len(self.tasks):
            raise ValueError(f"task index is {task!r}; allowed: whole numbers from 0 to {len(self.tasks) - 1}")
        return int(task)

    def _fixed_slots(self, k: int, fixed: Slots) -> Int64[np.ndarray, " slot"]:
        tasks, counts = [], []
        for task, slots in fixed.items():
            if isinstance(slots, bool) or not isinstance(slots, int | np.integer) or slots < 0:
                raise ValueError(f"fixed slots of task {task!r} are {slots!r}; allowed: whole numbers >= 0")
            tasks.append(self._task_index(task))
            counts.append(int(slots))
        if sum(counts) > k:
            raise ValueError(f"fixed slots add up to {sum(counts)}; allowed: at most k = {k}")
        return np.repeat(np.array(tasks, np.int64), np.array(counts, np.int64))

    def _pooled(
        self, task_indices: ArrayLike, successes: ArrayLike, episodes: ArrayLike | None
    ) -> tuple[Int64[np.ndarray, " seen"], Float64[np.ndarray, " seen"]]:
        """One success rate per observed task, whatever the order of the entries."""
        indices = np.asarray(task_indices)
        rates = np.asarray(successes)
        counts = np.ones(indices.shape, np.int64) if episodes is None else np.asarray(episodes)
        if indices.ndim != 1 or not indices.shape == rates.shape == counts.shape:
            raise ValueError(
                f"task_indices, successes and episodes have shapes {indices.shape}, {rates.shape} and "
                f"{counts.shape}; allowed: the same, one-dimensional"
            )
        if indices.size == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        for name, array, kinds in (
            ("task_indices", indices, "iu"),
            ("successes", rates, "fiub"),
            ("episodes", counts, "iu"),
        ):
            if array.dtype.kind not in kinds:
                allowed = "whole numbers" if kinds == "iu" else "numbers in [0, 1]"
                raise ValueError(f"{name} has type {array.dtype}; allowed: {allowed}")
        rates = rates.astype(np.float64)
        _refuse("task_indices", indices, (indices < 0) | (indices >= len(self.tasks)), f"0 to {len(self.tasks) - 1}")
        _refuse("successes", rates, ~((rates >= 0) & (rates <= 1)), "[0, 1]")
        _refuse("episodes", counts, counts < 0, ">= 0")
        counted = counts > 0
        indices, rates, counts = indices[counted].astype(np.int64), rates[counted], counts[counted]
        order = np.lexsort((counts, rates, indices))
        indices, rates, counts = indices[order], rates[order], counts[order].astype(np.float64)
        seen, group = np.unique(indices, return_inverse=True)
        pooled = np.bincount(group, rates * counts, seen.size) / np.bincount(group, counts, seen.size)
        return seen, np.clip(pooled, 0.0, 1.0)


class _Part:
    """One component of the mixture: its share of the sampling, and its own distribution."""

    def __init__(
        self,
        name: str,
        share: float,
        shares: Float64[np.ndarray, " task"],
        positive: bool = True,
        signal: Float64[np.ndarray, " task"] | None = None,
    ):
        self.name, self.share, self.shares, self.positive, self.signal = name, share, shares, positive, signal


class _Decision:
    """The distribution of one iteration, ready to draw from."""

    def __init__(self, parts: list[_Part], size: int):
        self.parts = parts
        mixed = np.zeros(size)
        for part in parts:
            mixed += part.share * part.shares
        self.probabilities = mixed / mixed.sum()
        self.cumulative = np.cumsum(self.probabilities)


def _refuse(name: str, values: np.ndarray, bad: np.ndarray, allowed: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"{name}[{at}] is {values[at].item()!r}; allowed: {allowed}")


def _copy_checked(name: str, given: Any, own: np.ndarray) -> None:
    array = np.asarray(given)
    if array.shape != own.shape or array.dtype.kind != own.dtype.kind:
        raise ValueError(
            f"curriculum state has {name} of shape {array.shape} and type {array.dtype}; "
            f"allowed: shape {own.shape}, type {own.dtype}"
        )
    own[...] = array


def _same_settings(saved: Any, config: CurriculumConfig) -> bool:
    """Whether saved settings are these; one that did not exist when they were saved had its default."""
    try:
        return asdict(CurriculumConfig()) | json.loads(saved) == asdict(config)
    except (TypeError, ValueError):
        return False


def _digest(ids: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(list(ids)).encode()).hexdigest()
