"""Draw the documentation's pictures from real numbers: `python docs/pictures.py [FOLDER]` (default: docs/images).

The numbers are those of drives of `forethought.simulate`, of the graphs that ship, and for one picture of two training
runs, whose numbers `docs/extract_runs.py` has taken down; each picture's stand beside it as CSV.
"""

import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from forethought import Curriculum, CurriculumConfig
from forethought.craftax import shipped
from forethought.curriculum.potential import DownstreamPotential
from forethought.experiments.figures.style import SERIES_COLOURS, TARGET_COLOUR, method_line, styled
from forethought.simulate import PrerequisiteGrid, run
from forethought.simulate.driver import Chooser
from forethought.tasks import Task, TaskSet

IMAGES = Path(__file__).parent / "images"
SIZE = 10
LONG = CurriculumConfig(max_path_length=20)
"""In the grid an edge leads to the next cell only, so long paths must count."""

Table = list[dict[str, Any]]
Picture = tuple[Figure, Table]


def far_corner(method: str, seed: int, config: CurriculumConfig = LONG) -> tuple[PrerequisiteGrid, Curriculum]:
    """A new student and a curriculum that wants it to master the corner farthest from the origin."""
    student = PrerequisiteGrid(SIZE)
    curriculum = Curriculum(
        student.tasks.with_target(student.far_corner),
        connectivity=student.connectivity(),
        feasibility=student.evidence(),
        method=method,
        seed=seed,
        config=config,
    )
    return student, curriculum


class Watched:
    """A curriculum whose draws are kept, decision by decision."""

    def __init__(self, curriculum: Chooser):
        self._curriculum = curriculum
        self.draws: list[np.ndarray] = []

    def sample(self, k: int) -> np.ndarray:
        """Draw and keep."""
        self.draws.append(self._curriculum.sample(k))
        return self.draws[-1]

    def update(self, task_indices: np.ndarray, successes: np.ndarray) -> None:
        """Pass on."""
        self._curriculum.update(task_indices, successes)


def craftax() -> Picture:
    """What an agent in Craftax was trained on, above its success: two runs, one target."""
    with (IMAGES / "craftax.csv").open(encoding="utf-8", newline="") as file:
        table: Table = list(csv.DictReader(file))
    goals = ["have_1_wood", "have_2_wood", "have_4_wood", "have_8_wood", "other goals"]
    labels = ["1 wood", "2 wood", "4 wood", "8 wood, the target", "28 other goals"]
    colours = ["#0072b2", "#56b4e9", "#009e73", TARGET_COLOUR, "#d9d9d9"]
    figure = Figure(figsize=(6.75, 3.1), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[1.4, 1])
    for column, (method, title) in enumerate((("alp", "ALP: learning progress alone"), ("alp+d+f", "ALP+D+F"))):
        upper, lower = panels[0, column], panels[1, column]
        end = max(float(row["steps"]) for row in table if row["what"] == "success") / 1e6
        bottom: Any = 0.0
        for goal, label, colour in zip(goals, labels, colours, strict=True):
            values = {
                what: np.array(
                    [
                        (float(row["steps"]) / 1e6, float(row["value"]) * 100)
                        for row in table
                        if (row["method"], row["what"], row["goal"]) == (method, what, goal)
                    ]
                ).reshape(-1, 2)
                for what in ("trained on", "success")
            }
            steps, shares = values["trained on"].T
            top = bottom + shares
            edges = [np.append(edge, edge[-1]) for edge in (np.broadcast_to(bottom, shares.shape), top)]
            names = {"label": label} if column == 0 else {}
            upper.fill_between(np.append(steps, end), *edges, step="post", color=colour, linewidth=0, **names)
            lower.plot(*values["success"].T, color=colour, marker=".", markersize=4)
            bottom = top
        upper.set(title=title, ylim=(0, 100))
        lower.set(ylim=(-2, 102), xlim=(0, end), xlabel="environment steps (millions)")
    panels[0, 0].set_ylabel("trained on (%)")
    panels[1, 0].set_ylabel("success (%)")
    figure.legend(loc="outside lower center", ncols=5, columnspacing=1.2, handlelength=1)
    return figure, table


