"""A curriculum as a PyTorch sampler: for a loop of one's own, for TRL (see `adapters.trl`) and for verl."""

import errno
import hashlib
import json
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

from forethought.adapters import missing
from forethought.curriculum import Curriculum
from forethought.curriculum.curriculum import Slots

try:
    import torch
    from torch.utils.data import Sampler
except ModuleNotFoundError as error:
    raise missing("PyTorch", "torch") from error

Tasks = Iterable[Any]
"""Tasks by index or id: a list, an array, a tensor, a column of a dataset."""

AHEAD = 64
"""Batches that a loader may run ahead of what is heard; older ones are taken as never to be heard of."""

STATE_VERSION = 1


def extra_info_tasks(batch: Any) -> list[int | str]:
    """The task of each sample of a verl batch: `extra_info["task"]` of its row, an id or an index.

    verl keeps `extra_info` with a sample from the row of the dataset to the end of the step, through all repeating
    and reordering; its `index` is no substitute, as it is 0 wherever a dataset has none.

    Raises:
        ValueError: if it is not there.
    """
    rows = batch.non_tensor_batch.get("extra_info", [])
    tasks = [info["task"] for info in rows if isinstance(info, Mapping) and "task" in info]
    if not tasks or len(tasks) < len(rows):
        raise ValueError(
            "a sample of the batch has no extra_info['task']; write the task's id there when you make the dataset, or "
            "pass task_of=, a function of the batch"
        )
    return tasks


def token_scores(batch: Any) -> np.ndarray:
    """The outcome of each sample of a verl batch: its `token_level_scores`, added up and rounded to 6 places."""
    return np.round(_numbers(batch.batch["token_level_scores"].sum(-1)), 6)


