import asyncio

import pytest

from forethought.judging.backend import Backend, Failure
from forethought.judging.batch_log import batch_records
from forethought.judging.batches import Batches
from forethought.judging.cost import Price


@pytest.fixture
def process(student):
    """`process(run, model, action, ...)`: do things with a run's batches, as one process would."""
    from pydantic_ai.models.function import FunctionModel

    def go(run, model, *actions):
        model = model if isinstance(model, FunctionModel) else FunctionModel(model)
        found = []

        async def main():
            with run.writing("test") as writer:
                batches = Batches(run, writer, Backend(run.plan.settings, model), Price(1.0, 10.0))
                for action in actions:
                    found.append(await action(batches))

        asyncio.run(main())
        return found

    return go


@pytest.fixture
def function_model(student):
    """A provider whose batches outlive a process, and that can lose its answers."""
    from pydantic_ai.models.function import FunctionModel

    class Provider(FunctionModel):
        created = 0
        lose = None
        refuse = None
        status = None
        alter = staticmethod(lambda results: results)

        async def batch_create(self, requests):
            if self.refuse is not None:
                raise self.refuse
            self.created += 1
            batch = await super().batch_create(requests)
            if self.lose is not None:
                self.lost = batch
                raise self.lose
            return batch

        async def batch_status(self, batch):
            import dataclasses

            found = await super().batch_status(batch)
            return dataclasses.replace(found, status=self.status) if self.status else found

        async def batch_results(self, batch):
            return self.alter(await super().batch_results(batch))

    return lambda: Provider(student())


def submit(batches):
    return batches.submit()


def collect(batches):
    return batches.collect()


@pytest.fixture
def run(make, run_of):
    return run_of(make(tasks=40, source_block=8, target_block=8))


def test_a_probe_comes_first_and_then_the_rest(run, process, function_model):
    model = function_model()
    probe, done, rest, last, nothing = process(run, model, submit, collect, submit, collect, submit)
    assert (probe.queries, probe.is_probe, probe.left) == (4, True, 21)
    assert done[0].detail == "4 replies, 32 of 32 judgments valid"
    assert (rest.queries, rest.is_probe, rest.left) == (21, False, 0)
    assert last[0].status == "collected"
    assert (nothing.queries, nothing.batches) == (0, ())
    assert run.missing() == {}
    assert model.created == 2
    assert {reply.via for reply in run.replies()} == {"batch"}
    # Half of the live price: 1,000 tokens of output at ten dollars a million.
    assert next(run.replies()).cost_usd == pytest.approx(0.005 + next(run.replies()).usage["input"] / 2e6)


def test_each_step_may_be_a_process_of_its_own(run, process, function_model):
    model = function_model()
    for action in (submit, collect, submit, collect):
        process(run, model, action)
    assert run.missing() == {}


def test_the_rest_waits_for_the_probe(run, process, function_model):
    model = function_model()
    process(run, model, submit)
    with pytest.raises(ValueError, match="not collected yet"):
        process(run, model, submit)
    assert model.created == 1


def test_a_probe_that_does_not_validate_stops_the_batch_but_not_another_dialect(run, process, student):
    from pydantic_ai.models.function import FunctionModel

    model = FunctionModel(student(dict.fromkeys(range(1, 5), lambda _: "prose")))
    process(run, model, submit, collect)
    with pytest.raises(ValueError, match=r"of 32 judgments in the probe, 0 are valid: .* ignore the response schema"):
        process(run, model, submit)
    probe, _, rest = process(run, model, lambda b: b.submit("prompted"), collect, lambda b: b.submit("prompted"))
    assert probe.is_probe
    assert not rest.is_probe
    assert {record.dialect for record in batch_records(run)} == {"loose", "prompted"}


def test_what_a_batch_holds_is_not_asked_live(run, process, function_model, student, ask):
    model = function_model()
    process(run, model, submit)
    asked = student()
    outcome, _ = ask(run, asked)
    assert len(asked.prompts) == 21
    assert "waits for a batch" in outcome.reason
    process(run, model, collect)
    assert run.missing() == {}


def test_bad_judgments_of_a_batch_are_asked_live(run, process, student, ask):
    process(run, student({2: lambda _: "{}"}), submit, collect)
    model = student()
    assert ask(run, model)[0].status == "complete"
    assert len(model.prompts) == 22
    assert sum("has no list" in prompt for prompt in model.prompts) == 1


def test_a_lost_answer_to_creation_is_never_submitted_twice_by_itself(run, process, function_model):
    from pydantic_ai.exceptions import ModelConnectionError

    model = function_model()
    model.lose = ModelConnectionError("m", "connection lost", phase="read")
    with pytest.raises(Failure, match="connection lost"):
        process(run, model, submit)
    model.lose = None
    (record,) = batch_records(run)
    assert record.status == "unconfirmed"
    for _ in range(2):
        with pytest.raises(ValueError, match=r"a batch of 4 queries was about to be made at .* never confirmed"):
            process(run, model, submit)
    assert model.created == 1


def test_a_kill_between_creation_and_its_record_is_found_again(run, process, function_model, monkeypatch):
    from forethought.judging.batch_log import BatchLog

    model = function_model()

    def die(*arguments):
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(BatchLog, "confirm", die)
        with pytest.raises(SystemExit):
            process(run, model, submit)
    with pytest.raises(ValueError, match="never confirmed"):
        process(run, model, submit)
    (id,) = model._batch_state.batches
    _, done = process(run, model, lambda b: b.adopt(id), collect)
    assert done[0].detail == "4 replies, 32 of 32 judgments valid"
    assert model.created == 1


