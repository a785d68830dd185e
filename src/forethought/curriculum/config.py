"""The settings of a curriculum; the defaults are the paper's (Appendix A and Section 5.2)."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class CurriculumConfig:
    """How estimates are made, valued and turned into sampling probabilities.

    Raises:
        ValueError: if a field is out of its range; the message names the field, the value and the range.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    exponent: float = 0.5
    """rho > 0: how strongly differences in learning progress show."""
    progress: Literal["absolute", "positive"] = "absolute"
    """h: |x|^rho, or max(x, 0)^rho, which ignores tasks that get worse."""
    downstream_coefficient: float = 1.0
    """alpha >= 0: the value of downstream potential relative to a task's own weight."""
    max_path_length: int = 2
    """L >= 1: edges in the longest path that counts for downstream potential."""
    path_discount: float = 0.3
    """kappa in (0, 1]: factor for each edge of a path."""
    solved_threshold: float = 0.9
    """tau_solved in (0, 1]: a task with at least this success rate needs no more help from others."""
    feasibility_threshold: float = 0.05
    """tau_f in [0, 1]: feasibility guides sampling of tasks up to this success rate only."""
    smoothing: float = 0.3
    """beta in (0, 1]: weight of a new observation in the success rate's moving average."""
    max_observations: int = 7
    """N_obs >= 2: points in the fit of learning progress, the current one included."""
    lookback: int = 12
    """H_LP >= 1: iterations that the fit looks back."""
    warmup: int = 16
    """Iterations >= 0 of uniform sampling at the start of every adaptive method."""
    exploration: float = 0.2
    """Share in [0, 1] of the sampling that does not follow the primary score."""
    feasibility_share: float = 0.5
    """Part in [0, 1] of `exploration` that is guided by feasibility, in methods that use it."""
    rank_temperature: float = 0.1
    """beta > 0 of `plr`: the closer to 0, the more of the sampling goes to the first ranks."""
    staleness_share: float = 0.1
    """rho in [0, 1] of `plr`: part of the primary share that follows how long ago tasks were observed."""
    prerequisite_threshold: float = 0.5
    """In (0, 1], for `mastering-rate`: connectivity from which on a task counts as a prerequisite of another."""
    mastery_power: float = 6.0
    """p > 0 of `mastering-rate`: how nearly mastered the prerequisites must be."""
    mastery_potential: float = 0.5
    """gamma in [0, 1] of `mastering-rate`: what is left to master counts so much, learning progress the rest."""
    predecessor_share: float = 0.2
    """delta_pred in [0, 1) of `mastering-rate`: share of its attention that a task hands to its prerequisites."""
    successor_share: float = 0.05
    """delta_succ in [0, 1] of `mastering-rate`: share of the rest that it hands to those whose prerequisite it is."""
    boring_threshold: float = 0.5
    """In (0, 1], for `omni`: share of the judgments from which on a mastered task makes another boring."""
    boring_weight: float = 0.001
    """In [0, 1], for `omni`: factor on the learning progress of a boring task."""

    def __post_init__(self) -> None:
        _require(self, "progress", "'absolute' or 'positive'", self.progress in ("absolute", "positive"))
        alpha, handed = self.downstream_coefficient, self.predecessor_share
        _require(self, "downstream_coefficient", ">= 0", _real(alpha) and alpha >= 0)
        _require(self, "predecessor_share", "in [0, 1)", _real(handed) and 0 <= handed < 1)
        for name in _POSITIVE:
            value = getattr(self, name)
            _require(self, name, "> 0", _real(value) and value > 0)
        for name in _POSITIVE_SHARES:
            value = getattr(self, name)
            _require(self, name, "in (0, 1]", _real(value) and 0 < value <= 1)
        for name in _SHARES:
            value = getattr(self, name)
            _require(self, name, "in [0, 1]", _real(value) and 0 <= value <= 1)
        for name, least in (("max_path_length", 1), ("max_observations", 2), ("lookback", 1), ("warmup", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            _require(self, name, f"a whole number >= {least}", whole and value >= least)


_POSITIVE = ("exponent", "rank_temperature", "mastery_power")
_POSITIVE_SHARES = ("path_discount", "solved_threshold", "smoothing", "prerequisite_threshold", "boring_threshold")
_SHARES = (
    "feasibility_threshold",
    "exploration",
    "feasibility_share",
    "staleness_share",
    "mastery_potential",
    "successor_share",
    "boring_weight",
)


def _real(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)


def _require(config: CurriculumConfig, field: str, allowed: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{field} is {getattr(config, field)!r}; allowed: {allowed}")
