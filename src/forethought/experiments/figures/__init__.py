"""The paper's figures, from any suite at any scale. The captions are in our own words."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from forethought.experiments.figures import dynamics, learning, sensitivity, uniform
from forethought.experiments.figures.names import TARGETS
from forethought.experiments.figures.options import Options
from forethought.experiments.figures.output import Drawn, save
from forethought.experiments.figures.study import MissingRunsError, Study, load_study
from forethought.experiments.figures.style import styled

__all__ = ["FIGURES", "Drawn", "MissingRunsError", "Options", "Spec", "Study", "draw_figure", "load_study"]


@dataclass(frozen=True)
class Spec:
    """One figure of the paper."""

    suite: str
    """The suite whose runs it shows."""
    draw: Callable[[Study, Options], Drawn] | Callable[[Study, Options, str], Drawn]
    """Draws it; a figure of one target takes that target too."""
    target: str = ""
    """The target of the paper that it shows, if it shows one."""


FIGURES: dict[int, Spec] = {
    1: Spec("targets", learning.single_targets),
    2: Spec("targets", dynamics.across_methods, "have_64_wood"),
    3: Spec("uniform", uniform.uniform_weights),
    4: Spec("sensitivity", sensitivity.sensitivity),
    5: Spec("targets", dynamics.across_methods, "reach_floor_1"),
    6: Spec("targets", dynamics.across_methods, "defeat_skeleton"),
    7: Spec("targets", dynamics.across_methods, "place_furnace"),
    8: Spec("targets", dynamics.across_seeds, "reach_floor_1"),
    9: Spec("targets", dynamics.across_seeds, "defeat_skeleton"),
    10: Spec("targets", dynamics.across_seeds, "have_64_wood"),
    11: Spec("targets", dynamics.across_seeds, "place_furnace"),
    12: Spec("smoothing", learning.smoothed_targets),
}
"""The paper's figures by number."""


def draw_figure(number: int, study: Study, out: str | Path, options: Options = Options()) -> list[Path]:  # noqa: B008
    """Draw a figure of the paper from the records of a study.

    Args:
        number: 1 to 12.
        study: The records.
        out: Directory for `figure-NUMBER` as PNG, SVG, PDF, its numbers as CSV, its caption as Markdown.
        options: What the caller chose about it.

    Returns:
        Paths of the files.

    Raises:
        MissingRunsError: if the study has no runs for it; the message names the command that makes them.
        ValueError: for an unknown number, method, target or goal.
    """
    with styled():
        return save(drawn_figure(number, study, options), out, f"figure-{number}")


def drawn_figure(number: int, study: Study, options: Options = Options()) -> Drawn:  # noqa: B008
    """The figure that `draw_figure` writes; call it inside `styled`."""
    if number not in FIGURES:
        raise ValueError(f"figure is {number!r}; allowed are 1 to {max(FIGURES)}")
    spec = FIGURES[number]
    try:
        if not spec.target:
            return spec.draw(study, options)  # pyright: ignore[reportCallIssue]
        if options.target:
            return spec.draw(study, options, options.target)  # pyright: ignore[reportCallIssue]
        target = stand_in(study, spec.target)
        drawn = spec.draw(study, options, target)  # pyright: ignore[reportCallIssue]
        if target == spec.target:
            return drawn
        return replace(drawn, note=f"{drawn.note} The published figure shows another target, {TARGETS[spec.target]}.")
    except MissingRunsError as error:
        raise MissingRunsError(f"figure {number}: {error}") from None
    except ValueError as error:
        raise ValueError(f"figure {number}: {error}") from None


def stand_in(study: Study, target: str) -> str:
    """A target of the paper, or the one that has its place in the list of a smaller suite.

    Raises:
        ValueError: if the suite has too few targets.
    """
    place = list(TARGETS).index(target)
    if target in study.targets:
        return target
    if place >= len(study.targets):
        allowed = ", ".join(study.targets) or "none"
        raise ValueError(
            f"target {target} is not in suite {study.suite.name} at scale {study.suite.scale}, and nothing stands in "
            f"its place; name one of: {allowed}"
        )
    return study.targets[place]
