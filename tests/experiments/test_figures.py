"""Figures show what the records say, at every scale and width, and nothing in them is cut off or too alike."""

import itertools
import re
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_rgb

from forethought.experiments.figures import FIGURES, MissingRunsError, Options, draw_figure, drawn_figure, stand_in
from forethought.experiments.figures.dynamics import best_run, block_length, block_shares, related_goals
from forethought.experiments.figures.scores import curves, run_scores
from forethought.experiments.figures.style import METHOD_LINES, SERIES_COLOURS, TARGET_COLOUR, WIDTHS, styled
from forethought.experiments.figures.variants import settings

LAYOUTS = (1, 2, 3, 4, 8, 12)
"""One figure of every layout."""


def drawn(number, study, **options):
    with styled():
        return drawn_figure(number, study, Options(**options))


@pytest.mark.parametrize("number", LAYOUTS)
@pytest.mark.parametrize(("scale", "width"), [("paper", "page"), ("paper", "column"), ("laptop", "page")])
def test_nothing_is_cut_off_or_printed_over(studies, number, scale, width):
    check_layout(drawn(number, studies(FIGURES[number].suite, scale), width=width).figure, width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("number", "suite"), [(1, "targets"), (1, "screening"), (2, "targets")])
def test_long_texts_and_many_targets_fit(studies, number, suite, width):
    study = studies(suite, "laptop")
    long = replace(
        study, texts=dict.fromkeys(study.texts, "Be adjacent to the downward ladder on floor 5, the Troll Mines.")
    )
    check_layout(drawn(number, long, width=width).figure, width)


def check_layout(figure, width):
    """Everything lies inside the figure, in letters that can be read, and no title, label or legend on another."""
    with styled():
        figure.draw_without_rendering()
    box = figure.get_tightbbox(figure.canvas.get_renderer())
    assert box.x0 >= -0.003
    assert box.y0 >= -0.003
    assert box.x1 <= WIDTHS[width] + 0.003
    assert box.y1 <= figure.get_figheight() + 0.003
    assert figure.get_figheight() <= 9.0
    words = [axes.title for axes in figure.axes] + [axes.xaxis.label for axes in figure.axes]
    words += [axes.yaxis.label for axes in figure.axes] + figure.legends[0].get_texts()
    boxes = [(word.get_text(), word.get_window_extent()) for word in words if word.get_text()]
    for (first, a), (second, b) in itertools.combinations(boxes, 2):
        assert not a.overlaps(b), f"{first!r} lies on {second!r}"
    assert all(word.get_fontsize() >= 6.5 for word in words)


def test_panels_are_those_of_the_captions(studies):
    titles = [axes.get_title() for axes in drawn(1, studies("targets")).figure.axes]
    assert titles == ["Dungeon", "Skeleton", "Wood", "Furnace"]
    titles = [axes.get_title() for axes in drawn(3, studies("uniform")).figure.axes]
    assert titles == ["Primitive actions", "Subroutine calls"] * 2
    sensitivity = drawn(4, studies("sensitivity")).figure.axes
    assert [axes.get_title() for axes in sensitivity[::2]] == ["Uniform weights", "Dungeon", "Skeleton"]
    seeds = drawn(10, studies("targets"))
    assert [axes.get_title() for axes in seeds.figure.axes[::2]] == [f"seed {seed}" for seed in range(5)]
    assert set(seeds.table["method"]) == {"alp+d+f"}
    assert "Wood" in seeds.title


def test_the_smoothed_objective_is_solid_and_the_whole_one_dashed(studies):
    made = drawn(12, studies("smoothing"))
    styles = {text.get_text(): line.get_linestyle() for text, line in _legend(made.figure)}
    assert styles == {
        "ALP, 100 % on the target": "--",
        "ALP, 50 % on the target": "-",
        "ALP+D+F, 100 % on the target": "--",
        "ALP+D+F, 50 % on the target": "-",
    }


def test_variants_of_other_settings_are_no_part_of_a_figure(studies):
    for number in (1, 2, 4, 12):
        study = studies(FIGURES[number].suite, "laptop")
        others = study.evaluations.with_columns(variant=pl.lit("gamma=1"), success_rate=pl.lit(0.99))
        more = replace(study, evaluations=pl.concat([study.evaluations, others]))
        assert drawn(number, more).table.equals(drawn(number, study).table)
    with pytest.raises(MissingRunsError, match="suite targets at scale laptop has no run with part of the weight on a"):
        drawn(12, studies("targets", "laptop"))


