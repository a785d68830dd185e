import json
from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

from forethought import Curriculum, CurriculumConfig, Task, TaskSet  # noqa: E402
from forethought.adapters.torch import AHEAD, CurriculumSampler  # noqa: E402

TASKS = TaskSet([Task("a", "Do a."), Task("b", "Do b."), Task("c", "Do c.")])
ROWS = ["a", "b", "a", "c", "a", "b", "c", "a", "b", "a"]
LEVEL = np.array([0.9, 0.4, 0.0])


def make(seed=0, method="alp", warmup=2, **settings):
    curriculum = Curriculum(TASKS, method=method, seed=seed, config=CurriculumConfig(warmup=warmup))
    return CurriculumSampler(curriculum, ROWS, **({"batch_size": 4, "batches": 5} | settings))


def outcomes(sampler, rows):
    """Depend on the rows and the time only, so that runs can be compared."""
    tasks = sampler.tasks[list(rows)]
    drift = np.sin(np.arange(len(tasks)) + sampler.curriculum.iteration)
    return np.clip(LEVEL[tasks] + 0.3 * drift, 0, 1)


def train(sampler, batches, rows=None):
    """Hand out batches and report each before the next; returns the rows."""
    rows = iter(sampler) if rows is None else rows
    seen = []
    for _ in range(batches):
        batch = list(islice(rows, sampler.batch_size))
        sampler.observe(sampler.tasks[batch], outcomes(sampler, batch))
        seen.append(batch)
    return seen


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


