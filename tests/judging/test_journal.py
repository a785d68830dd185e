import errno
import os
import subprocess
import sys

import pytest

from forethought.judging.journal import Journal, Locked, lock, read_journal, read_lines


def written(path, *records):
    journal = Journal(path)
    for record in records:
        journal.append(record)
    journal.close()


def test_records_come_back_in_order(tmp_path):
    written(tmp_path / "j", {"a": 1}, {"b": "ünï\u2028\n\x00"})
    written(tmp_path / "j", {"c": [None, True]})
    assert list(read_journal(tmp_path / "j")) == [{"a": 1}, {"b": "ünï\u2028\n\x00"}, {"c": [None, True]}]
    assert list(read_journal(tmp_path / "none")) == []


def test_a_lone_surrogate_is_kept(tmp_path):
    written(tmp_path / "j", {"text": "x\ud800y"})
    assert list(read_journal(tmp_path / "j")) == [{"text": "x\ud800y"}]


@pytest.mark.parametrize("kept", range(1, 12))
def test_a_torn_tail_is_passed_over_and_repaired(kept, tmp_path):
    path = tmp_path / "j"
    written(path, {"a": 1}, {"b": 2})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"c":"long"}\n'[:kept])
    records = list(read_journal(path))
    assert records == [{"a": 1}, {"b": 2}]
    written(path, {"d": 4})
    assert list(read_journal(path)) == [{"a": 1}, {"b": 2}, {"d": 4}]


def test_a_last_line_that_lacks_only_its_break_is_kept(tmp_path):
    path = tmp_path / "j"
    path.write_bytes(b'{"a":1}\n{"b":2}')
    assert list(read_journal(path)) == [{"a": 1}, {"b": 2}]
    written(path, {"c": 3})
    assert list(read_journal(path)) == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_a_long_torn_tail_goes_too(tmp_path):
    path = tmp_path / "j"
    written(path, {"a": 1})
    path.write_bytes(path.read_bytes() + b'{"text":"' + b"x" * 300_000)
    written(path, {"b": 2})
    assert list(read_journal(path)) == [{"a": 1}, {"b": 2}]
    path.write_bytes(b'{"only a torn line' * 9000)
    written(path, {"c": 3})
    assert list(read_journal(path)) == [{"c": 3}]


def test_a_bad_line_inside_is_named(tmp_path):
    (tmp_path / "j").write_bytes(b'{"a":1}\nnonsense\n{"b":2}\n')
    with pytest.raises(ValueError, match="j, line 2: not JSON"):
        list(read_journal(tmp_path / "j"))
    (tmp_path / "j").write_bytes(b"[1]\n")
    with pytest.raises(ValueError, match="line 1: holds"):
        list(read_journal(tmp_path / "j"))


def test_lines_that_others_wrote_are_whole_or_named(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text('\n{"a": 1}\n\n  \n{"b": 2}')
    assert list(read_lines(path)) == [{"a": 1}, {"b": 2}]
    path.write_text('{"a": 1}\n{"b": ')
    with pytest.raises(ValueError, match=r"replies\.jsonl, line 2: not JSON"):
        list(read_lines(path))
    with pytest.raises(ValueError, match="none: cannot be read: No such file"):
        list(read_lines(tmp_path / "none"))


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j")
    journal.append({"a": 1})
    real, calls = os.write, []

    def half(descriptor, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space"):
            journal.append({"b": "long enough to be cut"})
    journal.append({"c": 3})
    journal.close()
    assert list(read_journal(tmp_path / "j")) == [{"a": 1}, {"c": 3}]


def test_a_line_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append((tmp_path / "j").read_bytes()))
    journal = Journal(tmp_path / "j")
    synced.clear()
    journal.append({"a": 1})
    assert synced == [b'{"a":1}\n']
    journal.append({"b": 1}, durable=False)
    assert len(synced) == 1


HOLD = """
import sys
from forethought.judging.journal import lock
with lock(sys.argv[1], "a long job"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_who_holds_the_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        message = rf"in use by process {process.pid} on .* since .* \(a long job\)"
        with pytest.raises(Locked, match=message), lock(tmp_path, "another"):
            pass
        process.kill()
    with lock(tmp_path, "another"):
        assert str(os.getpid()) in (tmp_path / "lock").read_text()
