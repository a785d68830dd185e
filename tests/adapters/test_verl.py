"""verl's curriculum sampler: against verl itself where a version that has it is installed, and a stand-in elsewhere.

verl up to 0.7.1 has the interface and wants an older NumPy than this project, so that no environment of this project
can have both by plain `pip install`. Its sampler and its batches need no GPU and work with a newer NumPy all the same:

    pip install --no-deps verl==0.7.1 tensordict==0.10.0 peft
    pip install pyvers hydra-core codetiming ray aiohttp torchdata

The stand-in has the documented signatures and the order of calls of verl's trainer (`RayPPOTrainer.fit`).
"""

import io
import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchdata = pytest.importorskip("torchdata.stateful_dataloader")

from forethought import Curriculum, CurriculumConfig, Task, TaskSet  # noqa: E402
from forethought.adapters.torch import CurriculumSampler, extra_info_tasks, token_scores  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")

TASKS = TaskSet([Task("sum", "Add."), Task("product", "Multiply."), Task("power", "Raise.")])
ROWS = [TASKS.ids[i % 3] for i in range(12)]
GENERATIONS = 3


class Dataset(torch.utils.data.Dataset):
    """What verl's `RLHFDataset` gives a sampler and a loader: rows with `extra_info`, and all of them at once."""

    def __init__(self):
        self.dataframe = {"extra_info": [{"task": task, "number": i} for i, task in enumerate(ROWS)]}

    def __len__(self):
        return len(ROWS)

    def __getitem__(self, row):
        return {"dummy_tensor": torch.zeros(1), "extra_info": self.dataframe["extra_info"][row], "index": 0}


@dataclass
class StandInBatch:
    """The parts of `verl.DataProto` that a sampler sees."""

    batch: dict
    non_tensor_batch: dict


class StandInSampler(torch.utils.data.Sampler):
    """`AbstractCurriculumSampler` of verl 0.5 to 0.7."""

    def __init__(self, data_source, data_config):
        raise AssertionError("abstract")

    def update(self, batch):
        raise AssertionError("abstract")


def stand_in():
    def create(data_config, dataset):
        sampler = data_config["sampler"](data_source=dataset, data_config=data_config)
        assert isinstance(sampler, StandInSampler)
        return sampler

    return SimpleNamespace(Abstract=StandInSampler, batch=StandInBatch, create=create)


def real():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What verl's imports warn of is verl's own.
        from omegaconf import OmegaConf
        from tensordict import TensorDict
        from verl import DataProto
        from verl.experimental.dataset.sampler import AbstractCurriculumSampler
        from verl.trainer.main_ppo import create_rl_sampler

    def create(data_config, dataset):
        sys.modules["users_sampler"] = SimpleNamespace(Sampler=data_config["sampler"])  # pyright: ignore
        where = {"class_path": "pkg://users_sampler", "class_name": "Sampler"}
        return create_rl_sampler(OmegaConf.create(data_config | {"sampler": where}), dataset)

    def batch(batch, non_tensor_batch):
        return DataProto(TensorDict(batch, len(non_tensor_batch["extra_info"])), non_tensor_batch)

    return SimpleNamespace(Abstract=AbstractCurriculumSampler, batch=batch, create=create)


HAS_VERL = find_spec("verl") is not None and find_spec("verl.experimental.dataset.sampler") is not None


@pytest.fixture(
    params=["stand-in", pytest.param("real", marks=pytest.mark.skipif(not HAS_VERL, reason="no verl 0.5 to 0.7"))]
)
def verl(request):
    return stand_in() if request.param == "stand-in" else real()


class Trainer:
    """The order of calls in verl's `RayPPOTrainer`: the checkpoint of a step comes before the sampler hears of it."""

    def __init__(self, verl, *, seed=0, journal=None, method="alp", hook="sampler"):
        curriculum = Curriculum(TASKS, method=method, seed=seed, config=CurriculumConfig(warmup=2))

        class Sampler(CurriculumSampler, verl.Abstract):
            def __init__(self, data_source, data_config):
                tasks = [info["task"] for info in data_source.dataframe["extra_info"]]
                super().__init__(curriculum, tasks, batch_size=data_config["train_batch_size"], journal=journal)

        dataset = Dataset()
        config = {"train_batch_size": 4, "dataloader_num_workers": 0, "sampler": Sampler, "shuffle": True}
        if hook == "sampler":
            self.sampler = verl.create(config, dataset)
        else:
            self.sampler = CurriculumSampler(curriculum, ROWS, batch_size=4, journal=journal)
            dataset.on_batch_end = self.sampler.update  # pyright: ignore[reportAttributeAccessIssue]
        self.dataset, self.verl = dataset, verl
        self.loader = torchdata.StatefulDataLoader(
            dataset=dataset, batch_size=4, num_workers=0, drop_last=True, collate_fn=list, sampler=self.sampler
        )
        self.step = 0
        self.trained = []
        """The numbers of the rows of every step."""

    def fit(self, steps, save_at=None):
        """Trains to that step; returns the checkpoint of one of them."""
        saved = None
        while self.step < steps:
            for rows in self.loader:
                self.step += 1
                self.trained.append([row["extra_info"]["number"] for row in rows])
                batch = self.rollout(rows)
                if self.step == save_at:
                    saved = io.BytesIO()
                    torch.save({"loader": self.loader.state_dict(), "step": self.step}, saved)
                if isinstance(self.loader.sampler, self.verl.Abstract):
                    self.loader.sampler.update(batch=batch)
                if hasattr(self.dataset, "on_batch_end"):
                    self.dataset.on_batch_end(batch=batch)
                if self.step >= steps:
                    break
        return saved

    def resume(self, saved):
        saved.seek(0)
        state = torch.load(saved, weights_only=False)
        self.loader.load_state_dict(state["loader"])
        self.step = state["step"]
        return self

    def rollout(self, rows):
        """Every prompt repeated, scored, and the samples reordered, as `balance_batch` does."""
        infos = np.array([row["extra_info"] for row in rows for _ in range(GENERATIONS)], object)
        scores = torch.zeros(len(infos), 5)
        numbers = np.array([info["number"] for info in infos])
        scores[:, 4] = torch.tensor((np.arange(len(infos)) * 7 + numbers + self.step) % (2 + numbers % 3) == 0).float()
        order = np.random.default_rng(self.step).permutation(len(infos))
        return self.verl.batch({"token_level_scores": scores[order]}, {"extra_info": infos[order]})


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("hook", ["sampler", "dataset"])
def test_every_step_is_an_iteration_of_the_curriculums_draws(verl, hook):
    trainer = Trainer(verl, hook=hook)
    trainer.fit(20)
    assert trainer.sampler.curriculum.iteration == 20
    twin = Curriculum(TASKS, method="alp", config=CurriculumConfig(warmup=2))
    replay = Trainer(verl)
    for step, numbers in enumerate(trainer.trained, start=1):
        assert [ROWS[number] for number in numbers] == [TASKS.ids[task] for task in twin.sample(4)]
        replay.step = step
        batch = replay.rollout([Dataset()[number] for number in numbers])
        twin.update([TASKS.index(task) for task in extra_info_tasks(batch)], token_scores(batch))
    assert np.array_equal(twin.probabilities, trainer.sampler.curriculum.probabilities)
    assert np.ptp(twin.probabilities) > 0.01


