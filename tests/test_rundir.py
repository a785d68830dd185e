import json
import os
import subprocess
import sys

import numpy as np
import pytest

from forethought.rundir import CURRICULUM_COLUMNS, EVALUATION_COLUMNS, RunDirectory, check_new


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(tmp_path / "run", "seed = 1\n", {"run_id": "x", "rate": float("nan")})


def curriculum_rows(iteration, tasks=("a", "b")):
    rows = {name: np.full(len(tasks), iteration / 2) for name, kind in CURRICULUM_COLUMNS.items() if kind == "Float64"}
    return rows | {
        "task": list(tasks),
        "selections": [iteration, 0],
        "episodes": np.array([3, 4]),
        "calls": [0, iteration],
    }


def evaluation_rows(iteration):
    rows = {name: [0.5, 0.25] for name, kind in EVALUATION_COLUMNS.items() if kind == "Float64"}
    rows |= {name: [1, 2] for name, kind in EVALUATION_COLUMNS.items() if kind == "Int64"}
    return rows | {"goal": ["a", "b"], "iteration": [iteration] * 2}


def record(run, iterations):
    for iteration in iterations:
        run.record_metrics({"iteration": iteration, "steps": iteration * 10, "seconds": 0.5})
        run.record_curriculum(iteration, curriculum_rows(iteration))


def test_a_new_run_holds_configuration_and_meta(run):
    assert run.config_text == "seed = 1\n"
    assert run.meta == {"run_id": "x", "rate": None}
    assert sorted(path.name for path in run.path.iterdir()) == ["config.toml", "meta.json"]
    assert [path.name for path in run.path.parent.iterdir()] == ["run"]


def test_a_directory_that_exists_is_refused(run):
    with pytest.raises(ValueError, match="exists already"):
        RunDirectory.create(run.path, "", {})
    assert run.config_text == "seed = 1\n"


def test_a_file_in_the_way_leaves_nothing_half_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written"):
        RunDirectory.create(tmp_path / "file" / "runs" / "x", "", {})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_args):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.rename", refuse)
    with pytest.raises(ValueError, match="Read-only file system"):
        RunDirectory.create(tmp_path / "runs" / "x", "", {})
    assert not list(tmp_path.iterdir())


def test_an_unwritable_parent_is_refused_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="no permission to write"):
        check_new(tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a run directory"):
        RunDirectory(tmp_path)


def test_records_read_back(run):
    record(run, [1, 2])
    run.flush()
    record(run, [3])
    run.flush()
    run.record_evaluation(evaluation_rows(0))
    run.record_evaluation(evaluation_rows(2))
    assert run.metrics()["steps"].to_list() == [10, 20, 30]
    assert run.curriculum()["iteration"].to_list() == [1, 1, 2, 2, 3, 3]
    assert run.curriculum()["selections"].to_list() == [1, 0, 2, 0, 3, 0]
    assert dict(zip(run.curriculum().columns, map(str, run.curriculum().dtypes), strict=True)) == CURRICULUM_COLUMNS
    assert run.evaluations()["iteration"].to_list() == [0, 0, 2, 2]
    assert run.evaluated() == {0, 2}
    assert sorted(p.name for p in run.path.glob("*.parquet")) == [
        "curriculum-0000001-0000002.parquet",
        "curriculum-0000003-0000003.parquet",
        "evaluations.parquet",
    ]


def test_an_empty_run_has_empty_records(run):
    assert len(run.metrics()) == len(run.curriculum()) == len(run.evaluations()) == 0
    assert run.curriculum().columns == list(CURRICULUM_COLUMNS)
    run.rewind(0)


def test_missing_numbers_are_null(run):
    run.record_metrics({"iteration": 1, "x": float("nan"), "y": np.float32("inf"), "z": np.int64(3)})
    assert json.loads((run.path / "metrics.jsonl").read_text()) == {
        "iteration": 1,
        "x": None,
        "y": None,
        "z": 3,
    }
    run.record_curriculum(1, curriculum_rows(1) | {"feasibility": [np.nan, 1.0]})
    run.flush()
    assert run.curriculum()["feasibility"].to_list() == [None, 1.0]


def test_rewinding_drops_what_no_checkpoint_covers(run):
    record(run, [1, 2, 3, 4])
    run.flush()
    record(run, [5, 6])
    run.flush()
    record(run, [7])
    for iteration in (0, 3, 6):
        run.record_evaluation(evaluation_rows(iteration))
    run.rewind(3)
    assert run.metrics()["iteration"].to_list() == [1, 2, 3]
    assert run.curriculum()["iteration"].to_list() == [1, 1, 2, 2, 3, 3]
    assert run.evaluated() == {0, 3}
    record(run, [4])
    run.flush()
    assert run.curriculum()["iteration"].to_list() == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("tail", [b'{"iteration": 3, "st', b'{"iteration": 3}garbage\n', b"\x00\x00\x00", b"17\n"])
def test_a_torn_tail_is_repaired(run, tail):
    record(run, [1, 2])
    whole = (run.path / "metrics.jsonl").read_bytes()
    (run.path / "metrics.jsonl").write_bytes(whole + tail)
    assert run.metrics()["iteration"].to_list() == [1, 2]
    run.rewind(2)
    assert (run.path / "metrics.jsonl").read_bytes() == whole


def test_two_processes_cannot_hold_one_run(run):
    code = (
        "import sys; from forethought.rundir import RunDirectory\n"
        "try:\n    with RunDirectory(sys.argv[1]).locked(): print('held')\n"
        "except ValueError as error: print(error)"
    )

    def other():
        return subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True).stdout

    with run.locked():
        assert f"is in use by process {os.getpid()}" in other()
    assert other() == "held\n"


def test_meta_can_be_replaced(run):
    run.write_meta({"run_id": "y"})
    assert run.meta == {"run_id": "y"}
