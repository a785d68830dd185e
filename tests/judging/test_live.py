import errno
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

from forethought.judging.aggregate import build_graph
from forethought.judging.cost import Price
from forethought.judging.live import Options
from forethought.judging.plan import KINDS, Settings
from forethought.judging.prompts import Prompts
from forethought.judging.pruning import Pruning
from forethought.tasks import Task, TaskSet


def busy(status=429, retry_after=0.05):
    from pydantic_ai.exceptions import ModelHTTPError, ModelRateLimitError, ModelUnavailableError

    kind = ModelRateLimitError if status == 429 else ModelUnavailableError
    return ModelHTTPError.for_category(kind, status_code=status, model_name="m", retry_after=retry_after)


def http(status, body="no"):
    from pydantic_ai.exceptions import ModelHTTPError

    return ModelHTTPError(status, "m", body)


def lines(run, name):
    return (run.path / name).read_text().splitlines()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3, 40])
def test_a_run_is_asked_to_its_end(kind, size, make, run_of, student, ask):
    run, model = run_of(make(kind, size, repetitions=2)), student()
    outcome, live = ask(run, model)
    assert outcome.status == "complete"
    assert run.missing() == {}
    assert len(model.prompts) == len(run.plan.queries) == len(lines(run, "replies.jsonl")) == live.answered
    assert ask(run, model)[0].status == "complete"
    assert len(model.prompts) == len(run.plan.queries)


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_tasks_are_judged_to_the_end(kind, make, run_of, student, ask):
    size = 2000
    vectors = np.random.default_rng(0).normal(size=(size, 16))
    plan = make(kind, size, target_block=64, pruning=Pruning(64, 0.25, vectors, "chance"))
    run, model = run_of(plan), student()
    assert ask(run, model, concurrency=32)[0].status == "complete"
    assert len(model.prompts) == len(plan.queries) == 32
    graph = build_graph(run)
    assert len(graph.ids) == size
    assert graph.weights.nnz == 2 * size


def test_equal_prompts_of_different_repetitions_are_all_asked(make, run_of, student, ask):
    run, model = run_of(make("feasibility_evidence", 2, repetitions=8)), student()
    ask(run, model)
    assert len(set(model.prompts)) < 8
    assert len(model.prompts) == 8
    assert len({judgment.query for judgment in run.judgments()}) == 8


def test_texts_in_any_script_reach_the_model(make, run_of, student, ask):
    tasks = TaskSet([Task("ä", "Öffne die “Tür”."), Task("二", "走到門口 😀"), Task("x", "a\tb\u2028c {{ no }} $x")])
    run, model = run_of(make(tasks=tasks)), student()
    assert ask(run, model)[0].status == "complete"
    for text in ("Öffne die “Tür”.", "走到門口 😀", "a b c {{ no }} $x"):
        assert text in model.prompts[0]


def test_only_bad_targets_are_asked_again(make, run_of, student, ask):
    def forget_the_first(text):
        import json

        return json.dumps({"records": json.loads(text)["records"][1:]})

    run, model = run_of(make(tasks=6)), student({1: forget_the_first})
    assert ask(run, model)[0].status == "complete"
    assert len(model.prompts) == 2
    assert model.prompts[1].split("## Target goals")[1].count("| goal:") == 1
    assert "has no record" in model.prompts[1]


def test_a_prompt_is_rendered_once_for_each_request_though_it_is_sent_again(make, run_of, student, ask, monkeypatch):
    rendered = []
    real = Prompts.render
    monkeypatch.setattr(Prompts, "render", lambda *arguments: rendered.append(1) or real(*arguments))
    run = run_of(make(tasks=20, source_block=10, target_block=5))
    model = student({2: busy(), 3: busy(503)}, dialects=("text",))
    assert ask(run, model, concurrency=1)[0].status == "complete"
    assert len(rendered) == len(run.plan.queries) == 8
    assert len(model.prompts) > 8


def test_what_was_sent_is_hashed_into_every_reply(make, run_of, student, ask):
    import hashlib

    run, model = run_of(make(tasks=20, target_block=5)), student()
    ask(run, model)
    assert {reply.prompt_hash for reply in run.replies()} == {
        hashlib.sha256(prompt.encode()).hexdigest() for prompt in model.prompts
    }


def test_a_reply_cut_off_is_asked_in_halves(make, run_of, student, ask):
    run = run_of(make(tasks=8, target_block=8))
    model = student({1: lambda text: text[:40]}, finish={1: "length"})
    assert ask(run, model)[0].status == "complete"
    assert [prompt.split("## Target goals")[1].count("| goal:") for prompt in model.prompts] == [8, 4, 4]


