"""A grid of tasks in which a cell can be learnt only once a lower neighbour is mastered."""

import numpy as np
from jaxtyping import Float
from scipy import sparse

from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
from forethought.simulate.student import State, checked_index
from forethought.tasks import Task, TaskSet


class PrerequisiteGrid:
    """The grid of the teachDeepRL toy space (Portelas et al., 2020), with cells as named tasks.

    Cell (row, column) has index row * size + column and a level from 0 to `full`. The lower neighbours of a
    cell are the up to three cells whose coordinates each equal its own or are one less. One unit of training
    adds 1 to the level if the cell is the origin or some lower neighbour has a level of at least `unlock`;
    otherwise it is wasted. The outcome observed is the level after training over `full`, a fraction.

    Args:
        size: Cells along each side, at least 2.
        full: Highest level (100 in the original).
        unlock: Level from which a cell opens the cells above it (75 in the original).

    Raises:
        ValueError: `size` below 2, or not 1 <= `unlock` <= `full`.
    """

    def __init__(self, size: int = 10, *, full: int = 100, unlock: int = 75):
        if size < 2:
            raise ValueError(f"size is {size}; a grid needs at least 2 cells a side")
        if not 1 <= unlock <= full:
            raise ValueError(f"unlock is {unlock}; allowed is 1 to full ({full})")
        self.size, self.full, self.unlock = size, full, unlock
        self._lower = tuple(_lower_neighbours(cell, size) for cell in range(size * size))
        self._levels = [0] * (size * size)
        self._tasks = TaskSet(
            [
                Task(f"cell-{row}-{column}", f"master cell ({row}, {column})")
                for row in range(size)
                for column in range(size)
            ]
        )

    @property
    def tasks(self) -> TaskSet:
        """The cells in index order, all of weight 1."""
        return self._tasks

    @property
    def far_corner(self) -> str:
        """Id of the cell farthest from the origin, `size - 1` diagonal steps away."""
        return self._tasks.ids[-1]

    @property
    def levels(self) -> tuple[int, ...]:
        """Current level of every cell, 0 to `full`."""
        return tuple(self._levels)

    @property
    def state(self) -> State:
        """The levels."""
        return self.levels

    @property
    def competence(self) -> Float[np.ndarray, " task"]:
        """Level over `full`, in [0, 1]."""
        return np.asarray(self._levels, dtype=np.float64) / self.full

    def train(self, task: int, rng: np.random.Generator) -> float:
        """Train once on a cell and return its new level over `full`; nothing here is random."""
        cell = checked_index(task, len(self._levels))
        if self._learnable(self._levels, cell):
            self._levels[cell] = min(self._levels[cell] + 1, self.full)
        return self._levels[cell] / self.full

    def competence_of(self, state: State) -> Float[np.ndarray, " task"]:
        """Level over `full` in the given state."""
        return np.asarray(state, dtype=np.float64) / self.full

    def transitions(self, state: State, task: int) -> tuple[tuple[float, State], ...]:
        """The one state that training on `task` leads to."""
        cell = checked_index(task, len(state))
        if state[cell] >= self.full or not self._learnable(state, cell):
            return ((1.0, state),)
        return ((1.0, (*state[:cell], state[cell] + 1, *state[cell + 1 :])),)

    def connectivity(self) -> LearningConnectivity:
        """The true graph: weight 1 from each lower neighbour to the cell."""
        weights = sparse.lil_array((len(self._lower), len(self._lower)), dtype=np.float64)
        for cell, lower in enumerate(self._lower):
            for source in lower:
                weights[source, cell] = 1.0
        return LearningConnectivity.from_weights(self._tasks.ids, sparse.csr_array(weights))

    def evidence(self) -> FeasibilityEvidence:
        """The true evidence: equal shares over the lower neighbours; the origin is feasible from scratch."""
        weights = sparse.lil_array((len(self._lower), len(self._lower)), dtype=np.float64)
        for cell, lower in enumerate(self._lower):
            for source in lower:
                weights[source, cell] = 1.0 / len(lower)
        from_scratch = np.zeros(len(self._lower))
        from_scratch[0] = 1.0
        return FeasibilityEvidence.from_weights(self._tasks.ids, sparse.csr_array(weights), from_scratch)

    def interestingness(self) -> Interestingness:
        """A judgment for `omni`: once a cell is mastered, no cell that is nowhere farther out is interesting."""
        row, column = np.divmod(np.arange(self.size**2), self.size)
        boring = (row[:, None] >= row) & (column[:, None] >= column)
        return Interestingness.from_judgments(self._tasks.ids, ~boring)

    def _learnable(self, levels: list[int] | State, cell: int) -> bool:
        return cell == 0 or any(levels[source] >= self.unlock for source in self._lower[cell])


def _lower_neighbours(cell: int, size: int) -> tuple[int, ...]:
    row, column = divmod(cell, size)
    steps = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
    return tuple(r * size + c for r, c in steps if r >= 0 and c >= 0)
