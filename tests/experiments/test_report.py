"""A report stands alone, holds the numbers of the runs, and draws them in a browser where one is installed."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

from forethought.experiments.figures import Study, load_study
from forethought.experiments.figures.names import method_name
from forethought.experiments.report import page, write_report
from forethought.experiments.report.datasets import datasets, dynamics, encoded, goal_success
from forethought.experiments.report.runs import RunInfo, run_infos
from forethought.experiments.suites import SUITES, load_suite


class Page(HTMLParser):
    """Every element with its attributes, and the text of each script and cell."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.cells, self.inside = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        if self.inside == "td":
            self.cells.append(data)

    @property
    def data(self):
        return json.loads(self.scripts[0])


def decoded(columns):
    """The table that `encoded` gave to the page."""
    return pl.DataFrame(
        {
            name: [column["levels"][code] for code in column["codes"]] if isinstance(column, dict) else column
            for name, column in columns.items()
        },
        infer_schema_length=None,
    )


def infos(study):
    return [RunInfo(run, run.config.iterations, True, 90.0, 5000.0, {"device": "cpu"}) for run in study.suite.runs]


def test_the_page_holds_every_number_that_it_draws(studies):
    study = studies("smoothing", "laptop")
    tables = Page(page(study, infos(study))).data["tables"]
    assert list(tables) == ["runs", "summary", "comparisons", "curves", "scores", "dynamics", "goals", "coverage"]
    scores = decoded(tables["scores"])
    assert len(scores) == sum(1 + -(-run.config.iterations // run.config.evaluation.every) for run in study.suite.runs)
    target = study.evaluations.filter(pl.col("goal") == pl.col("group"))
    there = scores.join(target, on=["group", "method", "learner", "variant", "seed", "iteration"])
    assert (there["score"] - 100 * there["success_rate"]).abs().max() == pytest.approx(0, abs=0.006)
    assert len(decoded(tables["runs"])) == 80


def test_the_page_asks_for_nothing_from_outside(studies):
    study = studies("uniform", "laptop")
    text = page(study, infos(study))
    read = Page(text)
    assert not [a for _, attributes in read.elements for a in attributes if a in ("src", "href", "srcset", "action")]
    # The one address is the name of SVG, which is never fetched.
    rest = text.replace('"http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|fetch\(|XMLHttp|import\(", rest)
    policy = next(a["content"] for tag, a in read.elements if tag == "meta" and "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    assert {tag for tag, _ in read.elements} & {"link", "img", "iframe", "object"} == set()


def test_texts_cannot_break_out_of_the_page(studies):
    study = studies("sensitivity", "laptop")
    evil = "</script><img src=x onerror=alert(1)>"
    suite = replace(study.suite, title=evil, about=evil)
    hostile = Study(suite, study.evaluations, study.record, evil, dict.fromkeys(study.texts, evil))
    read = Page(page(hostile, infos(hostile)))
    assert len(read.scripts) == 2
    assert not [tag for tag, _ in read.elements if tag == "img"]
    assert set(read.data["texts"].values()) == {evil}


def test_a_page_of_real_directories_says_what_was_run(made_up_sweep, tmp_path):
    file, out = made_up_sweep
    study = load_study(file, "tiny", out)
    write_report(tmp_path / "new" / "gems.html", study, out)
    text = (tmp_path / "new" / "gems.html").read_text(encoding="utf-8")
    assert "A gem or nothing" in text
    assert f"23 of 24 runs done · forethought sweep {file} --scale tiny --out {out}" in text
    read = Page(text)
    assert read.cells.count("not begun") == 0
    assert "Not listed: 1 that has not begun." in text
    assert read.cells.count("done") == 23
    found = decoded(read.data["tables"]["runs"])
    assert found["state"].to_list()[-1] == "not begun"
    first = found.row(0, named=True)
    assert (first["iterations"], first["of"], first["steps_per_second"]) == (40, 40, 8)
    assert first["hours"] == pytest.approx(80 / 3600, abs=0.001)
    assert first["commit"] == "0000000000+"
    assert "23 of 24 runs done, 1,884,160 environment steps in 0.5 hours of training" in text


def test_a_sweep_that_has_not_begun_has_no_report(tmp_path):
    study = load_study("targets", "laptop", tmp_path)
    with pytest.raises(
        ValueError, match=r"no run in .* has begun; begin with: forethought sweep targets --scale laptop"
    ):
        write_report(tmp_path / "page.html", study, tmp_path)
    assert not (tmp_path / "page.html").exists()


def test_runs_without_an_evaluation_are_listed(studies):
    study = studies("targets", "laptop")
    none = Study(study.suite, study.evaluations.clear(), study.record, study.command, study.texts)
    begun = [RunInfo(run, 3, False, 5.0, 100.0, {"device": "cpu"}) for run in study.suite.runs]
    read = Page(page(none, begun))
    assert list(read.data["tables"]) == ["runs"]
    assert read.cells.count("begun") == 160


def test_dynamics_are_shares_above_success(studies):
    study = studies("smoothing", "laptop")
    found = dynamics(study)
    one = found.filter(
        (pl.col("group") == "have_8_wood")
        & (pl.col("method") == "alp")
        & (pl.col("variant") == "")
        & (pl.col("seed") == 3)
    )
    shares = one.filter(pl.col("row") == "share of training")
    assert shares["goal"].n_unique() == 7
    assert "have_8_wood" in shares["goal"]
    assert shares.group_by("from_iteration").agg(pl.col("percent").sum())["percent"].max() <= 100.5
    rate = study.evaluations.filter(
        (pl.col("group") == "have_8_wood")
        & (pl.col("goal") == "have_8_wood")
        & (pl.col("method") == "alp")
        & (pl.col("variant") == "")
        & (pl.col("seed") == 3)
        & (pl.col("iteration") == 60)
    )["success_rate"][0]
    last = one.filter((pl.col("row") == "success") & (pl.col("goal") == "have_8_wood"))["percent"][-1]
    assert last == pytest.approx(100 * rate, abs=0.05)


def test_goals_are_those_of_finished_runs(studies):
    study = studies("uniform", "laptop")
    cut = study.evaluations.filter((pl.col("seed") > 0) | (pl.col("iteration") < 60))
    found = goal_success(Study(study.suite, cut, study.record, study.command, study.texts))
    assert set(found["seeds"]) == {4}
    assert len(found) == 32 * 8


def test_a_run_that_has_only_begun_takes_nothing_from_its_finished_siblings(studies):
    study = studies("uniform", "laptop")
    last = pl.col("seed") == 4
    begun, without = (
        datasets(replace(study, evaluations=study.evaluations.filter(kept)), infos(study))
        for kept in (~last | (pl.col("iteration") == 0), ~last)
    )
    for name in ("summary", "comparisons", "curves", "goals", "coverage"):
        assert begun[name].equals(without[name]), name


@pytest.mark.parametrize("name", SUITES)
def test_every_curve_of_a_chart_looks_different(studies, name):
    study = studies(name, "laptop")
    made = Page(page(replace(study, evaluations=study.evaluations.clear()), infos(study))).data["looks"]
    runs = {(run.group, run.learner): set() for run in study.suite.runs}
    for run in study.suite.runs:
        runs[run.group, run.learner].add(method_name(run.method, run.variant))
    for names in runs.values():
        looks = [(made[name]["colour"], made[name]["dash"]) for name in names]
        assert len(set(looks)) == len(looks)


def test_tables_survive_the_way_into_the_page():
    table = pl.DataFrame({"a": ["x", "y", "x"], "b": [1.5, None, float("inf")], "c": [1, 2, 3]})
    assert json.loads(json.dumps(encoded(table), allow_nan=False)) == {
        "a": {"levels": ["x", "y"], "codes": [0, 1, 0]},
        "b": [1.5, None, None],
        "c": [1, 2, 3],
    }


def test_infos_are_those_of_the_directories(made_up_sweep):
    file, out = made_up_sweep
    found = run_infos(load_suite(file, "tiny"), out)
    assert [info.done for info in found] == [True] * 23 + [False]
    assert (found[0].iterations, found[0].seconds, found[0].steps_per_second) == (40, 80.0, 8.0)


PROBE = """<script>
  const wait = (id, event) => $(id).dispatchEvent(new Event(event));
  const count = (what) => document.querySelectorAll(what).length;
  const told = [count("#learning-charts figure"), count("#learning-charts path"), count("#dynamics-charts path"),
    count("#coverage-charts figure"), count("#goals-table tbody tr")];
  document.querySelector("#learning-legend button").click();
  told.push(count("#learning-charts path"));
  $("each-seed").checked = true; wait("each-seed", "change");
  told.push(count("#learning-charts path"));
  $("dynamics-seed").value = "1"; wait("dynamics-seed", "change");
  told.push($("dynamics-seed").value);
  $("goals-find").value = "gem"; wait("goals-find", "input");
  told.push(count("#goals-table tbody tr"));
  const svg = document.querySelector("#learning-charts svg"), area = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", { clientX: area.left + area.width / 2, clientY: area.top + 20 }));
  told.push(count("#learning-charts .tip:not([hidden]) div"));
  if (!document.title.startsWith("error")) document.title = told.join(" ");
  document.body.dataset.csv = csv("curves");
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_draws_the_charts_without_an_error(made_up_sweep, tmp_path):
    file, out = made_up_sweep
    study = load_study(file, "tiny", out)
    text = page(study, run_infos(study.suite, out))
    catch = '<script>window.onerror = (message) => { document.title = "error: " + message; };</script>'
    start, _, end = text.replace("<main>", catch + "<main>", 1).rpartition("</body>")
    (tmp_path / "page.html").write_text(start + PROBE + end, encoding="utf-8")
    shown = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=1200,900", "--dump-dom", str(tmp_path / "page.html")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", shown.stdout)
    assert title is not None
    # 12 lines (5 for each target, 2 of uniform weights) in 3 charts, bands for all but the one with a single seed;
    # shares and success of 7 goals; 3 charts of coverage, 9 goals. Without UNIF, 2 paths less; then 21 single runs.
    # Seed 1 chosen; 2 goals with a gem; under the pointer a heading and the 10 runs of the first target.
    assert title[1] == "3 23 14 3 9 21 21 1 2 11"
    saved = re.search(r'data-csv="(group,[^"]*(?:""[^"]*)*)"', shown.stdout)
    assert saved is not None
    lines = saved[1].strip().splitlines()
    assert lines[0] == "group,learner,method,variant,steps,mean,sd,seeds"
    assert len(lines) == 1 + len(decoded(Page(text).data["tables"]["curves"]))
