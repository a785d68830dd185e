"""How far a curriculum falls short of the best one, as a number (paper, Eq. 1)."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from forethought.simulate.driver import Chooser, run
from forethought.simulate.oracles import LookAhead, Oracle, checked_weights, state_key
from forethought.simulate.student import KnownStudent, State


@dataclass(frozen=True)
class Regret:
    """The shortfall of a curriculum, in units of J (weighted performance summed over tasks)."""

    optimum: float
    """The largest J that can be reached."""
    achieved: float
    """The curriculum's J: exact for an oracle, a mean over seeds for a `Curriculum`."""
    standard_error: float
    """Of `achieved`; 0 where it is exact, nan with a single seed."""

    @property
    def regret(self) -> float:
        """Optimum minus achieved; not negative beyond the error of `achieved`."""
        return self.optimum - self.achieved


def regret(
    student: KnownStudent,
    method: Oracle | Callable[[int], Chooser],
    decisions: int,
    *,
    weights: Float[np.ndarray, " task"] | None = None,
    seeds: Iterable[int] = range(16),
    look_ahead: LookAhead | None = None,
) -> Regret:
    """Compare a method with exact look-ahead over `decisions` units of training; the student stays as it is.

    Args:
        student: The student, in its start state; small enough for `LookAhead`.
        method: An oracle, judged exactly; or a function from a seed to a new `Curriculum`, driven one draw a
            decision, once per seed.
        decisions: The horizon N.
        weights: Importance w(m) in the objective; that of the student's tasks if left out. A `Curriculum`
            must be given the same by whoever makes it.
        seeds: Seeds of the drives.
        look_ahead: A finished search for the same student, horizon and weights, to save its cost.
    """
    weights = checked_weights(student, weights)
    best = look_ahead or LookAhead(student, decisions, weights)
    if best.decisions != decisions:
        raise ValueError(f"look_ahead has a horizon of {best.decisions}; {decisions} decisions were asked for")
    if isinstance(method, Oracle):
        return Regret(best.optimum, expected_objective(student, method, decisions, weights), 0.0)
    achieved = []
    for seed in seeds:
        learner = copy.deepcopy(student)
        run(learner, method(seed), decisions, tasks_per_decision=1, seed=seed, every=max(decisions, 1))
        achieved.append(objective(learner, weights))
    error = float(np.std(achieved, ddof=1) / np.sqrt(len(achieved))) if len(achieved) > 1 else float("nan")
    return Regret(best.optimum, float(np.mean(achieved)), error)


def objective(student: KnownStudent, weights: Float[np.ndarray, " task"] | None = None) -> float:
    """The weighted performance of the student as it is now: sum over m of w(m) P(m)."""
    return float(checked_weights(student, weights) @ student.competence)


def expected_objective(
    student: KnownStudent, oracle: Oracle, decisions: int, weights: Float[np.ndarray, " task"] | None = None
) -> float:
    """J of an oracle from the student's state (Eq. 1), exact: all branches are followed."""
    weights = checked_weights(student, weights)
    distribution: dict[State, float] = {state_key(student.state): 1.0}
    for decision in range(decisions):
        following: dict[State, float] = {}
        for state, mass in distribution.items():
            shares = oracle.probabilities(state, decision)
            for task in np.flatnonzero(shares).tolist():
                for probability, after in student.transitions(state, task):
                    key = state_key(after)
                    following[key] = following.get(key, 0.0) + mass * float(shares[task]) * probability
        distribution = following
    return sum(mass * float(weights @ student.competence_of(state)) for state, mass in distribution.items())