class CurriculumSampler(Sampler[int]):
    """Hands out rows of a dataset: tasks as the curriculum draws them, and of each task its rows in turn.

    A batch is one iteration of the curriculum: it is drawn when its first row is asked for, not before, and its
    outcomes come back by `observe`, or from verl by `update`. Each task's rows are gone through in an order of their
    own, all once before any again.

    Every process of a distributed run makes the same sampler over a `Curriculum` of the same seed, hands out the same
    rows in the same order (a loader for several processes, such as accelerate's, then takes each its share), and must
    hear the same outcomes: gather them first.

    **Loaders that run ahead** (workers, accelerate) draw a batch before the last one's outcomes are known. This costs
    some timeliness and nothing else. Exact resuming through a loader's state needs `num_workers=0`.

    **Resuming.** Sampler and iterator have `state_dict` and `load_state_dict`, which torchdata's `StatefulDataLoader`
    calls: the rows go on where they stopped, with nothing drawn twice. verl writes its checkpoint before it tells the
    sampler how that step went, so that the state in it lacks these outcomes. With a `journal` they are read from
    there when the run goes on, and a resumed run is the same as one that was never stopped. Without it they are
    lost: there is a warning, and the iteration counts as one in which nothing finished.

    **verl** before 0.8 takes a class that has its `AbstractCurriculumSampler` among the bases. In a file of yours:

        class Sampler(CurriculumSampler, AbstractCurriculumSampler):
            def __init__(self, data_source, data_config):
                tasks = [info["task"] for info in data_source.dataframe["extra_info"]]
                super().__init__(Curriculum(...), tasks, batch_size=data_config.train_batch_size, journal=...)

    with `data.sampler.class_path`, `data.sampler.class_name` and `data.dataloader_num_workers=0`. verl 0.8 has removed
    that interface; from then on give `RayPPOTrainer` (that of `main_ppo_v0`) a plain `CurriculumSampler` as
    `train_sampler`, and set `train_dataset.on_batch_end = sampler.update`. Tested against verl 0.7.1: its sampler
    classes, its function that makes the sampler, `DataProto`, and the order of calls of its trainer, which itself
    needs a GPU and was not run. For 0.8 and later, tested by that order of calls alone.

    Args:
        curriculum: decides; may be shared with nothing else that samples or updates.
        tasks: the task (index or id) of each row of the dataset, in its order; every task needs a row.
        batch_size: rows in a batch, each counted once.
        repeats: times each row is handed out in succession (TRL's `num_generations`).
        passes: times the batch is handed out as a whole (TRL's `num_iterations * steps_per_generation`).
        batches: batches in an epoch; by default as many as the dataset fills, and at least one.
        fixed: task (index or id) -> rows of every batch that are always of it.
        seed: of the order of each task's rows, >= 0.
        task_of: what `update` is given -> the task (index or id) of each sample.
        success: what `update` is given -> the outcome of each sample in [0, 1].
        journal: file to which what is heard is appended, one line a batch; on the disk where the checkpoints are.

    Raises:
        ValueError: if a number is out of range, or a task has no row.
        KeyError: if a row's task is unknown.
        FileNotFoundError: if the journal's folder does not exist.

    Example:
        >>> from forethought import Task, TaskSet
        >>> tasks = TaskSet([Task("sum", "Add."), Task("product", "Multiply.")])
        >>> sampler = CurriculumSampler(Curriculum(tasks), ["sum", "product", "sum"], batch_size=2, repeats=2)
        >>> rows = list(sampler)
        >>> len(rows), rows[0] == rows[1], rows[2] == rows[3]
        (4, True, True)
        >>> sampler.observe(sampler.tasks[rows], [1, 0, 0, 0])
        >>> sampler.curriculum.iteration
        1
    """

    def __init__(
        self,
        curriculum: Curriculum,
        tasks: Tasks,
        *,
        batch_size: int,
        repeats: int = 1,
        passes: int = 1,
        batches: int | None = None,
        fixed: Slots | None = None,
        seed: int = 0,
        task_of: Callable[[Any], Tasks] = extra_info_tasks,
        success: Callable[[Any], ArrayLike] = token_scores,
        journal: str | os.PathLike[str] | None = None,
    ):
        self.curriculum = curriculum
        self.tasks: Int64[np.ndarray, " row"] = self._indices(tasks)
        """The task index of each row."""
        size = len(curriculum.tasks)
        members = np.bincount(self.tasks, minlength=size)
        if not members.all():
            lacking = curriculum.tasks.ids[int(np.argmin(members))]
            raise ValueError(f"task {lacking!r} has no row in the dataset; every task of the curriculum needs one")
        if batches is None:
            batches = max(1, self.tasks.size // batch_size) if _whole(batch_size, 1) else 1
        numbers = {"batch_size": batch_size, "repeats": repeats, "passes": passes, "batches": batches}
        for name, value in numbers.items():
            if not _whole(value, 1):
                raise ValueError(f"{name} is {value!r}; allowed: a whole number >= 1")
        if not _whole(seed, 0):
            raise ValueError(f"seed is {seed!r}; allowed: a whole number >= 0")
        self.batch_size, self.repeats, self.passes, self.batches = batch_size, repeats, passes, batches
        self._fixed = dict(fixed or {})
        self._seed = int(seed)
        self._task_of, self._success = task_of, success
        self._journal = None if journal is None else Path(journal)
        if self._journal is not None and not self._journal.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "its folder does not exist", str(self._journal))
        self._rows = np.argsort(self.tasks, kind="stable")
        self._first = np.cumsum(members) - members
        self._members = members
        self._orders: dict[int, tuple[int, np.ndarray]] = {}
        self._drawn = np.zeros(size, np.int64)
        self._awaited: deque[np.ndarray] = deque(maxlen=AHEAD)
        self._again: deque[np.ndarray] = deque()
        self._orphans = 0

    # ------------------------------------------------------------------ handing out

    def __iter__(self) -> "_Rows":
        """One epoch's rows; nothing is drawn until the first is asked for."""
        return _Rows(self)

    def __len__(self) -> int:
        """Rows handed out in an epoch, repetitions counted."""
        return self.batches * self.batch_size * self.repeats * self.passes

    # ------------------------------------------------------------------ hearing

    def observe(self, tasks: Tasks, successes: ArrayLike, episodes: ArrayLike | None = None) -> None:
        """Tell the curriculum how a batch went; ends its iteration.

        Args:
            tasks: the task (index or id) of each sample, in any order; `sampler.tasks[rows]` gives rows' tasks.
            successes: the outcome of each sample, in [0, 1]; a tensor on any device will do.
            episodes: samples behind each outcome (default 1); 0 leaves an outcome out.

        Raises:
            ValueError: if an outcome, an index or a count is out of range, or the lengths differ, or a task was never
                handed out (then `tasks` of the sampler are not the tasks of the dataset's rows). Nothing has changed.
            KeyError: if a task is unknown.
        """
        indices = self._indices(tasks)
        strange = indices[self._drawn[indices] == 0]
        if strange.size:
            raise ValueError(
                f"an outcome is of task {self.curriculum.tasks.ids[strange[0]]!r}, of which no row was handed out; "
                "are the sampler's tasks those of the dataset's rows, in its order?"
            )
        heard = {"tasks": indices, "successes": _numbers(successes)}
        if episodes is not None:
            heard["episodes"] = _numbers(episodes, torch.int64)
        iteration = self.curriculum.iteration
        self.curriculum.update(heard["tasks"], heard["successes"], heard.get("episodes"))
        rows = self._awaited.popleft() if self._awaited else np.zeros(0, np.int64)
        self._orphans = min(self._orphans, len(self._awaited))
        if self._journal is not None:
            lists = {name: array.tolist() for name, array in heard.items()}
            line = json.dumps({"iteration": iteration, "rows": rows.tolist()} | lists)
            with self._journal.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())

    def update(self, batch: Any) -> None:
        """Tell the curriculum how a step of verl went (a `DataProto`), by `task_of` and `success`.

        Raises:
            ValueError: if a task is missing, or an outcome is not in [0, 1]: then pass `success`.
        """
        self.observe(self._task_of(batch), self._success(batch))

    def digest(self) -> str:
        """A text that processes share as long as their samplers hand out the same rows and believe the same."""
        seen = (self.curriculum.probabilities, *self._awaited)
        return hashlib.sha256(b"".join(array.tobytes() for array in seen)).hexdigest()

    # ------------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """The curriculum's state, how far each task's rows are, and the rows that nothing was heard of yet.

        Numbers, strings and NumPy arrays under flat names, as `Curriculum.state_dict`.
        """
        return self.curriculum.state_dict() | {
            "sampler_version": STATE_VERSION,
            "sampler_rows": hashlib.sha256(np.append(self.tasks, self._seed).tobytes()).hexdigest(),
            "sampler_drawn": self._drawn.copy(),
            "sampler_awaited": self._stacked(self._awaited),
            "sampler_again": self._stacked(self._again),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was taken; what was handed out counts as trained on (but see `rewind`).

        Raises:
            ValueError: if the state is incomplete, or of another curriculum, dataset or batch size; nothing has
                changed then.
        """
        mine = self.state_dict()
        if lacking := sorted(mine.keys() - state.keys()):
            raise ValueError(f"sampler state lacks {', '.join(lacking)}")
        for name, what in (("sampler_version", "version"), ("sampler_rows", "tasks of rows, or row seed,")):
            if str(state[name]) != str(mine[name]):
                raise ValueError(f"sampler state was saved with another {what} than this sampler has")
        drawn = np.array(state["sampler_drawn"], np.int64)
        awaited, again = (np.array(state[f"sampler_{name}"], np.int64) for name in ("awaited", "again"))
        for name, rows in (("awaited", awaited), ("again", again)):
            if rows.ndim != 2 or rows.shape[1] != self.batch_size:
                raise ValueError(
                    f"sampler state has {name} rows of shape {rows.shape}; batch_size is {self.batch_size}"
                )
            if rows.size and (rows.min() < 0 or rows.max() >= self.tasks.size):
                raise ValueError(f"sampler state has {name} rows that are out of range")
        if drawn.shape != self._drawn.shape or drawn.min() < 0:
            raise ValueError(f"sampler state has counts of drawn rows of shape {drawn.shape}, or below 0")
        self.curriculum.load_state_dict(state)
        self._drawn = drawn
        self._awaited, self._again = deque(awaited, maxlen=AHEAD), deque(again)
        self._orphans = len(awaited)

    def rewind(self) -> None:
        """Hand out again, first of all, the batches that nothing was heard of.

        After `load_state_dict`, for a trainer that draws ahead of what it trains on and is told nothing of it.
        """
        self._again.extendleft(reversed(self._awaited))
        self._awaited.clear()
        self._orphans = 0

    # ------------------------------------------------------------------ inside

    def _next_batch(self) -> Int64[np.ndarray, " batch"]:
        if self._orphans:
            self._settle()
        if self._again:
            rows = self._again.popleft()
        else:
            chosen = self.curriculum.sample(self.batch_size, self._fixed)
            rows = np.array([self._next_row(int(task)) for task in chosen], np.int64)
        self._awaited.append(rows)
        return rows

    def _next_row(self, task: int) -> int:
        round_, place = divmod(int(self._drawn[task]), int(self._members[task]))
        if self._orders.get(task, (-1,))[0] != round_:
            order = np.random.default_rng([self._seed, task, round_]).permutation(self._members[task])
            self._orders[task] = round_, order
        self._drawn[task] += 1
        return int(self._rows[self._first[task] + self._orders[task][1][place]])

    def _unfinished(self) -> Int64[np.ndarray, " batch"]:
        """The rows of the batch that an iterator stopped amid; it is still to be heard of."""
        if not self._awaited:
            raise ValueError("the iterator's state is amid a batch, but the sampler's state awaits none")
        self._orphans = min(self._orphans, len(self._awaited) - 1)
        return self._awaited[-1]

    def _settle(self) -> None:
        """End the iterations of batches that were handed out before the state was saved and will not report."""
        heard = self._read_journal()
        lost = 0
        while self._orphans:
            rows = self._awaited.popleft().tolist()
            self._orphans -= 1
            entry = heard.get((self.curriculum.iteration, tuple(rows)))
            if entry is None:
                lost += 1
                self.curriculum.update([], [])
            else:
                self.curriculum.update(entry["tasks"], entry["successes"], entry.get("episodes"))
        if lost:
            warnings.warn(
                f"the outcomes of {lost} batch(es) were not known yet when the state was saved, and are lost; pass the "
                "sampler a journal= to keep them",
                UserWarning,
                stacklevel=2,
            )

    def _read_journal(self) -> dict[tuple[int, tuple[int, ...]], dict[str, Any]]:
        if self._journal is None or not self._journal.exists():
            return {}
        entries = {}
        for line in self._journal.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # The last line of a run that was killed while it wrote.
            entries[entry["iteration"], tuple(entry["rows"])] = entry
        return entries

    def _stacked(self, batches: Iterable[np.ndarray]) -> Int64[np.ndarray, "batches batch"]:
        return np.array(list(batches), np.int64).reshape(-1, self.batch_size)

    def _indices(self, tasks: Tasks) -> Int64[np.ndarray, " entry"]:
        known = self.curriculum.tasks
        if isinstance(tasks, torch.Tensor):
            tasks = tasks.tolist()
        indices = [known.index(task) if isinstance(task, str) else task for task in tasks]
        array = np.array(indices)
        if array.size == 0:
            return np.zeros(0, np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"tasks have the type {array.dtype} and shape {array.shape}; allowed: ids, whole numbers")
        if array.min() < 0 or array.max() >= len(known):
            bad = array[(array < 0) | (array >= len(known))][0]
            raise ValueError(f"a task index is {bad}; allowed: 0 to {len(known) - 1}")
        return array.astype(np.int64)


