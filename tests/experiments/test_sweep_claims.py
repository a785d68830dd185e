"""Two schedulers never run the same directory: a lock with an owner and an age, on one machine and on many."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from forethought.experiments import claim as claiming
from forethought.experiments import runs
from forethought.experiments.claim import SILENCE, Busy, claim_on, claimed, lock_path
from forethought.experiments.runs import RunState, in_use, run_one, write_plan
from forethought.experiments.suites import load_suite
from forethought.experiments.sweep import plan

HOLD = """
import sys, time
from forethought.experiments.claim import claimed
with claimed(sys.argv[1], sys.argv[2] or None):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(run, job=""):
    """Another process that holds a run."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run), job], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def elsewhere(run, silent=0.0, job=None):
    """A claim that a process on another machine made, silent for so many seconds."""
    owner = claiming.Owner("node7", "boot pid:[1]", os.getpid(), "1", time.time() - 700, job, "token")
    lock_path(run).write_text(json.dumps(owner.__dict__))
    touched = time.time() - silent
    os.utime(lock_path(run), (touched, touched))


def test_a_claim_says_who_and_for_how_long_and_ends_with_its_process(tmp_path):
    run = tmp_path / "seed-0"
    assert claim_on(run) is None
    other = hold(run, "slurm 7")
    try:
        found = claim_on(run)
        assert (found.owner.process, found.owner.job, found.void) == (other.pid, "slurm 7", False)
        assert found.age < 30
        with (
            pytest.raises(Busy, match=rf"run {run} is in use by process {other.pid} on .* \(slurm 7\) for .* s, last"),
            claimed(run),
        ):
            pass
    finally:
        end(other)
    assert claim_on(run).void
    with claimed(run):
        assert claim_on(run).mine
    assert claim_on(run) is None


def test_a_number_that_another_process_has_now_is_no_sign_of_life(tmp_path):
    run = tmp_path / "seed-0"
    with claimed(run):
        owner = claim_on(run).owner
    lock_path(run).write_text(json.dumps(replace(owner, started="1").__dict__))
    assert claim_on(run).void


def test_a_process_that_waits_to_be_reaped_is_gone(tmp_path):
    run = tmp_path / "seed-0"
    other = hold(run)
    other.kill()
    end_of_wait = time.monotonic() + 10
    while not claim_on(run).void and time.monotonic() < end_of_wait:
        time.sleep(0.01)
    assert claim_on(run).void  # Killed, and not waited for yet.
    end(other)


def test_another_machine_s_claim_holds_until_it_is_silent(tmp_path):
    run = tmp_path / "seed-0"
    elsewhere(run, SILENCE - 60)
    with pytest.raises(Busy, match=r"on node7 for 11:40 min, last sign of life 4:00 min ago"), claimed(run):
        pass
    elsewhere(run, SILENCE + 1)
    with claimed(run):
        assert claim_on(run).mine


def test_a_clock_that_is_ahead_takes_no_claim_from_the_living(tmp_path, monkeypatch):
    run = tmp_path / "seed-0"
    elsewhere(run, 20)
    ahead = time.time() + 2 * SILENCE
    monkeypatch.setattr(claiming.time, "time", lambda: ahead)
    assert claim_on(run).void  # As far as this machine can tell.
    with pytest.raises(Busy, match="who are claiming it"), claimed(run):
        pass
    assert claim_on(run).owner.host == "node7"


@pytest.mark.parametrize("silent", [0, 2 * SILENCE])
def test_only_a_turn_that_was_left_is_taken_away_whatever_this_clock_says(tmp_path, monkeypatch, silent):
    run = tmp_path / "seed-0"
    elsewhere(run, 2 * SILENCE)
    turn = lock_path(run).with_name(f".{lock_path(run).name}.turn")
    turn.touch()
    os.utime(turn, (turn.stat().st_mtime - silent,) * 2)
    now = time.time()
    monkeypatch.setattr(claiming.time, "time", lambda: now + (0 if silent else 3 * SILENCE))
    if silent:
        with claimed(run):
            assert claim_on(run).mine
    else:
        with pytest.raises(Busy, match="who are claiming it"), claimed(run):
            pass
        assert turn.exists()


def test_a_later_attempt_of_the_same_job_need_not_wait(tmp_path):
    run = tmp_path / "seed-0"
    elsewhere(run, job="slurm 7")
    with pytest.raises(Busy), claimed(run, "slurm 8"):
        pass
    with claimed(run, "slurm 7"):
        assert claim_on(run).owner.job == "slurm 7"


def test_a_lock_that_is_no_claim_holds_while_it_is_young(tmp_path):
    run = tmp_path / "seed-0"
    lock_path(run).write_text("")
    with pytest.raises(Busy, match="in use by another process, last sign of life"), claimed(run):
        pass
    os.utime(lock_path(run), (time.time() - SILENCE - 1,) * 2)
    with claimed(run):
        pass


def test_an_owner_shows_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(claiming, "BEAT", 0.02)
    run = tmp_path / "seed-0"
    with claimed(run):
        os.utime(lock_path(run), (1.0, 1.0))
        waited = time.monotonic() + 10
        while claim_on(run).age > 60 and time.monotonic() < waited:
            time.sleep(0.01)
        assert claim_on(run).age < 60


@pytest.mark.parametrize("taken", ["replaced", "removed"])
def test_an_owner_that_was_replaced_ends_and_leaves_the_other_s_lock(tmp_path, monkeypatch, taken):
    ended = []
    monkeypatch.setattr(claiming, "BEAT", 0.02)
    monkeypatch.setattr(claiming, "_end", lambda: ended.append(True))
    run = tmp_path / "seed-0"
    with claimed(run):
        if taken == "replaced":
            elsewhere(run)
        else:
            lock_path(run).unlink()
        waited = time.monotonic() + 10
        while not ended and time.monotonic() < waited:
            time.sleep(0.01)
    assert ended
    assert lock_path(run).exists() == (taken == "replaced")


RACE = """
import multiprocessing, sys
from forethought.experiments.claim import Busy, claimed