@pytest.mark.parametrize("answer", ["", "Sorry.", '{"records": []}', "<think>hm"])
def test_a_model_that_never_answers_is_given_up_with_its_targets_named(answer, make, run_of, student, ask):
    run = run_of(make(tasks=4, settings=Settings("google:m", asks=3)))
    model = student(dict.fromkeys(range(1, 99), lambda _: answer))
    outcome, live = ask(run, model)
    assert outcome.status == "given up"
    assert "4 judgments" in outcome.reason
    assert len(model.prompts) == 3
    assert run.missing() == {run.plan.queries[0].id: run.plan.queries[0].targets}
    assert list(run.judgments()) == []
    assert list(live.seats[0].state.given_up()) == [run.plan.queries[0].id]
    assert ask(run, student(), asks=4)[0].status == "complete"


def test_one_pause_is_shared_by_all_requests(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8))
    told = []
    model = student({n: busy(retry_after=0.4) for n in (3, 4)}, delay=0.02)
    began = time.monotonic()
    outcome, _ = ask(run, model, concurrency=4, told=told)
    assert outcome.status == "complete"
    assert time.monotonic() - began > 0.4
    assert len([line for line in told if "pausing" in line]) == 1
    assert len(model.prompts) == len(run.plan.queries) + 2


def test_nothing_is_sent_during_the_pause(make, run_of, student, ask):
    sent = []

    class Clocked(student):
        async def __call__(self, messages, info):
            sent.append(time.monotonic())
            return await super().__call__(messages, info)

    run = run_of(make(tasks=40, source_block=8, target_block=8))
    ask(run, Clocked({5: busy(retry_after=1.0)}), concurrency=1)
    gaps = [b - a for a, b in itertools.pairwise(sent)]
    assert gaps[4] >= 1.0
    assert max(gaps[:4] + gaps[5:]) < 1.0


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_errors_of_the_server_are_tried_again(status, make, run_of, student, ask, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: 0.01)
    run, model = run_of(make(tasks=4)), student({1: http(status)})
    assert ask(run, model)[0].status == "complete"
    assert len(model.prompts) == 2
    assert len(lines(run, "replies.jsonl")) == 1


def test_a_server_that_stays_down_ends_the_run(make, run_of, student, ask, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: 0.001)
    run, model = run_of(make(tasks=4)), student({n: busy(503, 0.0) for n in range(1, 99)})
    outcome, _ = ask(run, model, patience=5)
    assert outcome.status == "failed"
    assert "5 failures in a row" in outcome.reason
    assert len(model.prompts) == 5


def test_a_provider_that_asks_for_hours_ends_the_run(make, run_of, student, ask):
    run, model = run_of(make(tasks=4)), student({1: busy(retry_after=86400.0)})
    outcome, _ = ask(run, model)
    assert outcome.status == "failed"
    assert "asks to wait 86400 s" in outcome.reason


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refusal_for_good_ends_the_run_at_once(status, make, run_of, student, ask):
    from pydantic_ai.exceptions import ModelHTTPError

    run = run_of(make(tasks=40, source_block=8, target_block=8))
    model = student({n: ModelHTTPError(status, "m", "credit") for n in range(1, 99)})
    outcome, _ = ask(run, model)
    assert outcome.status == "failed"
    assert "refuses" in outcome.reason
    assert len(model.prompts) <= 4
    assert ask(run, student())[0].status == "complete"


def test_a_quota_that_is_used_up_ends_the_run(make, run_of, student, ask):
    from pydantic_ai.exceptions import ModelHTTPError, ModelQuotaExceededError

    spent = ModelHTTPError.for_category(
        ModelQuotaExceededError, status_code=429, model_name="m", body="insufficient_quota"
    )
    outcome, _ = ask(run_of(make(tasks=4)), student({1: spent}))
    assert outcome.status == "failed"


def test_a_request_that_may_have_been_paid_is_kept_and_asked_again(make, run_of, student, ask, monkeypatch):
    from pydantic_ai.exceptions import ModelTimeoutError

    monkeypatch.setattr("random.uniform", lambda low, high: 0.001)
    run = run_of(make(tasks=4))
    model = student({1: ModelTimeoutError("m", "timed out", phase="read")})
    outcome, live = ask(run, model)
    assert outcome.status == "complete"
    first, second = run.replies()
    assert first.error == "timed out"
    assert (first.attempt, second.attempt) == (1, 2)
    assert live.seats[0].state.errors == live.seats[0].state.maybe_paid == 1


def test_a_schema_that_is_refused_gives_way_to_a_looser_one_for_good(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8, settings=Settings("openai:m")))
    told = []
    model = student(dialects=("prompted", "text"))
    assert ask(run, model, concurrency=1, told=told)[0].status == "complete"
    assert [mode for mode, _ in model.schemas[:5]] == ["native", "native", "native", "prompted", "prompted"]
    assert len(model.prompts) == len(run.plan.queries) + 3
    assert run.dialect() == "json"
    assert sum("refused the" in line for line in told) == 3
    assert {line["dialect"] for line in run.requests() if line["attempt"] == 1} == {
        "strict",
        "targets",
        "loose",
        "json",
    }