def test_adopting_a_batch_of_another_size_or_without_need_is_refused(run, process, function_model):
    from pydantic_ai.exceptions import ModelConnectionError

    model = function_model()
    with pytest.raises(ValueError, match="none to adopt"):
        process(run, model, lambda b: b.adopt("x"))
    process(run, model, submit, collect, submit)
    rest = batch_records(run)[-1].handle["id"]
    model.lose = ModelConnectionError("m", "lost", phase="read")
    process(run, model, collect)

    async def forget(batches):
        batches.log.intend([*batch_records(run)[0].requests], is_probe=False, group="g")

    process(run, model, forget)
    with pytest.raises(ValueError, match="has 21 queries; the one to adopt has 4"):
        process(run, model, lambda b: b.adopt(rest))


def test_a_person_may_say_that_it_was_never_made(run, process, function_model):
    from pydantic_ai.exceptions import ModelConnectionError

    model = function_model()
    model.lose = ModelConnectionError("m", "lost", phase="read")
    with pytest.raises(Failure):
        process(run, model, submit)
    model.lose = None

    async def abandon(batches):
        return batches.abandon()

    count, again = process(run, model, abandon, submit)
    assert count == 1
    assert again.queries == 4


@pytest.mark.parametrize("status", [400, 401, 429])
def test_a_clear_no_leaves_nothing_behind(status, run, process, function_model):
    from pydantic_ai.exceptions import ModelHTTPError

    model = function_model()
    model.refuse = ModelHTTPError(status, "m", "no")
    with pytest.raises(Failure):
        process(run, model, submit)
    model.refuse = None
    assert [record.status for record in batch_records(run)] == ["abandoned"]
    assert process(run, model, submit)[0].queries == 4


def test_results_are_matched_by_id_in_any_order_with_some_missing_and_some_foreign(run, process, function_model):
    import dataclasses

    def shuffle(results):
        return [dataclasses.replace(results[0], custom_id="someone-elses"), results[3], results[1], results[2]]

    model = function_model()
    model.alter = shuffle
    _, done = process(run, model, submit, collect)
    assert done[0].detail == (
        "3 replies, 24 of 32 judgments valid; 1 without a result; 1 results of unknown requests passed over"
    )
    assert len(run.missing()) == 22
    for reply in run.replies():
        assert reply.query in run.plan.by_id
    # The one without a result is free to be asked again.
    state = run.state()
    assert len([r for q in run.plan.queries for r in state.pending(q)]) == 22


def test_requests_that_failed_in_a_batch_are_counted_and_asked_again(run, process, student):
    from pydantic_ai.exceptions import ModelHTTPError

    _, done = process(run, student({2: ModelHTTPError(500, "m", "oops")}), submit, collect)
    assert "3 replies, 24 of 32 judgments valid; 1 failed (status_code: 500" in done[0].detail
    assert len(list(run.replies())) == 3


def test_collecting_never_waits_and_stores_once(run, process, function_model):
    model = function_model()
    process(run, model, submit)
    model.status = "in_progress"
    (waiting,) = process(run, model, collect)
    assert waiting[0].status == "in_progress"
    assert list(run.replies()) == []
    model.status = None
    first, second = process(run, model, collect, collect)
    assert first[0].status == "collected"
    assert second == []
    assert len(list(run.replies())) == 4


def test_a_kill_while_collecting_costs_nothing(run, process, function_model, monkeypatch):
    from forethought.judging.store import Writer

    model, stored = function_model(), []
    real = Writer.reply

    def die(writer, reply):
        if len(stored) == 2:
            raise SystemExit(9)
        stored.append(reply)
        real(writer, reply)

    process(run, model, submit)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "reply", die)
        with pytest.raises(SystemExit):
            process(run, model, collect)
    process(run, model, collect)
    assert len(list(run.replies())) == 4
    assert len({(reply.query, reply.attempt) for reply in run.replies()}) == 4


def test_another_key_does_not_see_the_batch_and_nothing_is_lost(run, process, function_model):
    from pydantic_ai.exceptions import ModelHTTPError

    model = function_model()
    process(run, model, submit)

    class Other(type(model)):
        async def batch_status(self, batch):
            raise ModelHTTPError(404, "m", "not found")

    other = Other(model.function)
    with pytest.raises(Failure, match="visible only to the key, or project, that made it"):
        process(run, other, collect)
    assert batch_records(run)[0].status == "open"
    assert process(run, model, collect)[0][0].status == "collected"


def test_limits_of_a_provider_split_a_batch(run, process, function_model):
    class Small(type(function_model())):
        batch_max_requests = 8

        @property
        def batch_max_bytes(self):
            return 10_000_000

    model = Small(function_model().function)
    *_, rest, _ = process(run, model, submit, collect, submit, collect)
    assert len(rest.batches) == 3
    assert run.missing() == {}


def test_standings_tell_of_every_batch(run, process, function_model):
    model = function_model()
    *_, found = process(run, model, submit, collect, submit, lambda b: b.standings())
    assert [(batch.queries, batch.status) for batch in found] == [(4, "collected"), (21, "ended")]


def test_cancelling_asks_the_provider(run, process, function_model):
    model = function_model()
    assert process(run, model, submit, lambda b: b.cancel())[1] == 1


def test_a_model_without_batches_is_named(run, process, student):
    from pydantic_ai.models.function import FunctionModel

    class Live(FunctionModel):
        batch_max_requests = None

    with pytest.raises(ValueError, match="has no batch API; models of google, openai, anthropic have one"):
        process(run, Live(student()), submit)