def test_sensitivity_varies_one_setting_in_a_row(studies):
    table = drawn(4, studies("sensitivity")).table
    uniform = set(table.filter(pl.col("group") == "uniform")["variant"])
    target = set(table.filter(pl.col("group") == "defeat_skeleton")["variant"])
    assert uniform == {"", "L=1", "L=3", "alpha=3", "alpha=10"}
    assert target == {"", "L=1", "L=3", "alpha=0.3", "alpha=3"}
    assert settings("alpha=3") == {"L": 2, "alpha": 3, "share": 1}
    with pytest.raises(ValueError, match="variant is 'gamma=1'; allowed are L, alpha, share"):
        settings("gamma=1")


def test_plotted_numbers_are_those_of_the_runs(studies):
    study = studies("targets")
    table = drawn(1, study).table
    point = table.filter((pl.col("group") == "have_64_wood") & (pl.col("method") == "alp+d")).sort("steps")[-1]
    rows = study.evaluations.filter(
        (pl.col("group") == "have_64_wood")
        & (pl.col("goal") == "have_64_wood")
        & (pl.col("method") == "alp+d")
        & (pl.col("iteration") == 720)
    )
    rates = 100 * rows["success_rate"].to_numpy()
    assert rates.shape == (5,)
    assert point.select("steps", "seeds").row(0) == (1_509_949_440, 5)
    assert point["mean"][0] == pytest.approx(rates.mean())
    assert point["sd"][0] == pytest.approx(rates.std(ddof=1))


def test_files_are_whole_and_the_same_every_time(studies, tmp_path):
    study = studies("targets", "laptop")
    paths = draw_figure(1, study, tmp_path / "a")
    again = draw_figure(1, study, tmp_path / "b")
    assert [path.name for path in paths] == [f"figure-1.{kind}" for kind in ("png", "svg", "pdf", "csv", "md")]
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    assert [path.read_bytes()[:5] for path in paths[:3]] == [b"\x89PNG\r", b"<?xml", b"%PDF-"]
    assert pl.read_csv(paths[3]).columns == ["group", "learner", "method", "variant", "steps", "mean", "sd", "seeds"]
    words = paths[4].read_text(encoding="utf-8")
    assert words.startswith("# Learning single targets\n")
    assert "160 runs, 5 seeds. Made by `forethought sweep targets --scale laptop --out runs`." in words
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_runs_that_are_missing_are_named(studies):
    study = studies("targets")
    assert "targets" in (note := drawn(2, study).note)
    assert "20 runs, 5 seeds" in note
    assert "Not complete" not in note
    none = replace(study, evaluations=study.evaluations.clear())
    for number in (1, 2, 8):
        with pytest.raises(MissingRunsError, match=rf"^figure {number}: no run .*: forethought sweep targets --scale"):
            drawn(number, none)
    some = study.evaluations.filter((pl.col("seed") < 2) | (pl.col("method") != "alp"))
    partial = replace(study, evaluations=some)
    assert "Not complete: 12 of 160 runs had no evaluation yet." in drawn(1, partial).note
    without = replace(study, evaluations=study.evaluations.filter(pl.col("method") != "alp"))
    assert "Not complete: 20 of 160 runs had no evaluation yet (none of ALP)." in drawn(1, without).note
    assert "Not complete: 5 of 20 runs had no evaluation yet (none of ALP)." in drawn(2, without).note
    assert "Not complete" not in drawn(2, without, methods=("perm",)).note
    with pytest.raises(
        MissingRunsError, match=r"suite targets at scale paper has no run .* with uniform weights; name a"
    ):
        drawn(3, studies("targets"))
    with pytest.raises(MissingRunsError, match="with another L or alpha"):
        drawn(4, studies("uniform"))


