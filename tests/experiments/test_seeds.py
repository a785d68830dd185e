"""What is wrong with a command for several seeds is said before anything is written."""

import pytest

from forethought.cli import run
from forethought.config import load_config
from forethought.experiments.claim import claimed
from forethought.progress import SilentReporter
from forethought.rundir import RunDirectory


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seeds"], "--seeds: nothing given; allowed are numbers, none of them twice"),
        (["--seeds", "1", "1"], "--seeds: 1 1 given; allowed are numbers, none of them twice"),
        (["--seeds", "one"], "--seeds: 'one' given; allowed is a whole number from 0 on"),
        (["--seeds", "4294967296"], "seed: 4294967296 given; allowed is less than 4294967296"),
        (["--seeds", "0", "1", "--seed", "1"], "--seed: given with --seeds; allowed is one of them"),
        (["--seeds", "0", "1", "--processes", "auto"], "--processes: given with --seeds"),
        (["--seeds", "0", "1", "2", "--devices", "2"], "--devices: 2 given; allowed is a divisor of the 3 seeds"),
        (["--seeds", "0", "--tasks.target", "nothing"], "tasks.target: 'nothing' given"),
    ],
)
def test_what_cannot_be_is_named(flags, message, capsys, tmp_path):
    assert run(["train", "toy", "--out", str(tmp_path / "runs"), *flags]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_that_goes_on_has_one_seed_and_its_own_settings(capsys, tmp_path):
    RunDirectory.create(tmp_path / "run", load_config("toy").to_toml(), {})
    for flag, *values in (["--seeds", "0", "1"], ["--dry-run"]):
        assert run(["train", str(tmp_path / "run"), flag, *values]) == 2
        assert f"takes nothing else; got {flag.strip('-').replace('-', '_')}" in capsys.readouterr().err


def test_neither_another_run_nor_one_in_use_is_touched(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("forethought.progress.make_reporter", SilentReporter)
    command = ["train", "toy", "--seeds", "0", "1", "--out", str(tmp_path)]
    with claimed(tmp_path / "seed-1"):
        assert run(command) == 2
    assert f"run {tmp_path / 'seed-1'} is in use by process" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    RunDirectory.create(tmp_path / "seed-1", load_config("toy", overrides={"seed": 1, "iterations": 7}).to_toml(), {})
    assert run(command) == 2
    assert "seed-1 holds another run: iterations is 7 there" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["seed-1"]