def curriculum() -> Picture:
    """What was trained on, by distance from the start, above the student's competence: two methods."""
    bands = ["0 to 1 step away", "2 to 3", "4 to 5", "6 to 7", "8", "the target, 9 steps away"]
    distance = np.maximum(*np.divmod(np.arange(SIZE * SIZE), SIZE))
    band = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])[distance]
    band[-1] = 5
    decisions, block = 88, 4
    figure = Figure(figsize=(6.75, 3.1), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[1.4, 1])
    colours = ["#332288", "#0072b2", "#56b4e9", "#009e73", "#ddcc77", TARGET_COLOUR]
    table: Table = []
    for column, (method, title) in enumerate((("unif", "uniform sampling"), ("alp+d+f", "ALP+D+F"))):
        student, chooser = far_corner(method, 0)
        watched = Watched(chooser)
        record = run(student, watched, decisions, seed=0)
        counts = np.stack([np.bincount(band[draws], minlength=6) for draws in watched.draws])
        shares = counts.reshape(-1, block, 6).sum(axis=1) / (64 * block)
        episodes = np.arange(len(shares) + 1) * 64 * block / 1000
        upper, lower = panels[0, column], panels[1, column]
        edges = np.vstack([np.zeros(len(shares)), np.cumsum(shares, axis=1).T]) * 100
        for place in range(6):
            top, bottom = (np.append(edges[i], edges[i][-1]) for i in (place + 1, place))
            label = bands[place] if column == 0 else None
            upper.fill_between(episodes, bottom, top, step="post", color=colours[place], linewidth=0, label=label)
        means = np.stack([record.competence[:, band == b].mean(axis=1) for b in range(6)], axis=1)
        for place in range(6):
            lower.plot(record.episodes / 1000, means[:, place] * 100, color=colours[place])
        upper.set_title(title)
        upper.set_ylim(0, 100)
        lower.set_ylim(-2, 102)
        lower.set_xlim(0, episodes[-1])
        lower.set_xlabel("training episodes (thousands)")
        for number, row in enumerate(shares):
            point = (number + 1) * block
            values = {f"trained on: {b}": round(float(v), 4) for b, v in zip(bands, row, strict=True)}
            values |= {f"competence: {b}": round(float(v), 4) for b, v in zip(bands, means[point], strict=True)}
            table.append({"method": method, "episodes": int(record.episodes[point])} | values)
    panels[0, 0].set_ylabel("trained on (%)")
    panels[1, 0].set_ylabel("competence (%)")
    figure.legend(loc="outside lower center", ncols=6, columnspacing=1.2, handlelength=1)
    return figure, table


def moment() -> Picture:
    """One decision in the middle of training: from what was seen and foreseen to what is trained on next."""
    student, chooser = far_corner("alp+d+f", 0)
    run(student, chooser, 40, seed=0)
    fields = [
        ("success rate", chooser.success_rate),
        ("|learning progress|", np.abs(chooser.learning_progress)),
        ("downstream potential D", chooser.downstream_potential),
        ("feasibility f", chooser.feasibility),
        ("probability", chooser.probabilities),
    ]
    figure = Figure(figsize=(6.75, 1.95), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 5), fields, strict=True):
        _heat(figure, axes, title, values)
    names = student.tasks.ids
    return figure, [{"task": names[i]} | {t: _round(v[i]) for t, v in fields} for i in range(len(names))]


