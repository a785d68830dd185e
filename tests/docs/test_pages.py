"""Every page's code runs, and what is not run is known."""

from collections import Counter
from pathlib import Path

import pytest
from page_runner import ROOT, Runner, blocks, name, pages

NOT_RUN: dict[str, int] = {
    "docs/babyai.md": 1,
    "docs/clusters.md": 5,
    "docs/devices.md": 5,
    "docs/experiments.md": 1,
    "docs/figures.md": 1,
    "docs/howto/benchmark.md": 2,
    "docs/howto/own-llm.md": 2,
    "docs/howto/torch.md": 1,
    "docs/judging.md": 3,
    "docs/results.md": 1,
}
"""Page -> blocks that say `not-run`. Raise a number only with a reason that a reader will accept."""


@pytest.mark.parametrize("page", pages(), ids=name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path):
    Runner(page, tmp_path).run()


def test_what_is_not_run_is_counted():
    found = Counter(name(page) for page in pages() for block in blocks(page) if block.kind == "not-run")
    assert dict(found) == NOT_RUN


@pytest.mark.parametrize("page", pages(), ids=name)
def test_files_that_a_page_shows_are_used_in_it(page: Path):
    found = blocks(page)
    for place, block in enumerate(found):
        if block.kind != "code-block":
            continue
        assert "caption" in block.options, (
            f"{name(page)}, line {block.line}: nothing runs a code-block without a caption"
        )
        file = Path(block.options["caption"])
        later = "".join(b.code for b in found[place + 1 :])
        assert file.name in later or file.stem in later, f"{name(page)}: {file} is shown and never used"


def test_every_example_is_shown_or_linked_by_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in pages())
    assert [file.name for file in (ROOT / "examples").glob("*.py") if f"examples/{file.name}" not in text] == []


def test_examples_that_pages_include_are_run_by_tests():
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path.parent.name != "docs")
    for page in pages():
        for block in blocks(page):
            if block.kind == "literalinclude" and "caption" not in block.options:
                file = (page.parent / block.argument).resolve()
                assert file.is_file(), f"{name(page)} includes {block.argument}, which is not there"
                assert file.stem in tests, f"{name(page)} includes {block.argument}, which no test runs"