def test_several_requests_refused_at_once_step_down_once(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8, settings=Settings("openai:m")))
    model = student(dialects=("prompted", "text"), delay=0.01)
    assert ask(run, model, concurrency=4)[0].status == "complete"
    assert run.dialect() == "json"


def test_a_refusal_that_comes_after_others_were_taken_in_a_looser_form_is_no_fault_of_the_request(
    make, run_of, student, ask
):
    class Slow(student):
        async def __call__(self, messages, info):
            self.delay = 0.3 if len(self.prompts) == 1 else 0.0  # the second call is answered last
            return await super().__call__(messages, info)

    run = run_of(make(tasks=40, source_block=8, target_block=8, settings=Settings("openai:m")))
    assert ask(run, Slow(dialects=("prompted", "text")), concurrency=4)[0].status == "complete"
    assert run.dialect() == "json"
    assert {(reply.attempt, reply.error) for reply in run.replies()} == {(1, None)}


def test_the_dialect_is_kept_for_the_next_time(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8, settings=Settings("openai:m")))
    ask(run, student(dialects=("prompted",)), confirm=lambda _: False)
    model = student(dialects=("prompted",))
    assert ask(run, model)[0].status == "complete"
    assert {mode for mode, _ in model.schemas} == {"prompted"}


def test_a_provider_that_takes_no_form_ends_the_run(make, run_of, student, ask):
    outcome, _ = ask(run_of(make(tasks=4)), student(dialects=()))
    assert outcome.status == "failed"
    assert "in no form" in outcome.reason


def test_one_request_that_is_never_taken_does_not_keep_others_from_being_asked(make, run_of, student, ask):
    class Censor(student):
        async def __call__(self, messages, info):
            if self.prompts and messages[0].parts[0].content.split("## Target goals")[1].count("number 7."):
                raise http(400, "policy")
            return await super().__call__(messages, info)

    run = run_of(make(tasks=40, target_block=2, settings=Settings("google:m", asks=2)))
    outcome, live = ask(run, Censor(), price=Price(1.0, 1.0), max_usd=100.0)
    assert outcome.status == "given up"
    (targets,) = run.missing().values()
    assert 7 in targets
    (faults,) = live.seats[0].state.given_up().values()
    assert "does not take this request" in faults[7]
    assert run.dialect() == "loose"
    assert (live.seats[0].state.errors, live.seats[0].state.maybe_paid, live.seats[0].state.unpriced) == (2, 0, 0)


def test_many_refusals_in_a_row_end_the_run(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8))
    model = student({n: http(400) for n in range(5, 99)})
    outcome, _ = ask(run, model, concurrency=1, patience=3)
    assert outcome.status == "failed"
    assert "3 requests in a row were not taken" in outcome.reason
    assert len(model.prompts) == 7


def test_a_prompt_that_the_server_cut_is_noticed(make, run_of, student, ask):
    class Cutting(student):
        async def __call__(self, messages, info):
            response = await super().__call__(messages, info)
            response.usage.input_tokens = 600
            return response

    run = run_of(make(tasks=40, settings=Settings("ollama:m", base_url="http://localhost:1/v1")))
    outcome, _ = ask(run, Cutting())
    assert outcome.status == "failed"
    assert "cuts long prompts" in outcome.reason
    assert list(run.judgments()) == []
    assert next(run.replies()).text


def test_the_cap_on_spending_is_kept_with_requests_in_flight(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8))
    price = Price(0.0, 10.0)  # A cent a reply.
    outcome, live = ask(run, student(delay=0.01), price=price, max_usd=0.1, guess_usd=0.01, concurrency=8)
    assert outcome.status == "budget"
    assert live.spent_usd == pytest.approx(0.10)
    outcome, live = ask(run, student(), price=price, max_usd=0.1)
    assert (outcome.status, live.answered) == ("budget", 0)
    outcome, live = ask(run, student(), price=price, max_usd=0.3)
    assert outcome.status == "complete"
    assert live.spent_usd == pytest.approx(0.25)


def test_a_pilot_of_four_comes_before_the_question(make, run_of, student, ask):
    run = run_of(make(tasks=40, source_block=8, target_block=8))
    asked = []

    def decline(question):
        asked.append((question, len(lines(run, "replies.jsonl"))))
        return False

    model = student()
    outcome, live = ask(run, model, confirm=decline, price=Price(1.0, 10.0))
    assert outcome.status == "declined"
    ((question, stored),) = asked
    assert stored == len(model.prompts) == 4
    assert "1,000 output tokens a reply" in question
    assert f"${live.spent_usd:.2f} spent; the 21 queries left: about ${21 * live.spent_usd / 4:.2f}" in question
    outcome, _ = ask(run, model, confirm=lambda question: True)
    assert outcome.status == "complete"
    assert len(model.prompts) == 25


