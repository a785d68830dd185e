"""The page on the paper names modules and tests that exist, and leaves out no module of the method."""

import re

import pytest
from page_runner import DOCS, ROOT

PAGE = (DOCS / "paper.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[([^\]]+)\]\(\.\./([^)#]+)\)", PAGE)
TESTS = [(words, path) for words, path in LINKS if path.startswith("tests/")]
NOT_OF_THE_PAPER = {"__init__", "segments", "config", "bandit", "interest", "mastery", "replay", "seeds"}
"""Modules that hold nothing of the paper."""


def test_every_module_named_is_there():
    modules = [(words, path) for words, path in LINKS if not path.startswith("tests/")]
    assert len(modules) > 40
    for words, path in modules:
        assert (ROOT / path).is_file(), path
        assert path.endswith(words.strip("`")), f"{words} links to {path}"


@pytest.mark.parametrize(("words", "path"), sorted(set(TESTS)))
def test_every_test_named_is_there(words, path):
    function = f"test_{words.replace(' ', '_')}"
    assert re.search(rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_module_of_the_method_and_the_learner_is_named():
    named = {path for _, path in LINKS}
    for package in ("curriculum", "learner"):
        for module in (ROOT / "src/forethought" / package).glob("*.py"):
            if module.stem not in NOT_OF_THE_PAPER:
                assert module.relative_to(ROOT).as_posix() in named, f"{module} is not named in docs/paper.md"


def test_every_reading_and_every_row_names_a_test_or_a_pin():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| open", "| paper"))]
    assert len(rows) > 60
    assert [row for row in rows if "](../tests/" not in row and "pyproject" not in row] == []


def test_every_section_of_the_paper_with_a_method_in_it_has_a_row():
    sections = ("3.1", "3.2", "4.1", "4.2", "4.3", "5.1", "5.2", "5.3.1", "5.3.2", "A.1", "A.2", "A.3", "B.1", "B.2")
    sections += ("C.1", "C.2", "C.3", "C.4", "C.5", "C.6", "C.7", "D.1", "D.2", "E.1", "E.2")
    firsts = ", ".join(line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| "))
    assert [section for section in sections if section not in firsts.split(", ")] == []
