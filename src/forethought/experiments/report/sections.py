"""The sections of a report; those with charts are empty frames that the page's script fills."""

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forethought.experiments.figures.names import group_name, learner_name, method_name
from forethought.experiments.report.runs import RunInfo
from forethought.pages import section, table

if TYPE_CHECKING:
    import polars as pl

    from forethought.experiments.figures.study import Study


def results(study: "Study", summary: "pl.DataFrame | None") -> str:
    """Final success of every method."""
    if summary is None:
        return section("Results", _note("No run is finished yet; the curves below show how far they are."))
    head = ("runs with", "learner", "method", "runs", "final success (%)", "interquartile mean", "goals above 0 (%)")
    rows = []
    for row in summary.iter_rows(named=True):
        group = row["group"]
        name = group_name(group, study.texts) if group in study.suite.groups else group
        low, high = row["iqm_low"], row["iqm_high"]
        rows.append(
            (
                name,
                learner_name(row["learner"]),
                method_name(row["method"], row["variant"]),
                str(row["runs"]),
                f"{100 * row['mean']:.1f}" + ("" if row["deviation"] is None else f" ± {100 * row['deviation']:.1f}"),
                f"{100 * row['iqm']:.1f}" + ("" if low is None else f" ({100 * low:.1f} to {100 * high:.1f})"),
                f"{100 * row['coverage']:.1f}",
            )
        )
    note = _note(
        "Of finished runs: mean ± one sample standard deviation over seeds, the interquartile mean with its 95 % "
        "interval from a stratified bootstrap, and the share of evaluated goals with any success."
    )
    return section("Results", note + table(rows, "", head))


def learning() -> str:
    """Success along training."""
    note = _note(
        "Success on the target, or its mean over all goals where these count the same. Bands reach one sample standard "
        "deviation. Curves are of the finished runs of a method, or where it has none yet of all, as far as every seed "
        "has got. Click a name to hide its curves."
    )
    controls = '<div class="controls"><label><input type="checkbox" id="each-seed"> every seed</label>'
    controls += f"{_button('curves', 'CSV of the means')}{_button('scores', 'CSV of every run')}</div>"
    charts = '<div class="legend" id="learning-legend"></div><div class="charts" id="learning-charts"></div>'
    return section("Learning curves", note + controls + charts + _noscript())


def dynamics() -> str:
    """What one run trained on, above what it could do."""
    note = _note(
        "What the curriculum of one run gave its time to, fixed draws counted in, above the success of the agent on "
        "the same goals. What is missing to 100 went to other goals."
    )
    selects = "".join(
        f'<label>{name} <select id="dynamics-{id}"></select></label>'
        for id, name in (("place", "runs with"), ("method", "method"), ("seed", "seed"))
    )
    charts = '<div class="legend" id="dynamics-legend"></div><div class="charts one" id="dynamics-charts"></div>'
    controls = f'<div class="controls">{selects}{_button("dynamics")}</div>'
    return section("Curriculum dynamics", note + controls + charts + _noscript())


def goals() -> str:
    """Success on every goal at the end."""
    note = _note(
        "Success on every evaluated goal at the end, in per cent: mean over the finished "
        "runs of a method, or over all where it has none yet."
    )
    controls = (
        '<div class="controls"><label>runs with <select id="goals-place"></select></label><label>order <select '
        'id="goals-order"><option value="task">of the tasks</option><option value="best">best first</option><option '
        'value="spread">largest difference first</option></select></label><label>find <input id="goals-find" '
        f'type="search" placeholder="goal"></label>{_button("goals")}</div>'
    )
    return section("Success by goal", note + controls + '<div class="heat" id="goals-table"></div>' + _noscript())


def shares(finished: bool) -> str:
    """How many goals are solved how often."""
    if not finished:
        return section("Coverage", _note("No run is finished yet."))
    note = _note("Share of the evaluated goals with final success above each threshold; at 0 this is the coverage.")
    charts = '<div class="legend" id="coverage-legend"></div><div class="charts" id="coverage-charts"></div>'
    return section("Coverage", note + f'<div class="controls">{_button("coverage")}</div>' + charts + _noscript())


def runs(infos: Sequence[RunInfo]) -> str:
    """What was run, where, and how long it took."""
    hours = sum(info.seconds for info in infos) / 3600
    steps = sum(info.row()["steps"] for info in infos)
    devices = sorted({str(info.meta["device"]) for info in infos if info.meta and info.meta.get("device")})
    done, waiting = sum(info.done for info in infos), sum(info.meta is None for info in infos)
    note = _note(
        f"{done} of {len(infos)} runs done, {steps:,} environment steps in {hours:.1f} hours of training (evaluations "
        f"not counted). Trained on: {'; '.join(devices) or 'nothing yet'}."
        + (f" Not listed: {waiting} that {'has' if waiting == 1 else 'have'} not begun." if waiting else "")
    )
    most = max((info.seconds for info in infos), default=0.0)
    head = ("run", "state", "decisions", "steps/s", "hours of training", "device", "started", "commit")
    lines = ["<tr>" + "".join(f'<th scope="col">{name}</th>' for name in head) + "</tr>"]
    for info in infos:
        if info.meta is None:
            continue
        row = info.row()
        bar = f'<span class="bar" style="width:{90 * info.seconds / most if most else 0:.0f}px"></span>'
        cells = (
            html.escape(row["directory"]),
            row["state"],
            f"{row['iterations']} of {row['of']}",
            "" if row["steps_per_second"] is None else f"{row['steps_per_second']:,}",
            f"{bar}{row['hours']:.2f}" if info.seconds else "",
            html.escape(str(row["device"])),
            html.escape(row["started"]),
            html.escape(row["commit"]),
        )
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    body = f"<thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody>"
    return section("Runs and timings", note + f'<div class="runs"><table>{body}</table></div>')


def numbers(about: Mapping[str, str]) -> str:
    """Every table of the page, to save."""
    items = "".join(f"<li>{_button(name, f'{name}.csv')} {html.escape(text)}</li>" for name, text in about.items())
    return section("Numbers", _note("Everything on this page, as CSV files.") + f'<ul class="data">{items}</ul>')


def _button(name: str, text: str = "CSV") -> str:
    return f'<button type="button" data-csv="{name}">{html.escape(text)}</button>'


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _noscript() -> str:
    return "<noscript><p>This chart needs JavaScript; the tables of results and runs do not.</p></noscript>"
