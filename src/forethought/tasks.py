"""Tasks and their importance: an ordered set with unique ids."""

import csv
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, overload

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True)
class Task:
    """One task: a unique id, the text that describes it, and its importance w(m) >= 0 (paper, Eq. 1)."""

    id: str
    text: str
    weight: float = 1.0


class TaskSet(Sequence[Task]):
    """An ordered set of tasks with unique ids and non-negative weights of positive sum.

    >>> tasks = TaskSet([Task("walk", "Walk."), Task("run", "Run.")])
    >>> tasks.index("run"), tasks.with_target("run").weights.tolist()
    (1, [0.0, 1.0])

    Raises:
        ValueError: no task, an empty or repeated id, an empty text, or weights that are not usable.
    """

    def __init__(self, tasks: Iterable[Task]):
        self._tasks = tuple(tasks)
        if not self._tasks:
            raise ValueError("a task set needs at least one task")
        self.ids: tuple[str, ...] = tuple(task.id for task in self._tasks)
        self.texts: tuple[str, ...] = tuple(task.text for task in self._tasks)
        self._index = {id: i for i, id in enumerate(self.ids)}
        for position, task in enumerate(self._tasks):
            if not isinstance(task.id, str) or not task.id:
                raise ValueError(f"task {position} has the id {task.id!r}; an id is a non-empty text")
            if not isinstance(task.text, str) or not task.text:
                raise ValueError(f"task {task.id!r} has the text {task.text!r}; it must be a non-empty text")
        if len(self._index) < len(self.ids):
            repeated = next(id for i, id in enumerate(self.ids) if self._index[id] != i)
            raise ValueError(f"the task id {repeated!r} occurs more than once; ids must be unique")
        self.weights: Float[np.ndarray, " task"] = checked_weights([t.weight for t in self._tasks], self.ids)

    @classmethod
    def load(cls, path: str | Path) -> "TaskSet":
        """Read a task set from a JSON, YAML or CSV file: a list of records `id`, `text` (or `goal`), `weight` (1)."""
        path = Path(path)
        if path.suffix.lower() not in _READERS:
            raise ValueError(f"{path}: a task file ends in {', '.join(_READERS)}, not {path.suffix!r}")
        try:
            records = _READERS[path.suffix.lower()](path)
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a readable task file: {error}") from error
        if not isinstance(records, list):
            raise ValueError(f"{path}: a task file holds a list of records, not a {type(records).__name__}")
        try:
            return cls(_task(position, record) for position, record in enumerate(records))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        """The task, or the tasks of a slice, at a position."""
        return self._tasks[index]

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, item: object) -> bool:
        return item in self._index or item in self._tasks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSet) and self._tasks == other._tasks

    def __hash__(self) -> int:
        return hash(self._tasks)

    def __repr__(self) -> str:
        return f"TaskSet({len(self)} tasks: {', '.join(self.ids[:3])}{', ...' if len(self) > 3 else ''})"

    def index(self, id: str, *_: Any) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The position of a task; a KeyError names the id and the nearest ids."""
        try:
            return self._index[id]
        except (KeyError, TypeError):
            raise KeyError(unknown_id(id, self.ids)) from None

    def indices(self, ids: Iterable[str]) -> Int[np.ndarray, " id"]:
        """The positions of several tasks."""
        return np.array([self.index(id) for id in ids], dtype=np.int64)

    def with_weights(self, weights: Any) -> "TaskSet":
        """The same tasks with other weights: one number per task, >= 0, with a positive sum."""
        checked = checked_weights(weights, self.ids)
        return TaskSet(Task(t.id, t.text, float(w)) for t, w in zip(self._tasks, checked, strict=True))

    def with_target(self, id: str, share: float = 1.0) -> "TaskSet":
        """All weight on one task, or only a `share` in (0, 1] of it and the rest equally on the others (paper, E.2)."""
        if not 0 < share <= 1:
            raise ValueError(f"the target's share of the weight is {share!r}; it must lie in (0, 1]")
        target = self.index(id)
        others = len(self) - 1
        weights = np.full(len(self), (1 - share) / others if others else 0.0)
        weights[target] = share
        return self.with_weights(weights)

    def uniform(self) -> "TaskSet":
        """The same tasks, each with weight 1."""
        return self.with_weights(np.ones(len(self)))

    def restrict(self, ids: Iterable[str]) -> "TaskSet":
        """Only the tasks named, in the order given."""
        return TaskSet(self._tasks[self.index(id)] for id in ids)

    @property
    def digest(self) -> str:
        """SHA-256 of the ids and texts in order; the weights are left out."""
        pairs = json.dumps(list(zip(self.ids, self.texts, strict=True)), ensure_ascii=False)
        return hashlib.sha256(pairs.encode()).hexdigest()


def unknown_id(id: object, known: Sequence[str]) -> str:
    """One line that names an unknown task id and the nearest known ones."""
    near = get_close_matches(str(id), known, n=3, cutoff=0.5)
    return f"unknown task id {id!r}" + (f"; the nearest are {', '.join(map(repr, near))}" if near else "")


def checked_weights(weights: Any, ids: tuple[str, ...]) -> Float[np.ndarray, " task"]:
    """Weights as a read-only float64 array; a ValueError if they are not one finite number >= 0 a task, or all 0."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("task weights must be numbers") from None
    if array.shape != (len(ids),):
        raise ValueError(
            f"task weights have the shape {array.shape}; one weight for each of {len(ids)} tasks is needed"
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(f"task {ids[bad[0]]!r} has the weight {array[bad[0]]}; weights must be finite and >= 0")
    if not array.sum() > 0:
        raise ValueError("all task weights are 0; their sum must be positive")
    array.setflags(write=False)
    return array


def _task(position: int, record: Any) -> Task:
    if not isinstance(record, dict):
        raise ValueError(f"record {position} is {record!r}; it must have the fields id and text")
    unknown = set(record) - {"id", "text", "goal", "weight"}
    text = record.get("text", record.get("goal"))
    if unknown or "id" not in record or text is None:
        raise ValueError(
            f"record {position} has the fields {sorted(record)}; id, text (or goal) and weight are allowed"
        )
    weight = record.get("weight")
    try:
        number = 1.0 if weight in (None, "") else float(weight)
    except (TypeError, ValueError):
        raise ValueError(f"task {record['id']!r} has the weight {weight!r}; it must be a number") from None
    return Task(record["id"], text, number)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read_yaml(path: Path) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ValueError("reading YAML needs PyYAML: pip install 'forethought[yaml]'") from None
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _read_csv(path: Path) -> Any:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


_READERS = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml, ".csv": _read_csv}