@pytest.mark.parametrize("hook", ["sampler", "dataset"])
@pytest.mark.parametrize("save_at", [1, 2, 3, 4, 6, 11])
def test_a_resumed_run_equals_an_uninterrupted_one_with_a_journal(verl, hook, save_at, tmp_path):
    straight = Trainer(verl, hook=hook)
    straight.fit(20)

    stopped = Trainer(verl, journal=tmp_path / "heard.jsonl", hook=hook)
    saved = stopped.fit(save_at + 5, save_at)
    with (tmp_path / "heard.jsonl").open("a") as file:
        file.write('{"iteration": 3, "rows": [1')
    resumed = Trainer(verl, seed=7, journal=tmp_path / "heard.jsonl", hook=hook).resume(saved)
    resumed.fit(20)
    assert stopped.trained[:save_at] + resumed.trained == straight.trained
    assert same(resumed.sampler.state_dict(), straight.sampler.state_dict())


def test_a_run_resumed_twice_uses_what_its_own_past_heard(verl, tmp_path):
    straight = Trainer(verl)
    straight.fit(20)
    first = Trainer(verl, journal=tmp_path / "heard.jsonl")
    saved = first.fit(9, 4)
    second = Trainer(verl, journal=tmp_path / "heard.jsonl").resume(saved)
    later = second.fit(12, 7)
    third = Trainer(verl, journal=tmp_path / "heard.jsonl").resume(later)
    third.fit(20)
    assert third.trained == straight.trained[7:]
    assert same(third.sampler.state_dict(), straight.sampler.state_dict())


def test_without_a_journal_the_step_of_the_checkpoint_is_lost_and_that_is_said(verl):
    stopped = Trainer(verl)
    saved = stopped.fit(8, 6)
    resumed = Trainer(verl, seed=7).resume(saved)
    with pytest.warns(UserWarning, match="the outcomes of 1 batch"):
        resumed.fit(7)
    assert resumed.sampler.curriculum.iteration == 7
    assert resumed.sampler.state_dict()["sampler_awaited"].size == 0
    assert resumed.trained[0] != stopped.trained[5], "rows that were trained on come twice"


def test_a_journal_of_another_run_is_not_taken_for_its_own(verl, tmp_path):
    saved = Trainer(verl).fit(8, 6)
    Trainer(verl, seed=3, journal=tmp_path / "heard.jsonl").fit(20)
    resumed = Trainer(verl, journal=tmp_path / "heard.jsonl").resume(saved)
    with pytest.warns(UserWarning, match="lost"):
        resumed.fit(7)


def test_a_batch_without_tasks_names_what_is_missing():
    batch = StandInBatch({"token_level_scores": torch.ones(2, 1)}, {"extra_info": np.array([{"task": "sum"}, {}])})
    with pytest.raises(ValueError, match=r"extra_info\['task'\]"):
        extra_info_tasks(batch)
    with pytest.raises(ValueError, match=r"extra_info\['task'\]"):
        extra_info_tasks(StandInBatch({}, {}))


def test_scores_out_of_range_are_refused_and_rounding_is_not():
    sampler = CurriculumSampler(Curriculum(TASKS), ROWS, batch_size=12)
    list(sampler)
    infos = np.array([{"task": "sum"}, {"task": "power"}])
    tenths = torch.full((2, 10), 0.1)
    assert float(tenths.sum(-1)[0]) > 1
    sampler.update(StandInBatch({"token_level_scores": tenths}, {"extra_info": infos}))
    assert sampler.curriculum.success_rate.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="successes"):
        sampler.update(StandInBatch({"token_level_scores": tenths - 1}, {"extra_info": infos}))
