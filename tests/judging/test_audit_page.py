"""The page stands alone, shows what the graph holds, and runs in a browser where one is installed."""

import base64
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

from forethought.craftax import shipped
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.judging.audit_page import page, write_page
from forethought.tasks import Task, TaskSet


class Page(HTMLParser):
    """Every element with its attributes, the text of each script, and the cells of the table of tasks."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.rows, self.cell = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag == "tr":
            self.rows.append([])
        self.cell = [] if tag in ("td", "th") else self.cell

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append("".join(self.cell))
            self.cell = None

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data
        if self.cell is not None:
            self.cell.append(data)

    @property
    def data(self):
        return json.loads(self.scripts[0])


def weights_in(drawn, size):
    arrays = [
        np.frombuffer(base64.b64decode(drawn[k]), t)
        for k, t in zip(("source", "target", "weight"), ("<u4", "<u4", "<f4"), strict=True)
    ]
    matrix = np.zeros((size, size), np.float32)
    matrix[arrays[0], arrays[1]] = arrays[2]
    assert (np.diff(arrays[2]) >= 0).all()
    return matrix


def test_the_page_of_a_shipped_graph_holds_its_edges_and_its_tasks():
    graph, tasks = shipped.connectivity(), shipped.goals()
    read = Page(page(graph, tasks))
    assert read.data["ids"] == list(graph.ids)
    assert weights_in(read.data["graphs"][0], 256) == pytest.approx(graph.weights.toarray(), abs=1e-6)
    assert read.data["votes"] is True
    row = next(row for row in read.rows if row[0] == "place_furnace")
    assert row[1] == tasks[tasks.index("place_furnace")].text
    assert next(r for r in read.rows if r[0] == "connectivity")[:3] == ["connectivity", "0.730", "0.54 to 0.86"]


def test_the_page_asks_for_nothing_from_outside():
    text = page(shipped.evidence(), shipped.goals(), other=shipped.evidence("subroutines"))
    read = Page(text)
    assert not [a for _, attributes in read.elements for a in attributes if a in ("src", "href", "srcset", "action")]
    assert not re.search(r"https?:|//[a-z]|url\(|@import|fetch\(|XMLHttp|import\(", text)
    policy = next(a["content"] for tag, a in read.elements if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert {tag for tag, _ in read.elements} & {"link", "img", "iframe", "object"} == set()


HOSTILE = [
    '</script><script>alert("1")</script>',
    "<img src=x onerror=alert(1)>",
    "a&b $style 'ü' 日本 \u202eabc",
    "$$data\u2028",
]


def test_ids_and_texts_cannot_break_out_of_the_page():
    tasks = TaskSet([Task(id, id + " <b>") for id in HOSTILE])
    graph = LearningConnectivity.from_selections(HOSTILE, [[[1], [0], [0], []], [[1], [], [0], []]])
    read = Page(page(graph, tasks, names=("<i>", "b"), other=graph))
    assert len(read.scripts) == 2
    assert read.data["ids"] == HOSTILE
    assert read.data["texts"] == [id + " <b>" for id in HOSTILE]
    assert not [tag for tag, _ in read.elements if tag in ("img", "i", "b")]
    assert [row[0] for row in read.rows if row[0] in HOSTILE and len(row) > 5] == HOSTILE


def test_a_second_graph_is_drawn_over_the_tasks_of_the_first():
    first = LearningConnectivity.from_weights("abc", [[0, 1.0, 0], [0, 0, 0], [0, 0, 0]])
    second = LearningConnectivity.from_weights("zcb", [[0, 0.2, 0], [0, 0, 0.5], [0, 0, 0]])
    drawn = Page(page(first, other=second, names=("old", "new"))).data["graphs"]
    assert [graph["name"] for graph in drawn] == ["old", "new"]
    assert weights_in(drawn[1], 3).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0.5, 0]]


def test_two_thousand_tasks_make_a_page_of_moderate_size(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"task {i}" for i in range(2000)]
    dense = sparse.random_array((2000, 2000), density=0.02, rng=rng).tolil()
    dense.setdiag(0)
    write_page(tmp_path / "page.html", LearningConnectivity.from_weights(ids, dense.tocsr()))
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_draws_the_page_without_an_error(tmp_path):
    graph = FeasibilityEvidence.from_selections(HOSTILE, [[[], [0], [0, 1], [2]], [[], [0], [1], [2]]])
    text = page(graph, TaskSet([Task(id, id) for id in HOSTILE]))
    probe = """<script>window.onerror = (message) => { document.title = "error: " + message; };
      document.querySelectorAll("#tasks thead button")[2].click();
      show([2, 3]); zoom(12);
      const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
      const colours = new Set(); for (let i = 0; i < pixels.length; i += 4) colours.add(pixels.slice(i, i + 3).join());
      const listed = $("panel").querySelectorAll("li").length;
      document.title = "drawn in " + colours.size + " colours, " + listed + " edges listed";
      </script></body>"""
    # The last </body> is the page's own.
    start, _, end = text.rpartition("</body>")
    (tmp_path / "page.html").write_text(start + probe + end, encoding="utf-8")
    shown = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=1200,900", "--dump-dom", str(tmp_path / "page.html")],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", shown.stdout)
    assert title is not None
    assert re.fullmatch(r"drawn in \d{2,} colours, 2 edges listed", title[1])
