"""A suite's runs as one self-contained HTML page: what was run, what came of it, and all the numbers."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from forethought.experiments.figures.names import LEARNERS, METHODS, group_name, learner_name, method_name, ordered
from forethought.experiments.figures.study import Study
from forethought.experiments.figures.style import SERIES_COLOURS, TARGET_COLOUR, method_line
from forethought.experiments.report import sections
from forethought.experiments.report.datasets import ABOUT, datasets, encoded
from forethought.experiments.report.runs import RunInfo, run_infos
from forethought.files import replacing
from forethought.pages import fill, page_file, script_safe

PACKAGE = "forethought.experiments.report"

TURNS = ("8 3", "2 2", "14 3 2 3")
"""Dashes of variants of a single method, one after the other each time that the colours are used up."""

SHARED = ("2 5", "18 6", "2 5 8 5")
"""Dashes of variants that several methods have, each in its own colour."""


def write_report(path: str | Path, study: Study, out: str | Path) -> None:
    """Write a suite's report: it opens from disk, loads nothing from anywhere, and forbids itself to.

    Args:
        path: The HTML file; replaced whole.
        study: The records.
        out: Folder of the sweep.

    Raises:
        ValueError: If no run has begun, or a directory holds a run with another configuration.
    """
    infos = run_infos(study.suite, out)
    if all(info.meta is None for info in infos):
        raise ValueError(
            f"suite {study.suite.name} at scale {study.suite.scale}: no run in {out} has begun; "
            f"begin with: {study.command}"
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(page(study, infos), encoding="utf-8")


def page(study: Study, infos: Sequence[RunInfo]) -> str:
    """The text of the page that `write_report` writes."""
    tables = datasets(study, infos)
    parts = [sections.results(study, tables.get("summary"))]
    if "curves" in tables:
        parts += [sections.learning(), sections.dynamics(), sections.goals(), sections.shares("coverage" in tables)]
    parts += [sections.runs(infos), sections.numbers({name: ABOUT[name] for name in tables})]
    return fill(
        PACKAGE,
        "report.html",
        title=html.escape(f"{study.suite.name} at scale {study.suite.scale}"),
        subtitle=html.escape(_subtitle(study, infos)),
        style=page_file("forethought", "base.css") + page_file(PACKAGE, "report.css"),
        script=page_file(PACKAGE, "report.js"),
        sections="\n".join(parts),
        data=script_safe(_data(study, tables)),
    )


def _subtitle(study: Study, infos: Sequence[RunInfo]) -> str:
    done = sum(info.done for info in infos)
    title = study.suite.title
    return f"{title[:1].upper()}{title[1:]} · {study.suite.about} · {done} of {len(infos)} runs done · {study.command}"


def _data(study: Study, tables: dict[str, pl.DataFrame]) -> dict[str, Any]:
    """What the page's script draws."""
    suite = study.suite
    learners = ordered((run.learner for run in suite.runs), LEARNERS)
    return {
        "suite": suite.name,
        "scale": suite.scale,
        "groups": {group: group_name(group, study.texts) for group in suite.groups},
        "learners": learners,
        "learnerNames": {learner: learner_name(learner) for learner in learners},
        "looks": _looks(study),
        "seriesColours": SERIES_COLOURS,
        "targetColour": TARGET_COLOUR,
        "texts": {goal: text.removesuffix(".") for goal, text in study.texts.items()},
        "order": list(study.texts),
        "tables": {name: encoded(table) for name, table in tables.items()},
    }


def _looks(study: Study) -> dict[str, dict[str, str]]:
    """Colour and dashes of each method and variant by name; a variant of a single method has a colour of its own."""
    methods: dict[str, set[str]] = {}
    for run in study.suite.runs:
        methods.setdefault(run.variant, set()).add(run.method)
    own, shared = ([v for v in methods if v and (len(methods[v]) > 1) == several] for several in (False, True))
    found = {}
    for method in ordered((run.method for run in study.suite.runs), METHODS):
        line = method_line(method)
        dashes = "" if line.dashes == "-" else " ".join(f"{2 * part:g}" for part in line.dashes[1])
        looks = {"": (line.colour, dashes)}
        looks |= {v: (line.colour, SHARED[place % len(SHARED)]) for place, v in enumerate(shared)}
        for place, variant in enumerate(own):
            turn, colour = divmod(place, len(SERIES_COLOURS))
            looks[variant] = (SERIES_COLOURS[colour], TURNS[turn % len(TURNS)])
        for variant, (colour, dash) in looks.items():
            if method in methods.get(variant, ()):
                found[method_name(method, variant)] = {"colour": colour, "dash": dash}
    return found
