"""`forethought figure`, `table` and `report`: one command each, and one line when runs are missing."""

from pathlib import Path

import pytest

from forethought.cli import run
from forethought.experiments import figures


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fails(capsys, *arguments):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_figure_without_runs_names_the_command_that_makes_them(capsys):
    assert "make them with: forethought sweep targets --scale laptop --out runs" in fails(capsys, "figure", "1")
    assert "forethought sweep uniform --scale paper --out runs" in fails(capsys, "figure", "3", "--scale", "paper")
    assert "forethought sweep sensitivity --scale laptop --out runs" in fails(capsys, "table", "3")
    assert "begin with: forethought sweep smoothing" in fails(capsys, "report", "smoothing")
    assert list(Path().iterdir()) == []


def test_bad_input_is_one_line(capsys):
    assert "figure is '13'; allowed are 1 to 12 and all" in fails(capsys, "figure", "13")
    assert "suite: 'targts' given" in fails(capsys, "figure", "1", "--suite", "targts")
    assert "scale: 'huge' given" in fails(capsys, "report", "targets", "--scale", "huge")
    assert "invalid choice '4'" in fails(capsys, "table", "4")


def test_figures_tables_and_report_of_a_suite_of_ones_own(capsys, made_up_sweep):
    file, out = made_up_sweep
    common = ["--suite", str(file), "--scale", "tiny", "--out", str(out)]
    assert run(["figure", "1", *common, "--methods", "alp,alp+d+f"]) == 0
    folder = out / "figures" / "gems-tiny"
    assert capsys.readouterr().out == f"figure 1: {folder / 'figure-1.png'} (svg, pdf, csv, md)\n"
    assert sorted(path.suffix for path in folder.iterdir()) == [".csv", ".md", ".pdf", ".png", ".svg"]

    assert run(["figure", "2", *common, "--target", "stone", "--goals", "wood", "gem", "--to", "here"]) == 0
    assert (
        Path("here/figure-2.md").read_text(encoding="utf-8").startswith("# What each method trained on: Collect stone")
    )
    assert "no figure" not in capsys.readouterr().err
    assert "nothing stands in its place; name one of: gem, stone" in fails(capsys, "figure", "2", *common)

    assert run(["table", "3", *common]) == 0
    table = capsys.readouterr().out
    # Runs with half the weight on the target are no part of this table.
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    settings = [cells[:3] for cells in rows if cells[1] in ("1", "2", "3")]
    assert settings == [
        ["| main", "2", "1"],
        ["| main", "2", "1"],
        ["| ", "1", "1"],
        ["| main", "2", "1"],
        ["| ", "1", "1"],
    ]
    assert (out / "tables" / "gems-tiny" / "table-3.tex").is_file()

    assert run(["report", str(file), "--scale", "tiny", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"report: {out / 'reports' / 'gems-tiny.html'}\n"


def test_all_figures_that_have_runs_are_drawn(capsys, monkeypatch, made_up_sweep):
    file, out = made_up_sweep
    assert run(["figure", "all", "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(": ")[1] for line in captured.err.splitlines()] == [f"figure {n}" for n in range(1, 13)]
    monkeypatch.setattr(figures, "FIGURES", {n: figures.FIGURES[n] for n in (2, 12)})
    assert run(["figure", "all", "--suite", str(file), "--scale", "tiny", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("figure 12: ")
    assert captured.err.startswith("left out: figure 2: ")


def test_tables_that_need_no_runs(capsys):
    assert run(["table", "1"]) == 0
    assert "| all goals |  | 256 |" in capsys.readouterr().out
    assert run(["table", "2", "--to", "."]) == 0
    assert Path("table-2.csv").is_file()
    assert Path("runs/tables/table-1.csv").is_file()