def test_unfinished_runs_have_curves_and_no_shares(studies):
    study = studies("uniform", "laptop")
    half = study.evaluations.filter(pl.col("iteration") <= study.suite.runs[0].config.iterations // 2)
    made = drawn(3, replace(study, evaluations=half))
    assert set(made.table["panel"]) == {"mean success over steps"}
    assert [text.get_text() for axes in made.figure.axes[2:] for text in axes.texts] == ["no run is finished"] * 2


@pytest.mark.parametrize("number", [1, 2, 3, 4, 12])
def test_a_run_that_has_only_begun_takes_nothing_from_its_finished_siblings(studies, number):
    study = studies(FIGURES[number].suite, "laptop")
    last = pl.col("seed") == 4 if number != 4 else pl.col("seed") == 2
    early = pl.when(last).then(1.0).otherwise("success_rate")
    rows = study.evaluations.filter(~last | (pl.col("iteration") == 0)).with_columns(success_rate=early)
    ours = drawn(number, replace(study, evaluations=rows))
    theirs = drawn(number, replace(study, evaluations=study.evaluations.filter(~last)))
    assert ours.table.equals(theirs.table)
    assert re.search(r"Not ended: \d+ runs, left out where others of the kind have", ours.note)
    assert "Not ended" not in theirs.note


def test_a_seed_that_has_not_ended_is_drawn_beside_the_others(studies):
    study = studies("targets", "laptop")
    begun = (pl.col("seed") == 4) & (pl.col("iteration") > 0)
    ours = drawn(8, replace(study, evaluations=study.evaluations.filter(~begun)))
    assert ours.table["seed"].n_unique() == 5
    assert "Not ended: " in ours.note
    assert "left out" not in ours.note


def test_first_evaluations_alone_can_be_drawn(studies):
    for number in LAYOUTS:
        study = studies(FIGURES[number].suite, "laptop")
        first = replace(study, evaluations=study.evaluations.filter(pl.col("iteration") == 0))
        assert "Not ended" in drawn(number, first).note


def test_learners_have_panels_of_their_own(studies):
    study = studies("targets", "laptop")
    more = study.evaluations.filter(pl.col("group") == "have_8_wood").with_columns(learner=pl.lit("subroutines"))
    titles = [axes.get_title() for axes in drawn(1, replace(study, evaluations=more)).figure.axes]
    assert titles == ["Have at least 8 wood"]
    both = replace(study, evaluations=pl.concat([study.evaluations, more]))
    titles = [axes.get_title().replace("\n", " ") for axes in drawn(1, both).figure.axes]
    assert titles[2:4] == ["Have at least 8 wood: primitive actions", "Have at least 8 wood: subroutine calls"]
    assert len(titles) == 5


def test_bad_choices_are_refused_in_one_line(studies):
    study = studies("targets")
    for options, words in (
        ({"methods": ("alp+x",)}, r"method is 'alp\+x'; those with evaluated runs are: unif, target, i-diff"),
        ({"target": "see_cow"}, "target is 'see_cow'; targets of suite targets are: reach_floor_1, defeat_skeleton"),
        ({"goals": ("nope",)}, "goal is 'nope'; these runs train on"),
        ({"width": "wide"}, "width is 'wide'; allowed: page, column"),
    ):
        with pytest.raises(ValueError, match=words):
            drawn(2, study, **options)
    with pytest.raises(
        ValueError, match="figure 8: methods are alp, perm; the seeds of one method are shown, name one"
    ):
        drawn(8, study, methods=("alp", "perm"))
    with pytest.raises(ValueError, match="figure is 13; allowed are 1 to 12"):
        drawn(13, study)


def test_methods_goals_and_target_can_be_chosen(studies):
    made = drawn(2, studies("targets"), methods=("perm", "unif"), goals=("see_chest",), target="place_furnace")
    assert set(made.table["method"]) == {"perm", "unif"}
    assert set(made.table["goal"]) == {"see_chest", "place_furnace"}


def test_other_targets_take_the_place_of_the_papers(studies):
    assert stand_in(studies("targets"), "have_64_wood") == "have_64_wood"
    assert stand_in(studies("targets", "laptop"), "have_64_wood") == "have_8_wood"
    made = drawn(2, studies("targets", "laptop"))
    assert "Have at least 8 wood" in made.title
    assert made.note.endswith("The published figure shows another target, Wood.")
    with pytest.raises(ValueError, match="nothing stands in its place; name one of: reach_floor_1, defeat_skeleton"):
        stand_in(studies("sensitivity"), "place_furnace")


def test_mean_and_spread_wait_for_the_last_seed():
    keys = {"group": "g", "learner": "primitive", "method": "alp", "variant": ""}
    rows = [keys | {"seed": seed, "steps": steps, "score": score} for seed, steps, score in (
        (0, 0, 1.0), (1, 0, 4.0), (0, 10, 10.0), (1, 10, 30.0), (0, 20, 50.0),
    )]  # fmt: skip
    made = curves(pl.DataFrame(rows))
    assert made["steps"].to_list() == [0, 10]
    assert made["mean"].to_list() == [2.5, 20.0]
    assert made["sd"].to_list() == pytest.approx([np.sqrt(4.5), np.sqrt(200)])


def test_scores_are_the_targets_success_or_the_mean_over_all_goals():
    rows = [
        {"group": group, "learner": "primitive", "method": "alp", "variant": "", "seed": 0, "iteration": 1, "steps": 8}
        | {"goal": goal, "success_rate": rate}
        for group in ("a", "uniform")
        for goal, rate in (("a", 0.25), ("b", 0.75))
    ]
    assert run_scores(pl.DataFrame(rows)).select("group", "score").rows() == [("a", 25.0), ("uniform", 50.0)]


def test_shares_are_means_over_blocks_of_decisions():
    record = pl.DataFrame(
        {
            "iteration": [1, 1, 2, 2, 3, 3],
            "task": ["a", "b"] * 3,
            "effective_share": [0.2, 0.8, 0.4, 0.6, 0.5, 0.5],
        }
    )
    assert block_shares(record, ["a"], 2).rows() == [("a", 1, 2, pytest.approx(30.0)), ("a", 3, 3, 50.0)]
    assert [block_length(n) for n in (720, 1440, 240, 180, 10)] == [15, 15, 10, 7, 1]


def test_the_best_run_is_best_at_the_end_then_along_the_way(studies):
    rows = [
        {"group": "have_64_wood", "learner": "primitive", "method": "alp", "variant": "", "seed": seed}
        | {"iteration": iteration, "goal": "have_64_wood", "success_rate": rate}
        for seed, rates in ((0, (0.9, 0.5)), (1, (0.1, 0.6)), (2, (0.3, 0.6)), (3, (0.3, 0.6)))
        for iteration, rate in enumerate(rates)
    ]
    assert best_run(studies("targets"), pl.DataFrame(rows), "have_64_wood").seed == 2


def test_related_goals_are_the_selection_or_those_with_the_most_training():
    shares = pl.DataFrame({"task": list("abcdt") * 2, "effective_share": [0.1, 0.4, 0.2, 0.0, 0.3] * 2})
    assert related_goals("t", shares, list("abct")) == ["a", "b", "c"]
    wood = ["have_2_wood", "have_16_wood", "have_64_wood", "see_cow"]
    shares = pl.DataFrame({"task": wood, "effective_share": [0.0, 0.1, 0.2, 0.7]})
    assert related_goals("have_64_wood", shares, wood) == ["have_2_wood", "have_16_wood"]


DEFICIENCIES = {
    "none": np.eye(3),
    # G. M. Machado, M. M. Oliveira and L. A. F. Fernandes (2009), severity 1, for linear RGB.
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


@pytest.mark.parametrize("seen", DEFICIENCIES)
def test_colours_differ_for_every_eye(seen):
    methods = [line.colour for line in METHOD_LINES.values()]
    for palette, least in ((methods, 9.0), ([*SERIES_COLOURS, TARGET_COLOUR], 9.0)):
        for first, second in itertools.combinations(palette, 2):
            distance = np.linalg.norm(_lab(first, DEFICIENCIES[seen]) - _lab(second, DEFICIENCIES[seen]))
            assert distance > least, f"{first} and {second}: {distance:.1f}"


def test_methods_differ_in_dashes_too():
    dashes = [repr(line.dashes) for line in METHOD_LINES.values()]
    assert len(set(dashes)) == len(dashes) - 1  # ALP and ALP+D+F are both solid, pale blue and dark orange


def _lab(colour: str, deficiency: np.ndarray) -> np.ndarray:
    """CIELAB of a colour (D65)."""
    rgb = np.array(to_rgb(colour))
    linear = np.clip(deficiency @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    t = xyz / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _legend(figure):
    legend = figure.legends[0]
    return zip(legend.get_texts(), legend.get_lines(), strict=True)
