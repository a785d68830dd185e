"""What methods, learners and targets are called on figures and in tables."""

from collections.abc import Iterable, Mapping
from typing import get_args

from forethought.config import Method
from forethought.experiments.suites.schema import UNIFORM

METHODS: tuple[str, ...] = get_args(Method)
"""The order of methods: baselines, the method from its parts to the whole, its control, and the methods of others."""

LEARNERS = {"primitive": "primitive actions", "subroutines": "subroutine calls"}

TARGETS = {
    "reach_floor_1": "Dungeon",
    "defeat_skeleton": "Skeleton",
    "have_64_wood": "Wood",
    "place_furnace": "Furnace",
}
"""The paper's four single targets and their names, in its order (Section 5.1)."""


def method_name(method: str, variant: str = "") -> str:
    """Such as `ALP+D+F`, or `ALP+D+F, L=1` for a variant."""
    return method.upper() + (f", {variant}" if variant else "")


def learner_name(learner: str) -> str:
    """Such as `subroutine calls`."""
    return LEARNERS.get(learner, learner)


def group_name(group: str, texts: Mapping[str, str] | None = None) -> str:
    """A target's short name, or its text; `Uniform weights` for the runs without a target."""
    if group == UNIFORM:
        return "Uniform weights"
    return TARGETS.get(group) or goal_name(group, texts)


def goal_name(goal: str, texts: Mapping[str, str] | None = None) -> str:
    """A goal's text without its full stop, or its id."""
    return (texts or {}).get(goal, goal).removesuffix(".")


def ordered(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct values: those in `order` first and in that order, then the others by name."""
    distinct, order = set(values), list(order)
    return [value for value in order if value in distinct] + sorted(distinct - set(order))
