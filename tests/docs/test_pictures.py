"""The pictures show what the package computes today, and every page's picture is one of them."""

import csv
import io
import re
import subprocess
import sys

import pytest
from page_runner import DOCS, ROOT, name, pages

IMAGES = DOCS / "images"


def numbers(text: str) -> list[list[float | str]]:
    def value(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in csv.reader(io.StringIO(text))]


def test_the_pictures_show_what_is_computed_today(tmp_path):
    # In a process of its own, since checking every call's types would take a minute.
    subprocess.run([sys.executable, DOCS / "pictures.py", tmp_path], check=True)
    assert {path.name for path in tmp_path.glob("*.svg")} <= {path.name for path in IMAGES.iterdir()}
    assert len(list(tmp_path.glob("*.csv"))) == len(list(tmp_path.glob("*.svg"))) > 0
    for path in sorted(tmp_path.glob("*.csv")):
        now, kept = (numbers((folder / path.name).read_text(encoding="utf-8")) for folder in (tmp_path, IMAGES))
        assert len(now) == len(kept), path.name
        for row, other in zip(now, kept, strict=True):
            assert row == [pytest.approx(v, abs=1e-6) if isinstance(v, float) else v for v in other], path.name


def test_every_picture_is_shown_with_words_for_those_who_cannot_see_it():
    shown = set()
    for page in pages():
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            assert path.is_file(), f"{name(page)} shows {target}, which is not there"
            assert len(words) > 20, f"{name(page)}: {target} has no description"
            shown.add(path.relative_to(ROOT).as_posix())
    kept = {path.relative_to(ROOT).as_posix() for path in IMAGES.glob("*.svg")}
    assert {image for image in shown if image.startswith("docs/images/")} >= kept
