from time import monotonic

import pytest

from forethought.judging.pause import Pause


@pytest.fixture(autouse=True)
def even(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: 1.0)


def length(pause, asked=None, sent=None):
    """Seconds that a failure makes everyone wait."""
    began = monotonic()
    pause.begin(asked, monotonic() if sent is None else sent)
    return pause.until - began


def test_the_pause_doubles_with_each_failure_in_a_row_up_to_a_minute():
    pause = Pause(100)
    assert [round(length(pause)) for _ in range(8)] == [2, 4, 8, 16, 32, 60, 60, 60]
    pause.over()
    pause.until = 0.0
    assert round(length(pause)) == 2


def test_the_provider_is_obeyed():
    assert length(Pause(9), asked=13.0) == pytest.approx(13, abs=0.1)
    pause = Pause(9)
    pause.begin(30.0, monotonic())
    until = pause.until
    pause.begin(1.0, monotonic())
    assert pause.until == until


def test_a_provider_that_always_asks_for_nothing_is_given_time_all_the_same():
    pause = Pause(9)
    assert [round(length(pause, asked=0.0)) for _ in range(4)] == [0, 0, 8, 16]


def test_failures_of_requests_that_were_under_way_count_once():
    pause, sent = Pause(2), monotonic()
    assert [pause.begin(0.0, sent) for _ in range(20)] == [True] * 20
    assert pause.failures == 1
    assert not pause.is_new
    assert not pause.begin(0.0, monotonic())
    assert pause.failures == 2