class _Rows(Iterator[int]):
    """One epoch of a sampler, with a place that can be saved."""

    def __init__(self, sampler: CurriculumSampler):
        self._sampler = sampler
        self._yielded = 0
        self._batch = np.zeros(0, np.int64)

    def __next__(self) -> int:
        sampler = self._sampler
        if self._yielded >= len(sampler):
            raise StopIteration
        place = self._yielded % (len(sampler) // sampler.batches)
        if place == 0:
            self._batch = sampler._next_batch()
        self._yielded += 1
        return int(self._batch[place // sampler.repeats % sampler.batch_size])

    def state_dict(self) -> dict[str, int]:
        """How many rows of the epoch were handed out."""
        return {"yielded": self._yielded}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from there; the sampler's own state must have been loaded before.

        Raises:
            ValueError: if the number is not one of this sampler's epoch.
        """
        yielded = state["yielded"]
        if not 0 <= yielded <= len(self._sampler):
            raise ValueError(f"iterator state has {yielded} rows handed out; allowed: 0 to {len(self._sampler)}")
        if yielded % (len(self._sampler) // self._sampler.batches):
            self._batch = self._sampler._unfinished()
        self._yielded = yielded


def _numbers(values: Any, kind: torch.dtype = torch.float64) -> np.ndarray:
    return values.detach().to("cpu", kind).numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)