def race(run, barrier, wins, rounds):
    for number in range(rounds):
        barrier.wait()
        try:
            with claimed(f"{run}-{number}"):
                wins.put(number)
                barrier.wait()
        except Busy:
            barrier.wait()

if __name__ == "__main__":
    racers, rounds = int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context("spawn")
    barrier, wins = context.Barrier(racers), context.Queue()
    processes = [context.Process(target=race, args=(sys.argv[1], barrier, wins, rounds)) for _ in range(racers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    print(*(wins.get(timeout=10) for _ in range(wins.qsize())))
"""


@pytest.mark.parametrize("before", ["nothing", "a void claim"])
def test_one_of_many_wins(tmp_path, before):
    rounds, racers = 20, 5
    script, runs_of_all = tmp_path / "race.py", tmp_path / "runs"
    script.write_text(RACE)  # A file, for its processes to find: they need not find this one.
    runs_of_all.mkdir()
    if before == "a void claim":
        for number in range(rounds):
            elsewhere(runs_of_all / f"run-{number}", SILENCE + 1)
    command = [sys.executable, script, runs_of_all / "run", str(racers), str(rounds)]
    raced = subprocess.run(command, capture_output=True, text=True)
    assert raced.returncode == 0, raced.stderr
    assert sorted(int(number) for number in raced.stdout.split()) == list(range(rounds))
    assert list(runs_of_all.iterdir()) == []


@pytest.fixture
def planned(tmp_path, suite_file):
    return plan(load_suite(suite_file, "tiny"), tmp_path / "out", "jax")


def test_one_run_is_refused_while_another_process_has_it(planned, capsys):
    run = planned[0]
    write_plan(run.path, run.spec.config)
    other = hold(run.path)
    try:
        assert f"process {other.pid}" in in_use(run.path)
        with pytest.raises(Busy, match=f"process {other.pid}"):
            run_one(run.path)
        assert runs.main([str(run.path)]) == runs.BUSY
        assert f"error: run {run.path} is in use by process {other.pid}" in capsys.readouterr().err
    finally:
        end(other)
    assert not run.path.exists()
    assert in_use(run.path) is None


def test_a_run_that_came_to_its_end_meanwhile_is_not_trained_again(planned, monkeypatch):
    run = planned[0]
    write_plan(run.path, run.spec.config)
    states = iter([RunState(False, 0, False), RunState(True, 60, True)])
    monkeypatch.setattr(runs, "run_state", lambda path, iterations: next(states))
    assert run_one(run.path)
    assert not lock_path(run.path).exists()
    assert not run.path.exists()


def test_many_may_write_a_plan(planned):
    run = planned[0]
    write_plan(run.path, run.spec.config)
    made = runs.plan_path(run.path).stat().st_mtime_ns
    write_plan(run.path, run.spec.config)
    assert runs.plan_path(run.path).stat().st_mtime_ns == made
    assert [path.name for path in run.path.parent.iterdir()] == ["seed-0.toml"]
