"""The link checker notices each kind of bad link."""

import runpy

import pytest
from page_runner import DOCS

problems = runpy.run_path(str(DOCS / "check_links.py"))["problems"]

GOOD = """<link href="a.css" rel="stylesheet"><img src="data:image/gif;base64,R0==">
<h1 id="caf%C3%A9"></h1><a id="top" href="sub/">x</a><a href="#top">x</a><a href="sub/index.html#there">x</a>
<a href="https://example.org/nowhere#x">not looked at</a><a href="mailto:a@example.org">x</a>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.css").write_text("")
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "sub" / "index.html").write_text('<p id="there"></p><a href="../index.html#top">x</a>')
    return tmp_path


def test_a_sound_site_has_no_problems(site):
    assert problems(site) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('<a href="gone.html">x</a>', "index.html: gone.html: no such file"),
        ('<a href="#gone">x</a>', "index.html: #gone: no such place in the page"),
        ('<a href="sub/index.html#gone">x</a>', "index.html: sub/index.html#gone: no such place in the page"),
        (
            '<script src="//example.org/x.js"></script>',
            "index.html: //example.org/x.js: loads from outside",
        ),
        ('<img src="gone.svg">', "index.html: gone.svg: no such file"),
    ],
)
def test_a_bad_link_is_named(site, line, complaint):
    (site / "index.html").write_text(GOOD + line)
    assert problems(site) == [complaint]


def test_a_site_without_pages_is_no_sound_one(tmp_path):
    assert problems(tmp_path) == [f"{tmp_path}: holds no HTML page"]
