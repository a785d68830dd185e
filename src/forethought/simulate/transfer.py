"""A general synthetic student: known transfer between tasks, prerequisites, forgetting, noise."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from scipy import sparse

from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
from forethought.simulate.student import State, checked_index
from forethought.tasks import TaskSet

Outcomes = Literal["exact", "gaussian", "bernoulli"]


class TransferStudent:
    """Performance P in [0, 1] on every task, moved by known rules.

    One unit of training on m does the following, everything computed from the state before:

    - readiness(m) = product over s of (1 - prerequisites[s, m] * (1 - P_s)): 1 without prerequisites, and 0
      while a full prerequisite (1.0) is at performance 0;
    - with u = rate * readiness(m): P_m rises by u * (1 - P_m); every other t with transfer[m, t] > 0 rises by
      u * transfer[m, t] * (1 - P_t), with transfer[m, t] < 0 it falls by u * -transfer[m, t] * P_t;
    - every other task loses the share `forgetting` of its performance;
    - with probability 1 - `reliability` the unit of training is wasted: the trained task stays, all others
      forget.

    The outcome observed is the new P_m: as it is, with Gaussian noise of standard deviation `noise` cut to
    [0, 1], or as one success or failure drawn with probability P_m.

    Args:
        tasks: The tasks; their order is that of the matrices.
        transfer: [source, task] in [-1, 1]; the diagonal is not used. None: no transfer.
        prerequisites: [source, task] in [0, 1], zero diagonal. None: none.
        rate: Share of the remaining gap closed by one unit of training, in (0, 1].
        forgetting: Share lost per unit of training on something unrelated, in [0, 1).
        reliability: Probability that a unit of training takes effect, in (0, 1].
        outcomes: How an outcome is observed.
        noise: Standard deviation of the Gaussian noise.
        initial: Performance at the start, in [0, 1]. None: zero.

    Raises:
        ValueError: A matrix of another shape, or a value outside its range.
    """

    def __init__(
        self,
        tasks: TaskSet,
        *,
        transfer: Float[np.ndarray, "task task"] | None = None,
        prerequisites: Float[np.ndarray, "task task"] | None = None,
        rate: float = 0.1,
        forgetting: float = 0.0,
        reliability: float = 1.0,
        outcomes: Outcomes = "exact",
        noise: float = 0.1,
        initial: Float[np.ndarray, " task"] | None = None,
    ):
        count = len(tasks)
        self._tasks = tasks
        self.transfer = _checked("transfer", transfer, (count, count), -1.0)
        self.prerequisites = _checked("prerequisites", prerequisites, (count, count), 0.0)
        initial = _checked("initial", initial, (count,), 0.0)
        own = np.flatnonzero(np.diag(self.prerequisites))
        if own.size:
            raise ValueError(f"task {tasks.ids[own[0]]!r} is its own prerequisite; the diagonal must be 0")
        _check_range("rate", rate, 0.0 < rate <= 1.0, "(0, 1]")
        _check_range("forgetting", forgetting, 0.0 <= forgetting < 1.0, "[0, 1)")
        _check_range("reliability", reliability, 0.0 < reliability <= 1.0, "(0, 1]")
        _check_range("noise", noise, noise >= 0.0, "at least 0")
        if outcomes not in get_args(Outcomes):
            raise ValueError(f"outcomes is {outcomes!r}; allowed are {', '.join(get_args(Outcomes))}")
        self.rate, self.forgetting, self.reliability = rate, forgetting, reliability
        self.outcomes, self.noise = outcomes, noise
        self._effect = self.transfer.copy()
        np.fill_diagonal(self._effect, 1.0)
        self._state: State = tuple(initial.tolist())

    @property
    def tasks(self) -> TaskSet:
        """The tasks, in the order of the matrices."""
        return self._tasks

    @property
    def state(self) -> State:
        """The performances."""
        return self._state

    @property
    def competence(self) -> Float[np.ndarray, " task"]:
        """True performance of every task, in [0, 1]."""
        return np.array(self._state)

    def train(self, task: int, rng: np.random.Generator) -> float:
        """Train once on a task and return the outcome observed, in [0, 1]."""
        branches = self.transitions(self._state, task)
        wasted = len(branches) > 1 and rng.random() >= self.reliability
        self._state = branches[int(wasted)][1]
        performance = float(self._state[int(task)])
        if self.outcomes == "gaussian":
            return float(np.clip(performance + self.noise * rng.standard_normal(), 0.0, 1.0))
        if self.outcomes == "bernoulli":
            return float(rng.random() < performance)
        return performance

    def competence_of(self, state: State) -> Float[np.ndarray, " task"]:
        """Performance in the given state: the state itself."""
        return np.array(state, dtype=np.float64)

    def transitions(self, state: State, task: int) -> tuple[tuple[float, State], ...]:
        """The state after effective training and, if `reliability` < 1, the one after wasted training."""
        trained = checked_index(task, len(self._tasks))
        performance = np.array(state, dtype=np.float64)
        readiness = np.prod(1.0 - self.prerequisites[:, trained] * (1.0 - performance))
        effect = self.rate * readiness * self._effect[trained]
        moved = performance + np.where(effect > 0, effect * (1.0 - performance), effect * performance)
        forgotten = performance * (1.0 - self.forgetting)
        taken = np.where(self._effect[trained] != 0, moved, forgotten)
        branches = [(self.reliability, tuple(taken.tolist()))]
        if self.reliability < 1.0:
            forgotten[trained] = performance[trained]
            branches.append((1.0 - self.reliability, tuple(forgotten.tolist())))
        return tuple(branches)

    def connectivity(self) -> LearningConnectivity:
        """The true graph: the larger of the positive transfer and the prerequisite strength."""
        weights = np.maximum(self.transfer, self.prerequisites)
        np.fill_diagonal(weights, 0.0)
        return LearningConnectivity.from_weights(self._tasks.ids, sparse.csr_array(weights))

    def evidence(self) -> FeasibilityEvidence:
        """The true evidence: prerequisites in shares; a task without any is feasible from scratch."""
        totals = self.prerequisites.sum(axis=0)
        weights = self.prerequisites / np.where(totals > 0, totals, 1.0)
        return FeasibilityEvidence.from_weights(
            self._tasks.ids, sparse.csr_array(weights), np.where(totals > 0, 0.0, 1.0)
        )

    def interestingness(self) -> Interestingness:
        """A judgment for `omni`: once a task is mastered, what it needed is as boring as it was needed."""
        return Interestingness.from_weights(self._tasks.ids, sparse.csr_array(self.prerequisites.T))


def _checked(
    name: str, values: Float[np.ndarray, "..."] | None, shape: tuple[int, ...], lowest: float
) -> Float[np.ndarray, "..."]:
    if values is None:
        return np.zeros(shape)
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; the tasks ask for {shape}")
    outside = ~((array >= lowest) & (array <= 1.0))
    if outside.any():
        place = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ValueError(f"{name}{list(place)} is {array[place]}; allowed is [{lowest:g}, 1]")
    return array


def _check_range(name: str, value: float, valid: bool, allowed: str) -> None:
    if not valid:
        raise ValueError(f"{name} is {value}; allowed is {allowed}")
