"""TRL's GRPOTrainer with a tiny randomly initialised model and a tokenizer made here; nothing is downloaded."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("datasets")

from accelerate.data_loader import BatchSamplerShard  # noqa: E402
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from torch.utils.data import BatchSampler  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer  # noqa: E402
from trl.trainer.utils import RepeatSampler  # noqa: E402

from forethought import Curriculum, CurriculumConfig, Task, TaskSet  # noqa: E402
from forethought.adapters.torch import CurriculumSampler  # noqa: E402
from forethought.adapters.trl import STATE_FILE, CurriculumGRPOTrainer, CurriculumTraining  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*'pin_memory' argument is set as true.*:UserWarning"),
]

TASKS = TaskSet([Task(f"say-{i}", f"Say {i}.") for i in range(3)])
NUMBERS = [0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1]
GENERATIONS = 4
PROMPTS = 2


def tokenizer():
    words = ["<pad>", "<eos>", "<unk>", "say", *map(str, range(10))]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def model():
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=14,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=16,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=1,
        )
    )


def dataset():
    return Dataset.from_dict(
        {
            "prompt": [f"say {number}" for number in NUMBERS],
            "task": [TASKS.ids[number] for number in NUMBERS],
            "row": list(range(len(NUMBERS))),
        }
    )


class Recorder:
    """A reward that depends on the row and on how often it was asked for, and keeps what it saw."""

    __name__ = "reward"

    def __init__(self, counted=0):
        self.calls = []
        self.counted = counted

    def __call__(self, prompts, row, task, **_):
        assert prompts == [f"say {NUMBERS[r]}" for r in row]
        assert task == [TASKS.ids[NUMBERS[r]] for r in row]
        time = self.counted + len(self.calls)
        self.calls.append(row)
        return [float((r * 5 + place * 3 + time) % (2 + NUMBERS[r]) == 0) for place, r in enumerate(row)]


def trainer(folder, reward, *, kind=CurriculumGRPOTrainer, seed=0, curriculum=None, given=None, **settings):
    config = GRPOConfig if issubclass(kind, GRPOTrainer) else RLOOConfig
    arguments = {
        "output_dir": str(folder),
        "per_device_train_batch_size": GENERATIONS,
        "gradient_accumulation_steps": PROMPTS,
        "num_generations": GENERATIONS,
        "max_completion_length": 2,
        "max_steps": 6,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1,
    }
    if curriculum is None:
        curriculum = Curriculum(TASKS, method="alp", seed=seed, config=CurriculumConfig(warmup=2))
    return kind(
        model=model(),
        reward_funcs=reward,
        args=config(**(arguments | settings)),
        train_dataset=dataset(),
        processing_class=tokenizer(),
        curriculum=curriculum,
        **given or {},
    )


def twin_of(reward, ahead=1):
    """A curriculum that hears the recorded samples, and checks that the tasks were its draws."""
    twin = Curriculum(TASKS, method="alp", config=CurriculumConfig(warmup=2))
    drawn = [twin.sample(PROMPTS) for _ in range(ahead)]
    again = Recorder()
    for rows in reward.calls:
        drawn.append(twin.sample(PROMPTS))
        tasks = np.array([NUMBERS[row] for row in rows])
        assert tasks.tolist() == np.repeat(drawn.pop(0), GENERATIONS).tolist()
        outcomes = again([f"say {task}" for task in tasks], rows, [TASKS.ids[task] for task in tasks])
        twin.update(tasks, outcomes)
    return twin


def test_prompts_are_the_curriculums_draws_and_rewards_reach_it(tmp_path):
    reward = Recorder()
    made = trainer(tmp_path, reward)
    made.train()
    assert [len(rows) for rows in reward.calls] == [PROMPTS * GENERATIONS] * 6
    assert all(len(set(rows[i : i + GENERATIONS])) == 1 for rows in reward.calls for i in (0, GENERATIONS))
    twin = twin_of(reward)
    assert twin.iteration == made.curriculum.iteration == 6
    assert np.array_equal(twin.probabilities, made.curriculum.probabilities)
    assert np.ptp(twin.probabilities) > 0.01
    assert made.state.log_history[0]["curriculum/iteration"] == 1


def test_batches_that_are_used_several_times_are_heard_once(tmp_path):
    """Two passes over each batch of completions; then the next batch is drawn after the last one is rewarded."""
    reward = Recorder()
    made = trainer(tmp_path, reward, num_iterations=2, gradient_accumulation_steps=1, steps_per_generation=2)
    made.train()
    assert made.state.global_step == 6
    assert made.curriculum.iteration == len(reward.calls) == 2
    assert np.array_equal(twin_of(reward, ahead=0).probabilities, made.curriculum.probabilities)


def test_evaluation_changes_nothing(tmp_path):
    reward = Recorder()
    made = trainer(tmp_path, reward, per_device_eval_batch_size=GENERATIONS)
    before = made.curriculum_sampler.state_dict()
    made.evaluate(dataset().select(range(4)))
    assert reward.calls
    after = made.curriculum_sampler.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_other_outcomes_and_missing_ones(tmp_path):
    def second(prompts, **_):
        return [None if place % 2 else -1.0 for place in range(len(prompts))]

    made = trainer(
        tmp_path, [Recorder(), second], max_steps=1, given={"success": lambda rewards: (rewards[:, 1] + 2) / 4}
    )
    made.train()
    seen = made.curriculum.success_rate
    assert set(seen.tolist()) <= {0.0, 0.25}
    assert seen.max() == 0.25


def test_a_resumed_run_draws_what_the_uninterrupted_one_does(tmp_path):
    reward = Recorder()
    straight = trainer(tmp_path / "straight", reward, max_steps=5)
    straight.train()

    trainer(tmp_path / "stopped", Recorder(), max_steps=3, save_strategy="steps", save_steps=2).train()
    later = Recorder(counted=2)
    resumed = trainer(tmp_path / "stopped", later, seed=5, max_steps=5)
    resumed.train(resume_from_checkpoint=str(tmp_path / "stopped" / "checkpoint-2"))
    assert later.calls == reward.calls[2:]
    assert resumed.state.global_step == 5
    mine, its = resumed.curriculum_sampler.state_dict(), straight.curriculum_sampler.state_dict()
    assert all(np.array_equal(mine[name], its[name]) for name in its)

    (tmp_path / "stopped" / "checkpoint-3" / STATE_FILE).unlink()
    with pytest.raises(ValueError, match=f"checkpoint-3 has no {STATE_FILE}"):
        trainer(tmp_path / "stopped", Recorder()).train(resume_from_checkpoint=True)


def test_a_dataset_without_tasks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a column 'subject' with each prompt's task; its columns are 'prompt'"):
        trainer(tmp_path, Recorder(), given={"task_column": "subject"})
    with pytest.raises(ValueError, match="remove_unused_columns is True"):
        trainer(tmp_path, Recorder(), remove_unused_columns=True)
    with pytest.raises(ValueError, match="task 'more' has no row"):
        trainer(tmp_path, Recorder(), curriculum=Curriculum(TaskSet([*TASKS, Task("more", "More.")])))


def test_rewards_out_of_range_stop_the_run_and_say_so(tmp_path):
    with pytest.raises(ValueError, match=r"successes\[\d+\] is 2.0; allowed: \[0, 1\]"):
        trainer(tmp_path, lambda prompts, **_: [2.0] * len(prompts)).train()


def test_the_layout_is_that_of_trls_own_sampler():
    sampler = CurriculumSampler(Curriculum(TASKS), NUMBERS, batch_size=3, repeats=4, passes=2, batches=2)
    rows = list(sampler)
    own = RepeatSampler(range(6), mini_repeat_count=4, batch_size=3, repeat_count=2, shuffle=False)
    first = [rows[i * 24 + j * 4] for i in range(2) for j in range(3)]
    assert rows == [first[index] for index in own]
    assert len(sampler) == len(own)


def test_processes_share_a_batch_without_overlap():
    """accelerate's loader: each process goes over the whole sampler and takes every other batch."""

    def rows(process):
        sampler = CurriculumSampler(Curriculum(TASKS), NUMBERS, batch_size=4, repeats=2, passes=3, batches=5)
        shard = BatchSamplerShard(BatchSampler(sampler, 4, False), num_processes=2, process_index=process)
        return np.array(list(shard)), list(sampler)

    (first, _), (second, _) = rows(0), rows(1)
    sampler = CurriculumSampler(Curriculum(TASKS), NUMBERS, batch_size=4, repeats=2, passes=3, batches=5)
    assert np.array_equal(np.stack([first, second], axis=1).ravel(), list(sampler))


