"""Kill at any moment and run again: no reply that was received is paid for twice. One run has one writer at a time."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from forethought.judging.aggregate import build_graph
from forethought.judging.plan import Settings
from forethought.judging.state import State

pytest.importorskip("pydantic_ai")

CONCURRENCY = 8


def start(path, *flags):
    """`forethought judge run` as a process of its own."""
    call = "import sys; from forethought.cli import main; main(sys.argv[1:])"
    words = ["judge", "run", str(path), "--yes", "--price", "1", "5", "--concurrency", str(CONCURRENCY), *flags]
    return subprocess.Popen(
        [sys.executable, "-c", call, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@contextlib.contextmanager
def running(path, *flags):
    process = start(path, *flags)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(process, condition, seconds=60.0):
    """Wait until the condition holds or the process has ended; whether the condition holds."""
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)
    return condition()


def stored_prompts(run):
    """Hashes of the prompts whose reply is stored and valid, an unfinished last line left out."""
    state = State(run.plan)
    return [reply.prompt_hash for reply in run.replies() if not state.take(reply)[1].problems]


def hash_of(request):
    return hashlib.sha256(request["prompt"].encode()).hexdigest()


@pytest.fixture
def planned(make, run_of):
    """`planned(server, tasks, **options)`: a new run at the server."""

    def build(server, kind="learning_connectivity", tasks=40, name="run", **options):
        settings = Settings("openai-chat:m", base_url=server.url + "/v1")
        return run_of(make(kind, tasks, settings, **{"source_block": 10, "target_block": 4} | options), name)

    return build


def sloppy(student):
    """Every fifth reply lacks its last record, so that targets are asked again while the run is killed."""

    def script(number, request):
        if number % 5:
            return None
        reply = json.loads(student.answer(request["prompt"]))
        reply["records"].pop()
        return json.dumps(reply)

    return script


def test_no_received_reply_is_paid_for_twice(double, planned, student):
    server, random_ = double(sloppy(student), delay=0.03), random.Random(4)
    run = planned(server, repetitions=2)
    queries, kills, stored = len(run.plan.queries), 2, set()
    assert queries == 2 * 4 * 10
    for number in range(1, kills + 1):
        asked_before = len(server.requests)
        with running(run.path) as process:
            enough = number * queries // (kills + 1) + random_.randrange(-5, 5)
            assert wait_for(process, lambda least=enough: len(server.answers) >= least)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert not stored & {hash_of(request) for request in server.requests[asked_before:]}
        assert set(stored_prompts(run)) > stored
        # A kill in the middle of a write leaves part of a line.
        with open(run.path / "replies.jsonl", "r+b") as file:
            file.truncate(file.seek(0, os.SEEK_END) - 7)
        stored = set(stored_prompts(run))
    asked_before = len(server.requests)
    with running(run.path) as process:
        assert process.wait(60) == 0
    assert not stored & {hash_of(request) for request in server.requests[asked_before:]}
    hashes = stored_prompts(run)
    assert len(hashes) == len(set(hashes))
    keys = [(reply.query, reply.attempt) for reply in run.replies()]
    assert len(keys) == len(set(keys))
    # What was in flight when the process died is asked again, and the reply of the torn line, and nothing else.
    assert len(server.requests) - len(keys) <= kills * (CONCURRENCY + 1)

    assert not run.missing()
    graph, expected = build_graph(run), {}
    for query in run.plan.queries:
        for target in query.targets:
            chosen = [source for source in query.sources if source != target][:2]
            expected.setdefault((query.repetition, target), []).extend(chosen)
    for (repetition, target), chosen in expected.items():
        assert graph.selections[repetition][target] == tuple(sorted(chosen))


def test_a_polite_stop_waits_for_what_was_paid(double, planned):
    server = double(delay=0.2)
    run = planned(server)
    with running(run.path) as process:
        assert wait_for(process, lambda: len(server.answers) >= 6)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 85
    assert len(stored_prompts(run)) == len(server.requests) == len(server.answers) < len(run.plan.queries)
    assert len(set(stored_prompts(run))) == len(server.requests)


def test_a_second_stop_ends_at_once(double, planned):
    server = double(delay=5.0)
    run = planned(server)
    with running(run.path) as process:
        assert wait_for(process, lambda: len(server.requests) >= 4)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        assert process.wait(20) == 85
    assert time.monotonic() - started < 4
    assert stored_prompts(run) == []


def test_a_second_process_is_told_who_holds_the_run(double, planned):
    server = double()
    run = planned(server, tasks=8)
    with run.writing("a test"), running(run.path) as second:
        _, words = second.communicate(timeout=60)
    assert second.returncode == 2
    line = words.decode().strip()
    assert "\n" not in line
    assert f"is in use by process {os.getpid()} on {os.uname().nodename}" in line
    assert "(a test)" in line
    assert server.requests == []


def test_without_a_terminal_and_without_yes_nothing_is_sent(double, planned):
    server = double()
    run = planned(server, tasks=8)
    call = "import sys; from forethought.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", call, "judge", "run", str(run.path)], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"--yes" in done.stderr
    assert server.requests == []