class TestHandingOut:
    def test_tasks_are_the_curriculums_draws(self):
        sampler, twin = make(seed=3), make(seed=3).curriculum
        for batch in train(sampler, 5):
            expected = twin.sample(4)
            assert sampler.tasks[batch].tolist() == expected.tolist()
            twin.update(expected, outcomes_at(twin.iteration, expected))

    def test_a_tasks_rows_come_all_once_before_any_again_and_in_changing_orders(self):
        sampler = make(method="unif", batches=100)
        rows = np.array(list(sampler))
        of_a = rows[sampler.tasks[rows] == 0]
        rounds = of_a[: of_a.size // 5 * 5].reshape(-1, 5)
        assert len(rounds) > 10
        assert all(set(round_) == {0, 2, 4, 7, 9} for round_ in rounds)
        assert len({tuple(round_) for round_ in rounds}) > 5
        assert list(make(method="unif", batches=100)) == rows.tolist()
        assert list(make(method="unif", batches=100, seed=0)) == rows.tolist()
        other = CurriculumSampler(Curriculum(TASKS, method="unif"), ROWS, batch_size=4, batches=100, seed=1)
        again = np.array(list(other))
        assert np.array_equal(other.tasks[again], sampler.tasks[rows])
        assert not np.array_equal(again, rows)

    def test_repeats_and_passes_have_their_layout(self):
        sampler = make(repeats=3, passes=2, batches=2)
        rows = np.array(list(sampler))
        assert rows.size == len(sampler) == 2 * 4 * 3 * 2
        plain = np.array(list(make(batches=2))).reshape(2, 4)
        assert np.array_equal(rows.reshape(2, 2, 4, 3), np.broadcast_to(plain[:, None, :, None], (2, 2, 4, 3)))

    def test_an_epoch_is_as_long_as_the_dataset_and_never_empty(self):
        assert len(CurriculumSampler(Curriculum(TASKS), ROWS, batch_size=4)) == 8
        assert len(CurriculumSampler(Curriculum(TASKS), ROWS, batch_size=64)) == 64

    def test_fixed_rows_come_in_every_batch(self):
        sampler = make(method="unif", fixed={"c": 2})
        assert (sampler.tasks[np.array(list(sampler)).reshape(5, 4)][:, :2] == 2).all()

    def test_nothing_is_drawn_before_it_is_asked_for(self):
        sampler = make()
        before = sampler.state_dict()
        iter(sampler)
        assert same(sampler.state_dict(), before)

    def test_a_batch_knows_what_was_heard_of_the_one_before(self):
        sampler = make(warmup=0, batches=50)
        twin = make(warmup=0).curriculum
        for batch in DataLoader(torch.arange(len(ROWS)), batch_size=4, sampler=sampler):  # pyright: ignore
            expected = twin.sample(4)
            assert sampler.tasks[batch].tolist() == expected.tolist()
            sampler.observe(sampler.tasks[batch], torch.tensor(outcomes(sampler, batch)))
            twin.update(expected, outcomes_at(twin.iteration, expected))
        assert twin.iteration == 50
        assert np.ptp(twin.probabilities) > 0.1

    def test_a_loader_may_run_ahead(self):
        sampler = make(batches=50)
        rows = iter(sampler)
        waiting = [list(islice(rows, 4)) for _ in range(3)]
        for _ in range(20):
            batch = waiting.pop(0)
            sampler.observe(sampler.tasks[batch], outcomes(sampler, batch))
            waiting.append(list(islice(rows, 4)))
            assert np.array_equal(sampler.state_dict()["sampler_awaited"], waiting)

    @pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning", "ignore:This process:DeprecationWarning")
    def test_workers_fetch_the_rows_of_the_one_sampler_and_it_hears_of_all(self):
        sampler = make(batches=6, method="unif")
        expected = np.array(list(make(batches=6, method="unif"))).reshape(6, 4)
        seen = []
        for batch in DataLoader(torch.arange(len(ROWS)), batch_size=4, sampler=sampler, num_workers=2):  # pyright: ignore
            seen.append(batch.tolist())
            sampler.observe(sampler.tasks[batch], outcomes(sampler, batch))
        assert seen == expected.tolist()
        assert sampler.curriculum.iteration == 6
        assert sampler.state_dict()["sampler_awaited"].size == 0

    def test_who_never_reports_keeps_a_bounded_state(self):
        sampler = make(batches=3 * AHEAD)
        list(sampler)
        assert sampler.state_dict()["sampler_awaited"].shape == (AHEAD, 4)


def outcomes_at(iteration, tasks):
    return np.clip(LEVEL[tasks] + 0.3 * np.sin(np.arange(len(tasks)) + iteration), 0, 1)


class TestHearing:
    def test_ids_indices_and_tensors_are_the_same(self):
        states = []
        for tasks in (["a", "b"], [0, 1], np.array([0, 1]), torch.tensor([0, 1]), np.array(["a", "b"], object)):
            sampler = make(method="unif")
            list(sampler)
            sampler.observe(tasks, torch.tensor([1.0, 0.5], dtype=torch.bfloat16), torch.tensor([4, 2]))
            states.append(sampler.state_dict())
        assert all(same(state, states[0]) for state in states)
        assert states[0]["success_rate"].tolist() == [1, 0.5, 0]

    @pytest.mark.parametrize(
        ("tasks", "successes", "error", "words"),
        [
            (["a", "nothing"], [1, 1], KeyError, "nothing"),
            ([0, 3], [1, 1], ValueError, "task index is 3; allowed: 0 to 2"),
            ([0, -1], [1, 1], ValueError, "task index is -1"),
            ([0.0], [1], ValueError, "float64"),
            ([0], [float("nan")], ValueError, "successes"),
            ([0], [1.5], ValueError, "successes"),
            ([0, 1], [1], ValueError, "shapes"),
        ],
    )
    def test_nonsense_is_refused_and_changes_nothing(self, tasks, successes, error, words):
        sampler = make(method="unif")
        list(sampler)
        before = sampler.state_dict()
        with pytest.raises(error, match=words):
            sampler.observe(tasks, successes)
        assert same(sampler.state_dict(), before)

    def test_a_task_that_was_not_handed_out_tells_of_rows_in_another_order(self):
        sampler = make()
        batch = list(islice(iter(sampler), 4))
        never = next(task for task in range(3) if task not in sampler.tasks[batch])
        with pytest.raises(ValueError, match=f"task '{TASKS.ids[never]}', of which no row was handed out"):
            sampler.observe([never], [1])
        assert sampler.curriculum.iteration == 0

    def test_a_batch_without_outcomes_ends_an_iteration(self):
        sampler = make()
        list(islice(iter(sampler), 4))
        sampler.observe([], [])
        assert sampler.curriculum.iteration == 1
        assert sampler.state_dict()["sampler_awaited"].shape == (0, 4)


class TestResuming:
    def test_sampler_and_iterator_go_on_where_they_stopped(self, tmp_path):
        sampler = make(batches=30)
        rows = iter(sampler)
        train(sampler, 13, rows)
        np.savez(tmp_path / "state.npz", **sampler.state_dict())
        place = json.loads(json.dumps(rows.state_dict()))
        straight = train(sampler, 17, rows)
        assert next(rows, None) is None

        resumed = make(batches=30, seed=9)
        train(resumed, 4)
        numbers = repr(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
        with np.load(tmp_path / "state.npz") as state:
            resumed.load_state_dict(dict(state))
        rows = iter(resumed)
        rows.load_state_dict(place)
        assert train(resumed, 17, rows) == straight
        assert next(rows, None) is None
        assert same(resumed.state_dict(), sampler.state_dict())
        assert repr(np.random.get_state()) == numbers[0]  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), numbers[1])

    @pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")
    @pytest.mark.parametrize("loaded", [4, 2, 1])
    @pytest.mark.parametrize("stop", [0, 4, 5, 6, 8, 12, 16, 17])
    def test_torchdata_saves_and_restores_it_anywhere(self, stop, loaded):
        """With the loader's batches as large as the sampler's, or smaller, over several epochs."""
        torchdata = pytest.importorskip("torchdata.stateful_dataloader")

        def new(seed):
            sampler = make(seed=seed, batches=3)
            loader = torchdata.StatefulDataLoader(torch.arange(10), batch_size=loaded, sampler=sampler)  # pyright: ignore
            return sampler, loader, (batch for _ in range(10) for batch in loader)

        def take(samples, sampler, stream, seen):
            for batch in islice(stream, samples // loaded):
                seen.extend(batch.tolist())
                if len(seen) % 4 == 0:
                    sampler.observe(sampler.tasks[seen[-4:]], outcomes(sampler, seen[-4:]))

        sampler, loader, stream = new(0)
        take(stop, sampler, stream, seen := [])
        state, before = loader.state_dict(), list(seen)
        take(40, sampler, stream, seen)
        resumed, loader, stream = new(1)
        loader.load_state_dict(state)
        take(40, resumed, stream, before)
        assert before == seen
        assert same(resumed.state_dict(), sampler.state_dict())

    def test_rewinding_hands_out_what_was_not_heard_of(self):
        sampler = make(batches=30)
        rows = iter(sampler)
        train(sampler, 5, rows)
        ahead = [list(islice(rows, 4)) for _ in range(2)]
        state = sampler.state_dict()

        resumed = make(batches=30, seed=9)
        resumed.load_state_dict(state)
        resumed.rewind()
        saved = resumed.state_dict()
        assert train(resumed, 2) == ahead
        for batch in ahead:
            sampler.observe(sampler.tasks[batch], outcomes(sampler, batch))
        assert same(resumed.state_dict(), sampler.state_dict())
        assert train(resumed, 5) == train(sampler, 5, rows)

        twice = make(batches=30, seed=8)
        twice.load_state_dict(saved)
        assert train(twice, 2) == ahead

    def test_foreign_and_broken_states_are_refused_and_change_nothing(self):
        sampler = make()
        train(sampler, 3)
        list(islice(iter(sampler), 4))
        before = sampler.state_dict()
        other = CurriculumSampler(Curriculum(TASKS, config=CurriculumConfig(warmup=2)), ROWS[::-1], batch_size=4)
        broken = {
            "tasks of rows": other.state_dict(),
            "lacks sampler_drawn": {name: before[name] for name in before if name != "sampler_drawn"},
            "lacks rng": {name: before[name] for name in before if name != "rng"},
            "another version": before | {"sampler_version": 7},
            "batch_size is 4": before | {"sampler_awaited": np.zeros((1, 3), np.int64)},
            "out of range": before | {"sampler_again": np.full((1, 4), 10)},
            "counts": before | {"sampler_drawn": np.array([1, 2])},
            "other method": make(method="unif").state_dict(),
        }
        for words, state in broken.items():
            with pytest.raises(ValueError, match=words):
                sampler.load_state_dict(state)
        rows = iter(sampler)
        for yielded in (-1, 21):
            with pytest.raises(ValueError, match="allowed: 0 to 20"):
                rows.load_state_dict({"yielded": yielded})
        assert same(sampler.state_dict(), before)
        with pytest.raises(ValueError, match="amid a batch"):
            iter(make()).load_state_dict({"yielded": 2})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0; allowed: a whole number >= 1"),
        ({"repeats": 0}, "repeats is 0"),
        ({"passes": -1}, "passes is -1"),
        ({"batches": 0}, "batches is 0"),
        ({"seed": -1}, "seed is -1; allowed: a whole number >= 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CurriculumSampler(Curriculum(TASKS), ROWS, **({"batch_size": 4} | settings))


def test_rows_of_unknown_tasks_and_tasks_without_rows_are_refused():
    with pytest.raises(KeyError, match="unknown task id 'd'"):
        CurriculumSampler(Curriculum(TASKS), [*ROWS, "d"], batch_size=4)
    with pytest.raises(ValueError, match="task 'b' has no row"):
        CurriculumSampler(Curriculum(TASKS), ["a", "c"], batch_size=4)
    with pytest.raises(ValueError, match="no row"):
        CurriculumSampler(Curriculum(TASKS), [], batch_size=4)


def test_a_journal_in_no_folder_is_refused_before_any_training(tmp_path):
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        make(journal=tmp_path / "nowhere" / "heard.jsonl")


def test_processes_that_agree_have_one_digest():
    samplers = [make(), make(), make(seed=1)]
    rows = [iter(sampler) for sampler in samplers]
    for sampler, mine in zip(samplers, rows, strict=True):
        train(sampler, 3, mine)
        list(islice(mine, 4))
    assert samplers[0].digest() == samplers[1].digest() != samplers[2].digest()
    samplers[1].curriculum.update([0], [0.1])
    assert samplers[0].digest() != samplers[1].digest()
