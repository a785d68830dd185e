"""A curriculum in TRL's trainers that sample their prompts anew: GRPO, and others built like it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from forethought.adapters import missing
from forethought.adapters.torch import CurriculumSampler
from forethought.curriculum import Curriculum
from forethought.curriculum.curriculum import Slots
from forethought.files import replacing

try:
    from accelerate.utils import gather_object
    from transformers import TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint
    from trl.trainer.grpo_trainer import GRPOTrainer
except ModuleNotFoundError as error:
    raise missing(str(error.name), "trl") from error

STATE_FILE = "curriculum.npz"
"""The curriculum's state in a checkpoint of the trainer."""

_Base: Any = GRPOTrainer if TYPE_CHECKING else object


def first_reward(rewards: Float[np.ndarray, "sample function"]) -> Float[np.ndarray, " sample"]:
    """The default outcome: what the first reward function gave."""
    return rewards[:, 0]


class CurriculumTraining(_Base):
    """Lets a curriculum choose the prompts of a TRL trainer, and tells it the rewards.

    Put it first among the bases: `class Trainer(CurriculumTraining, RLOOTrainer): pass`. `CurriculumGRPOTrainer` is
    that for `GRPOTrainer`.

    An iteration of the curriculum is a generation batch. The prompts come in the layout of TRL's `RepeatSampler`,
    on every process the same; outcomes are those of all processes, and a difference between the processes' curricula
    stops the run. Evaluation changes nothing. accelerate asks for one batch more than it hands over, so a batch is
    often drawn when the one before is not yet rewarded. `CurriculumSampler` says what that means.

    Checkpoints get a file `curriculum.npz`, and `train(resume_from_checkpoint=...)` goes on from it: estimates, draws
    and the batch that was drawn ahead. TRL itself forgets the completions it has generated: if a checkpoint falls amid
    the steps of one generation batch, its remaining steps are left out. Epochs are counted anew from there, steps are
    not.

    Args:
        *args: as for the trainer.
        curriculum: decides; every process makes one with the same seed.
        task_column: column of the training dataset with the task (index or id) of each prompt.
        success: rewards of each sample by each reward function, NaN where a function gave none -> outcome of each
            sample in [0, 1], NaN to leave it out; by default the first function's reward.
        fixed: task (index or id) -> prompts of every generation batch that are always of it.
        **kwargs: as for the trainer.

    Raises:
        ValueError: if the dataset has no length or no such column, or its columns would be dropped; amid training,
            if an outcome is not in [0, 1], or the curricula of two processes differ.
    """

    def __init__(
        self,
        *args: Any,
        curriculum: Curriculum,
        task_column: str = "task",
        success: Callable[[np.ndarray], Any] = first_reward,
        fixed: Slots | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        for name in ("_get_train_sampler", "_calculate_rewards"):
            if not hasattr(super(), name):
                raise TypeError(f"{type(self).__name__} has no {name}; a trainer such as TRL's GRPOTrainer is needed")
        columns = getattr(self.train_dataset, "column_names", None) or ()
        if not hasattr(self.train_dataset, "__len__") or task_column not in columns:
            raise ValueError(
                f"the training dataset needs a length and a column {task_column!r} with each prompt's task; "
                f"its columns are {', '.join(map(repr, columns)) or 'unknown'}"
            )
        if self.args.remove_unused_columns:
            raise ValueError("remove_unused_columns is True; allowed: False, for the column of tasks must stay")
        self.curriculum = curriculum
        self.curriculum_sampler = CurriculumSampler(
            curriculum,
            self.train_dataset[task_column],
            batch_size=self.args.generation_batch_size // self.num_generations,
            repeats=self.num_generations,
            passes=self.num_iterations * self.args.steps_per_generation,
            fixed=fixed,
            seed=self.args.seed,
        )
        self._task_column, self._outcomes = task_column, success
        self.add_callback(_SaveCurriculum(self.curriculum_sampler))

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Train, as the trainer does; a checkpoint's curriculum goes on with it.

        Raises:
            ValueError: if the checkpoint has no curriculum, or another.
        """
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(str(self.args.output_dir)) or True
        if isinstance(resume_from_checkpoint, str | Path):
            path = Path(resume_from_checkpoint) / STATE_FILE
            if not path.exists():
                raise ValueError(f"{path.parent} has no {STATE_FILE}: it was not saved under a curriculum")
            with np.load(path) as state:
                self.curriculum_sampler.load_state_dict(dict(state))
            self.curriculum_sampler.rewind()
            # Skipping what was trained on would draw it anew; the sampler knows by itself what comes next.
            self.args.ignore_data_skip = True
            resume_from_checkpoint = str(resume_from_checkpoint)
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _get_train_sampler(self, dataset: Any = None) -> CurriculumSampler:
        return self.curriculum_sampler

    def _calculate_rewards(self, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any) -> Any:
        rewards = super()._calculate_rewards(inputs, *args, **kwargs)
        if self.model.training:
            self._observe([example[self._task_column] for example in inputs], rewards)
        return rewards

    def _observe(self, tasks: list[int | str], rewards: Any) -> None:
        """Tell the curriculum the tasks of this process's samples and the rewards of all, in the processes' order."""
        if len(set(gather_object([self.curriculum_sampler.digest()]))) > 1:
            raise ValueError("the processes have different curricula; make all with the same arguments and seed")
        outcomes = np.asarray(self._outcomes(rewards.detach().double().cpu().numpy()), np.float64)
        everyones = gather_object(tasks)
        if outcomes.shape != (len(everyones),):
            raise ValueError(f"success gave the shape {outcomes.shape}; allowed: ({len(everyones)},), one a sample")
        kept = ~np.isnan(outcomes)
        self.curriculum_sampler.observe([t for t, keep in zip(everyones, kept, strict=True) if keep], outcomes[kept])
        for name, value in self.curriculum.metrics().items():
            self._metrics["train"][f"curriculum/{name}"].append(value)


class CurriculumGRPOTrainer(CurriculumTraining, GRPOTrainer):
    """`CurriculumTraining` over `GRPOTrainer`."""


class _SaveCurriculum(TrainerCallback):
    """Adds the curriculum to every checkpoint."""

    def __init__(self, sampler: CurriculumSampler):
        self._sampler = sampler

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if args.should_save:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            with replacing(folder / STATE_FILE) as path, path.open("wb") as file:
                np.savez(file, **self._sampler.state_dict())