def test_the_pilot_asks_both_kinds_and_the_rest_goes_kind_by_kind(make, run_of, student, ask):
    runs = [run_of(make(kind, 40, target_block=5), kind) for kind in KINDS[:2]]
    ask(runs, student(), confirm=lambda _: False)
    assert [len(lines(run, "replies.jsonl")) for run in runs] == [2, 2]
    outcome, _ = ask(runs, student(), confirm=lambda _: True)
    assert outcome.status == "complete"
    assert [run.missing() for run in runs] == [{}, {}]


def test_requests_in_flight_rise_to_the_limit_and_no_further(make, run_of, student, ask):
    run = run_of(make(tasks=120, source_block=8, target_block=8))
    model = student(delay=0.01)
    ask(run, model, concurrency=6)
    assert model.most_in_flight == 6


def test_another_model_than_asked_is_reported(make, run_of, student, ask):
    told = []
    ask(run_of(make(tasks=4)), student(), told=told)
    assert any("gemini-3.8-flash was asked, function" in line for line in told)


def test_the_first_interrupt_lets_requests_finish(make, run_of, student, ask):
    assert threading.current_thread() is threading.main_thread()
    run = run_of(make(tasks=120, source_block=8, target_block=8))
    model = student(delay=0.3)
    timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome, _ = ask(run, model, concurrency=4)
    timer.join()
    assert outcome.status == "interrupted"
    assert len(lines(run, "replies.jsonl")) == len(model.prompts) == 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_drops_them(make, run_of, student, ask):
    run = run_of(make(tasks=120, source_block=8, target_block=8))
    timers = [threading.Timer(after, os.kill, (os.getpid(), signal.SIGTERM)) for after in (0.2, 0.4)]
    for timer in timers:
        timer.start()
    began = time.monotonic()
    outcome, _ = ask(run, student(delay=30), concurrency=4)
    assert outcome.status == "interrupted"
    assert time.monotonic() - began < 20
    assert lines(run, "replies.jsonl") == []
    assert len(list(run.requests())) == 4


def test_a_reply_is_on_disk_before_it_is_judged(make, run_of, student, ask, monkeypatch):
    from forethought.judging import state

    run = run_of(make(tasks=4))
    stored = []

    def fail(*arguments):
        stored.append(len(lines(run, "replies.jsonl")))
        raise RuntimeError("killed while judging")

    with monkeypatch.context() as patch:
        patch.setattr(state, "judge", fail)
        with pytest.raises(RuntimeError, match="killed"):
            ask(run, student())
    assert stored == [1]
    model = student()
    assert ask(run, model)[0].status == "complete"
    assert model.prompts == []


def test_a_mistake_of_ours_loses_no_reply_that_is_under_way(make, run_of, student, ask, monkeypatch):
    from forethought.judging import state

    run, model = run_of(make(tasks=40, source_block=8, target_block=8)), student(delay=0.05)
    real, judged = state.judge, []

    def fail_once(*arguments):
        judged.append(1)
        if len(judged) == 6:
            raise ZeroDivisionError
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(state, "judge", fail_once)
        with pytest.raises(ZeroDivisionError):
            ask(run, model, concurrency=4)
    assert len(lines(run, "replies.jsonl")) == len(model.prompts)
    again = student()
    assert ask(run, again)[0].status == "complete"
    assert len(model.prompts) + len(again.prompts) == 25


def test_a_disk_that_is_full_ends_the_run_in_one_line(make, run_of, student, ask, monkeypatch):
    from forethought.judging.store import Writer

    run, stored = run_of(make(tasks=40, source_block=8, target_block=8)), []
    real = Writer.reply

    def fill(writer, reply):
        if len(stored) == 6:
            raise OSError(errno.ENOSPC, "No space left on device", str(run.path / "replies.jsonl"))
        stored.append(reply)
        real(writer, reply)

    model = student()
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "reply", fill)
        outcome, _ = ask(run, model, concurrency=2)
    assert outcome.status == "failed"
    assert "replies.jsonl cannot be written: No space left on device; nothing more is sent" in outcome.reason
    assert len(model.prompts) <= 8
    assert ask(run, student())[0].status == "complete"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"pilot": -1}, "pilot is -1"),
        ({"max_usd": 5.0}, "needs the model's price"),
        ({"max_usd": 0.0, "price": Price(1.0, 1.0)}, "max_usd is 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Options(**options)