def test_other_trainers_are_refused(tmp_path):
    class Plain:
        def __init__(self, **_):
            pass

    class Mixed(CurriculumTraining, Plain):
        pass

    with pytest.raises(TypeError, match="Mixed has no _get_train_sampler"):
        Mixed(curriculum=Curriculum(TASKS))


def test_the_example_goes_on_from_its_checkpoint(tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "trl_grpo.py"))
    curriculum = example["train"](tmp_path, steps=6)
    assert curriculum.iteration == 6
    assert curriculum.success_rate.max() > 0
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {"checkpoint-3", "checkpoint-6"}


@pytest.mark.slow
def test_rloo_takes_it_too(tmp_path):
    class Trainer(CurriculumTraining, RLOOTrainer):
        pass

    reward = Recorder()
    made = trainer(tmp_path, reward, kind=Trainer, beta=0.0)
    made.train()
    assert np.array_equal(twin_of(reward).probabilities, made.curriculum.probabilities)


PROGRAM = """
import json, os, sys
import numpy as np
sys.path.insert(0, sys.argv[3])
from test_trl import TASKS, Curriculum, CurriculumConfig, Recorder, trainer

out, seeds, rank = sys.argv[1], json.loads(sys.argv[2]), int(os.environ["RANK"])
reward = Recorder()
curriculum = Curriculum(TASKS, method="alp", seed=seeds[rank], config=CurriculumConfig(warmup=2))
made = trainer(out, reward, curriculum=curriculum, gradient_accumulation_steps=2, max_steps=4)
made.train()
state = made.curriculum_sampler.state_dict()
np.savez(f"{out}/rank-{rank}.npz", calls=np.array(reward.calls), **state)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [[0, 0], [0, 1]])
def test_two_processes_share_draws_and_rewards(tmp_path, seeds):
    (tmp_path / "program.py").write_text(PROGRAM.strip())
    command = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29571", str(tmp_path / "program.py")]
    given = [str(tmp_path), str(seeds), str(Path(__file__).parent)]
    done = subprocess.run([sys.executable, *command, *given], capture_output=True, text=True, timeout=900)
    if seeds == [0, 1]:
        assert done.returncode != 0
        assert "the processes have different curricula" in done.stderr
        return
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(tmp_path / "rank-0.npz") as a, np.load(tmp_path / "rank-1.npz") as b:
        assert all(np.array_equal(a[name], b[name]) for name in a.files if name != "calls")
        assert not np.array_equal(a["calls"], b["calls"])
        twin = Curriculum(TASKS, method="alp", config=CurriculumConfig(warmup=2))
        drawn, rewards = [twin.sample(2 * PROMPTS)], [Recorder(), Recorder()]
        for rows in zip(a["calls"].tolist(), b["calls"].tolist(), strict=True):
            drawn.append(twin.sample(2 * PROMPTS))
            everyones = [NUMBERS[row] for mine in rows for row in mine]
            assert everyones == np.repeat(drawn.pop(0), GENERATIONS).tolist()
            outcomes = [
                outcome
                for mine, reward in zip(rows, rewards, strict=True)
                for outcome in reward([f"say {NUMBERS[r]}" for r in mine], mine, [TASKS.ids[NUMBERS[r]] for r in mine])
            ]
            twin.update(everyones, outcomes)
        assert np.array_equal(twin.success_rate, a["success_rate"])
