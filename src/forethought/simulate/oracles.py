"""The decision rules of the paper's Section 3, for a student whose response to training is known.

Each drops one more of the conditions under which greedy local progress is optimal: `local` assumes all three,
`weighted` allows for importance, `cross-task` also for immediate effects on other tasks, and `LookAhead` for
all effects on future learning (Eq. 3).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from forethought.simulate.student import KnownStudent, State

Rule = Literal["local", "weighted", "cross-task"]

_TIE = 1e-12
"""Values this close count as equal, so that rounding does not break ties."""


class Oracle(ABC):
    """A curriculum policy that sees the student's true state; it splits evenly between equally good tasks."""

    @abstractmethod
    def probabilities(self, state: State, decision: int) -> Float[np.ndarray, " task"]:
        """Probability of training on each task at this decision (counted from 0)."""

    def choose(self, state: State, decision: int, rng: np.random.Generator) -> int:
        """Draw the task to train on."""
        shares = self.probabilities(state, decision)
        return int(rng.choice(len(shares), p=shares))


class UniformChoice(Oracle):
    """Every task equally often, whatever the state."""

    def __init__(self, student: KnownStudent):
        self._shares = np.full(len(student.tasks), 1.0 / len(student.tasks))

    def probabilities(self, state: State, decision: int) -> Float[np.ndarray, " task"]:
        """Equal shares."""
        return self._shares.copy()


class GreedyOracle(Oracle):
    """The task with the best expected immediate effect, by one of three rules (paper, Section 3.2).

    - "local": E[LP(m; m)], the expected progress on m itself;
    - "weighted": w(m) E[LP(m; m)];
    - "cross-task": sum over m' of w(m') E[LP(m'; m)]. With equal weights this is the paper's rule without
      Condition 2; with others its immediate part of Eq. 3.

    Args:
        student: The student decided for; its model is used, its current state is not.
        rule: Which rule.
        weights: w(m) >= 0; those of the student's tasks if left out. "local" uses none.
    """

    def __init__(self, student: KnownStudent, rule: Rule = "local", weights: Float[np.ndarray, " task"] | None = None):
        if rule not in get_args(Rule):
            raise ValueError(f"rule is {rule!r}; allowed are {', '.join(get_args(Rule))}")
        self._student, self.rule = student, rule
        self._weights = checked_weights(student, weights)

    def values(self, state: State) -> Float[np.ndarray, " task"]:
        """What the rule thinks each task is worth in this state."""
        progress = immediate_progress(self._student, state)
        if self.rule == "cross-task":
            return progress @ self._weights
        own = np.diag(progress)
        return own * self._weights if self.rule == "weighted" else own.copy()

    def probabilities(self, state: State, decision: int) -> Float[np.ndarray, " task"]:
        """Equal shares over the best tasks."""
        return best_shares(self.values(state))


class LookAhead(Oracle):
    """The optimal policy for a horizon of N units of training (Eq. 3), by exact dynamic programming.

    Costs time and memory in proportion to (reachable states) x (tasks), so it is meant for tiny problems.

    Args:
        student: The student, in the state the search starts from.
        decisions: The horizon N.
        weights: w(m) >= 0; those of the student's tasks if left out.
        max_states: Give up beyond this many (state, decision) pairs.

    Raises:
        ValueError: A negative horizon, or more pairs than `max_states`.
    """

    def __init__(
        self,
        student: KnownStudent,
        decisions: int,
        weights: Float[np.ndarray, " task"] | None = None,
        *,
        max_states: int = 200_000,
    ):
        if decisions < 0:
            raise ValueError(f"decisions is {decisions}; allowed is 0 or more")
        weights = checked_weights(student, weights)
        self.decisions = decisions
        self._start = state_key(student.state)
        layers = _reachable(student, self._start, decisions, max_states)
        worth = {state: float(weights @ student.competence_of(state)) for state in layers[-1][0]}
        self._values: list[dict[State, list[float]]] = []
        for _, moves in reversed(layers[:-1]):
            values = {
                state: [sum(p * worth[successor] for p, successor in branches) for branches in options]
                for state, options in moves.items()
            }
            self._values.append(values)
            worth = {state: max(each) for state, each in values.items()}
        self._values.reverse()
        self._optimum = worth[self._start]

    @property
    def optimum(self) -> float:
        """The largest J that any curriculum can reach from the start state (Eq. 1)."""
        return self._optimum

    def values(self, state: State, decision: int) -> Float[np.ndarray, " task"]:
        """Expected J if each task is trained at this decision and all later ones are optimal.

        These exceed the bracket of Eq. 3 by sum over m of w(m) P(m; state), the same for every task.

        Raises:
            KeyError: The state cannot be reached by this decision, or the decision lies outside the horizon.
        """
        if not 0 <= decision < self.decisions:
            raise KeyError(f"decision {decision} is outside the horizon of {self.decisions}")
        try:
            return np.array(self._values[decision][state_key(state)])
        except KeyError:
            raise KeyError(f"state {state} cannot be reached by decision {decision} from {self._start}") from None

    def probabilities(self, state: State, decision: int) -> Float[np.ndarray, " task"]:
        """Equal shares over the optimal tasks."""
        return best_shares(self.values(state, decision))


def immediate_progress(student: KnownStudent, state: State) -> Float[np.ndarray, "trained task"]:
    """E[LP(task; trained)]: expected change of each performance by one unit of training on each task."""
    before = student.competence_of(state)
    return np.stack(
        [
            sum((p * student.competence_of(after) for p, after in student.transitions(state, task)), -before)
            for task in range(len(student.tasks))
        ]
    )


def best_shares(values: Float[np.ndarray, " task"]) -> Float[np.ndarray, " task"]:
    """Equal shares over the largest values, ties up to rounding included."""
    best = values >= values.max() - _TIE
    return best / best.sum()


def checked_weights(student: KnownStudent, weights: Float[np.ndarray, " weight"] | None) -> Float[np.ndarray, " task"]:
    """The weights as an array of the tasks' length; ValueError if of another length or negative."""
    array = np.asarray(student.tasks.weights if weights is None else weights, dtype=np.float64)
    if array.shape != (len(student.tasks),):
        raise ValueError(f"weights has shape {array.shape}; the student has {len(student.tasks)} tasks")
    if not (array >= 0).all():
        raise ValueError(f"weights holds {array.min()}; allowed is 0 or more")
    return array


def state_key(state: State) -> State:
    """The state with rounding noise removed, so that orders of training that commute meet again."""
    return tuple(value if isinstance(value, int) else round(value, 12) for value in state)


Branches = Sequence[tuple[float, State]]


def _reachable(
    student: KnownStudent, start: State, decisions: int, max_states: int
) -> list[tuple[list[State], dict[State, list[Branches]]]]:
    """Per decision, the reachable states and where each task leads from them; the last has no moves."""
    known: dict[State, list[Branches]] = {}
    layers: list[tuple[list[State], dict[State, list[Branches]]]] = []
    states, total = [start], 1
    for _ in range(decisions):
        for state in states:
            if state not in known:
                known[state] = [
                    [(p, state_key(after)) for p, after in student.transitions(state, task)]
                    for task in range(len(student.tasks))
                ]
        layers.append((states, {state: known[state] for state in states}))
        states = list(dict.fromkeys(after for state in states for branches in known[state] for _, after in branches))
        total += len(states)
        if total > max_states:
            raise ValueError(
                f"more than max_states ({max_states}) pairs of state and decision can be reached within"
                f" {decisions} decisions; look ahead less far or on a smaller problem"
            )
    layers.append((states, {}))
    return layers
