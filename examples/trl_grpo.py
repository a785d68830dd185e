"""TRL's GRPO with prompts from a curriculum; stopped half-way, and gone on with from a checkpoint.

pip install 'forethought[trl]'
python examples/trl_grpo.py     # ten seconds

The model is tiny, starts from nothing and needs no download. It learns to answer with the digit that it is told, or
with the one after it. Prompts go to the tasks at which it gets better; those that it has mastered, and those for which
it no longer tries a right answer, get few.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig

from forethought import Curriculum, CurriculumConfig, Task, TaskSet
from forethought.adapters.trl import CurriculumGRPOTrainer

DIGITS = 4
KINDS = {"same": 0, "next": 1}
TASKS = TaskSet([Task(f"{kind} {n}", f"Answer {kind} {n}.") for kind in KINDS for n in range(DIGITS)])


def answer(task):
    """The digit that solves a task, given by its id."""
    kind, digit = task.split()
    return str((int(digit) + KINDS[kind]) % DIGITS)


def reward(completions, task, **_):
    """1 for a right answer, 0 for any other: what GRPO learns from, and what the curriculum hears."""
    return [float(completion.split()[:1] == [answer(name)]) for completion, name in zip(completions, task, strict=True)]


def dataset():
    """A row for each task; there may be many. The column `task` is what the curriculum needs."""
    return Dataset.from_dict({"prompt": [f"{name} =" for name in TASKS.ids], "task": list(TASKS.ids)})


def tokenizer():
    """One token a word."""
    words = ["<pad>", "<eos>", "<unk>", "=", *KINDS, *map(str, range(DIGITS))]
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def model(words):
    """A transformer of a few thousand weights."""
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=words, max_position_embeddings=8, bos_token_id=None, **shape))


def trainer(folder, steps):
    """A trainer as TRL has it, with the curriculum as one more argument."""
    words = tokenizer()
    config = GRPOConfig(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=64,
        num_generations=8,
        max_completion_length=1,
        learning_rate=3e-3,
        lr_scheduler_type="constant",
        report_to=[],
        logging_strategy="no",
        gradient_checkpointing=False,
        use_cpu=True,
        disable_tqdm=True,
    )
    return CurriculumGRPOTrainer(
        model=model(len(words)),
        processing_class=words,
        reward_funcs=reward,
        train_dataset=dataset(),
        args=config,
        curriculum=Curriculum(TASKS, method="alp", seed=0, config=CurriculumConfig(warmup=4)),
    )


def train(folder, steps=120):
    """Train half of the steps, load the checkpoint into a new trainer, train the other half; returns the curriculum."""
    torch.set_num_threads(1)  # A small network gains nothing from more.
    trainer(folder, steps // 2).train()
    second = trainer(folder, steps)
    second.train(resume_from_checkpoint=True)
    return second.curriculum


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120)
    with TemporaryDirectory() as directory:
        result = train(Path(directory), **vars(parser.parse_args()))
    print(f"after {result.iteration} batches:")
    for name, rate, share in zip(TASKS.ids, result.success_rate, result.probabilities, strict=True):
        print(f"  {name}   success {rate:.2f}   share of the prompts to come {share:.2f}")
