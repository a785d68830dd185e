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

    def __post_init__(self) -> None:
        _require(self, "exponent", "> 0", _real(self.exponent) and self.exponent > 0)
        _require(self, "progress", "'absolute' or 'positive'", self.progress in ("absolute", "positive"))
        alpha = self.downstream_coefficient
        _require(self, "downstream_coefficient", ">= 0", _real(alpha) and alpha >= 0)
        _require(self, "path_discount", "in (0, 1]", _real(self.path_discount) and 0 < self.path_discount <= 1)
        solved = self.solved_threshold
        _require(self, "solved_threshold", "in (0, 1]", _real(solved) and 0 < solved <= 1)
        _require(self, "smoothing", "in (0, 1]", _real(self.smoothing) and 0 < self.smoothing <= 1)
        for name in ("feasibility_threshold", "exploration", "feasibility_share"):
            value = getattr(self, name)
            _require(self, name, "in [0, 1]", _real(value) and 0 <= value <= 1)
        for name, least in (("max_path_length", 1), ("max_observations", 2), ("lookback", 1), ("warmup", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            _require(self, name, f"a whole number >= {least}", whole and value >= least)


def _real(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)


def _require(config: CurriculumConfig, field: str, allowed: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{field} is {getattr(config, field)!r}; allowed: {allowed}")
