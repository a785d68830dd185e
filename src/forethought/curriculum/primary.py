"""What the primary share of the sampling follows: one class for each score of the table of methods.

A score is a signal >= 0 for every task, or several with shares that sum to 1; how a signal becomes sampling
probabilities (importance weights, exploration, warm-up) is the same for all and not decided here.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int64
from scipy import sparse

from forethought.curriculum.bandit import BestChange
from forethought.curriculum.config import CurriculumConfig
from forethought.curriculum.estimates import Estimates
from forethought.curriculum.interest import Interest
from forethought.curriculum.mastery import Mastering
from forethought.curriculum.replay import Replay
from forethought.curriculum.scores import intermediate_signal, learnability_signal, progress_signal


@runtime_checkable
class Primary(Protocol):
    """A score: what it has to remember, and its signals."""

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """Take in one iteration's success rates of some tasks, which `estimates` has already taken in.

        Args:
            tasks: indices, each once.
            rates: what was observed.
            before: the estimated success rates before that.
            estimates: of all tasks, now.
        """
        ...

    def refresh(self, estimates: Estimates) -> None:
        """Compute anew all that follows from the estimates; what does not, `arrays` holds."""
        ...

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """Name, share and values of each signal, for the decision after `iteration` iterations."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What a saved state must hold beside the estimates, by name; the arrays themselves, all >= 0 and <= 1."""
        ...


def make_primary(
    score: str,
    size: int,
    config: CurriculumConfig,
    connectivity: sparse.csr_array | None = None,
    interest: Interest | None = None,
) -> Primary | None:
    """The score of a method.

    Args:
        score: as in the table of methods.
        size: number of tasks.
        config: the settings.
        connectivity: sparse [source target], for a score that needs an order of the tasks.
        interest: what masks learning progress.

    Returns:
        None for a score that does not depend on what is observed.
    """
    match score:
        case "progress":
            return Progress(size, config, interest)
        case "intermediate":
            return RateSignal("intermediate", intermediate_signal)
        case "learnability":
            return RateSignal("learnability", learnability_signal)
        case "replay":
            return Replay(size, config.rank_temperature, config.staleness_share)
        case "best_change":
            return BestChange(size, config.max_observations)
        case "mastering" if connectivity is not None:
            return Mastering(connectivity, config)
        case _:
            return None


class Progress:
    """h(LP-hat) (paper, Section 5), masked by interestingness if that is given (Zhang et al. 2023, OMNI)."""

    def __init__(self, size: int, config: CurriculumConfig, interest: Interest | None = None):
        self._config = config
        self._interest = interest
        self._signal = np.zeros(size)

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """Only the rows of observed tasks change."""
        progress = estimates.learning_progress[tasks]
        self._signal[tasks] = progress_signal(progress, self._config.exponent, self._config.progress)

    def refresh(self, estimates: Estimates) -> None:
        """Compute every row."""
        self._signal = progress_signal(estimates.learning_progress, self._config.exponent, self._config.progress)

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """The one signal `progress`."""
        if self._interest is None:
            return [("progress", 1.0, self._signal)]
        return [("progress", 1.0, self._signal * self._interest.factors(estimates.success_rate))]

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing that the estimates do not hold."""
        return {}


class RateSignal:
    """A signal that is a function of the estimated success rates."""

    def __init__(self, name: str, function: Callable[[Float64[np.ndarray, " task"]], Float64[np.ndarray, " task"]]):
        self._name, self._function = name, function

    def observe(
        self,
        tasks: Int64[np.ndarray, " seen"],
        rates: Float64[np.ndarray, " seen"],
        before: Float64[np.ndarray, " seen"],
        estimates: Estimates,
    ) -> None:
        """Nothing to remember."""

    def refresh(self, estimates: Estimates) -> None:
        """Nothing to compute."""

    def signals(self, estimates: Estimates, iteration: int) -> list[tuple[str, float, Float64[np.ndarray, " task"]]]:
        """The one signal."""
        return [(self._name, 1.0, self._function(estimates.success_rate))]

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing that the estimates do not hold."""
        return {}