def reach() -> Picture:
    """How far downstream potential reaches from a target: the longest path counted, and what solved tasks change."""
    student = PrerequisiteGrid(SIZE)
    graph = student.connectivity().weights
    weights = student.tasks.with_target(student.far_corner).weights
    distance = np.maximum(*np.divmod(np.arange(SIZE * SIZE), SIZE))
    fields = []
    for title, length, solved in (
        ("L = 2", 2, np.zeros(100)),
        ("L = 5", 5, np.zeros(100)),
        ("L = 20", 20, np.zeros(100)),
        ("L = 20, near half solved", 20, (distance < 5).astype(float)),
    ):
        potential = DownstreamPotential(graph, weights, max_path_length=length, path_discount=0.3)
        potential.refresh(solved, 0.9)
        fields.append((title, potential.values))
    figure = Figure(figsize=(6.75, 2.3), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 4), fields, strict=True):
        _heat(figure, axes, title, np.where(values > 0, values, np.nan), LogNorm(1e-5, 1))
    names = student.tasks.ids
    return figure, [{"task": names[i]} | {t: _round(v[i]) for t, v in fields} for i in range(len(names))]


def methods() -> Picture:
    """Competence at a far target, and over all tasks, by method: five seeds."""
    shown = ("unif", "i-diff", "alp", "alp+d", "alp+f", "alp+d+f", "perm")
    figure = Figure(figsize=(6.75, 2.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    table: Table = []
    for axes, title, one in ((left, "one target: the far corner", True), (right, "all tasks count the same", False)):
        for method in shown:
            curves = []
            for seed in range(5):
                student, chooser = far_corner(method, seed) if one else _all_count(method, seed)
                record = run(student, chooser, 200, seed=seed, every=8)
                curves.append(record.competence[:, -1] if one else (record.competence > 0.75).mean(axis=1))
            values = np.stack(curves) * 100
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
            line, thousands = method_line(method), record.episodes / 1000
            label = method.upper() if one else None
            axes.plot(thousands, mean, color=line.colour, linestyle=line.dashes, label=label)
            axes.fill_between(thousands, mean - spread, mean + spread, color=line.colour, alpha=0.15, linewidth=0)
            table += [
                {"weights": title, "method": method, "episodes": int(e), "mean": round(m, 3), "deviation": round(s, 3)}
                for e, m, s in zip(record.episodes, mean.tolist(), spread.tolist(), strict=True)
            ]
        axes.set(title=title, xlabel="training episodes (thousands)", ylim=(-2, 102), xlim=(0, 12.8))
    left.set_ylabel("competence at the target (%)")
    right.set_ylabel("tasks mastered (%)")
    figure.legend(loc="outside lower center", ncols=7, columnspacing=1.4)
    return figure, table


def estimates() -> Picture:
    """What one task's outcomes become: the moving average, and the slope over the latest observations."""
    rng = np.random.default_rng(3)
    tasks = TaskSet([Task("task", "A task.")])
    chooser = Curriculum(tasks, method="alp")
    iterations = np.arange(60)
    truth = 0.95 / (1 + np.exp(-(iterations - 26) / 4)) - 0.3 * (iterations > 46)
    rows: Table = []
    for iteration, rate in zip(iterations.tolist(), truth.tolist(), strict=True):
        seen = float(rng.binomial(20, rate) / 20) if rng.random() < 0.7 else None
        chooser.update([] if seen is None else [0], [] if seen is None else [seen])
        rows.append(
            {
                "iteration": iteration,
                "true rate": round(rate, 4),
                "observed rate": "" if seen is None else seen,
                "success rate": round(float(chooser.success_rate[0]), 4),
                "learning progress": round(float(chooser.learning_progress[0]), 5),
            }
        )
    figure = Figure(figsize=(6.75, 2.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    observed = [(row["iteration"], row["observed rate"]) for row in rows if row["observed rate"] != ""]
    upper.plot(iterations, truth, color="#8c8c8c", linestyle=(0, (4, 1.5)), label="true success rate")
    upper.plot(*np.array(observed).T, ".", color="#000000", markersize=3, label="observed in an iteration")
    upper.plot(iterations, [row["success rate"] for row in rows], color=SERIES_COLOURS[0], label="estimate")
    upper.set(ylabel="success rate", ylim=(-0.03, 1.03))
    upper.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    progress = np.array([row["learning progress"] for row in rows])
    lower.axhline(0, color="#8c8c8c", linewidth=0.6)
    lower.plot(iterations, progress, color=SERIES_COLOURS[2], label="learning progress")
    lower.plot(iterations, np.abs(progress), color=TARGET_COLOUR, linestyle=(0, (2, 1)), label="its absolute value")
    lower.set(ylabel="per iteration", xlabel="iteration", xlim=(0, 59))
    lower.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure, rows


def judged() -> Picture:
    """The shipped graphs around one goal of Craftax: what helps it in one edge or two, and what D makes of it."""
    target = "obtain_iron_pickaxe"
    graph = shipped.connectivity("primitive")
    goals = shipped.goals()
    size, place = len(goals), goals.index(target)
    potential = DownstreamPotential(
        graph.weights, goals.with_target(target).weights, max_path_length=2, path_discount=0.3
    )
    values, direct = potential.values, graph.weights[:, [place]].toarray().ravel()
    shown = [i for i in np.argsort(-values, kind="stable")[: size - 1] if values[i] > 0]
    figure = Figure(figsize=(6.75, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    listed = shown[::10][::-1]
    left.barh(
        [goals.ids[i] for i in listed],
        values[listed],
        color=[SERIES_COLOURS[0] if direct[i] else "#e69f00" for i in listed],
    )
    left.set(title=f"every tenth goal by its D for {target}", xlabel="D (L = 2, κ = 0.3)")
    ranks = np.arange(1, len(shown) + 1)
    is_direct = np.array([direct[i] > 0 for i in shown])
    for mask, colour, label in (
        (is_direct, SERIES_COLOURS[0], "an edge of its own"),
        (~is_direct, "#e69f00", "paths of two edges only"),
    ):
        right.plot(
            ranks[mask], values[shown][mask], "." if mask is is_direct else "x", color=colour, label=label, ms=3.5
        )
    right.set(title=f"all {len(shown)} goals with a path, of {size - 1}", xlabel="rank", ylim=(0, None))
    right.legend(loc="upper right")
    return figure, [{"goal": goals.ids[i], "D": _round(values[i]), "own edge": _round(direct[i])} for i in shown]


PICTURES: dict[str, Callable[[], Picture]] = {
    draw.__name__: draw for draw in (craftax, curriculum, moment, reach, methods, estimates, judged)
}


def save(figure: Figure, table: Table, name: str, folder: Path) -> None:
    """Write a picture and its numbers; the same numbers give the same bytes."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)
    with styled():
        for name, draw in PICTURES.items():
            save(*draw(), name, folder)


def _all_count(method: str, seed: int) -> tuple[PrerequisiteGrid, Curriculum]:
    student = PrerequisiteGrid(SIZE)
    graphs = {"connectivity": student.connectivity(), "feasibility": student.evidence()}
    return student, Curriculum(student.tasks, method=method, seed=seed, **graphs)


def _heat(figure: Figure, axes: Any, title: str, values: np.ndarray, norm: Any = None) -> None:
    axes.set_title(title)
    axes.grid(visible=False)
    axes.set(xticks=[], yticks=[], aspect="equal", facecolor="#d9d9d9")
    mesh = axes.pcolormesh(values.reshape(SIZE, SIZE), cmap="cividis", norm=norm)
    bar = figure.colorbar(mesh, ax=axes, location="bottom", pad=0.03, shrink=0.9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=5.5, rotation=0)


def _round(value: Any, digits: int = 6) -> float:
    return round(float(value), digits)


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]) if sys.argv[1:] else IMAGES)
