"""A judging run before anything is sent: every query, fixed by task set, prompts, block sizes and seed."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from forethought.files import replacing
from forethought.judging.blocks import Group, Query, all_pairs, queries
from forethought.judging.prompts import LISTS, Prompts
from forethought.judging.pruning import Pruning, likely_pairs
from forethought.tasks import Task, TaskSet

KINDS = tuple(LISTS)
"""The kinds of judgment, named as the graphs that they become."""

SHAPES = ("records", "keyed")
"""Shapes of a reply: a list with one record a target, or an object with one property a target."""

THINKING = ("minimal", "low", "medium", "high", "xhigh")
"""Amounts of thinking that can be asked for; a provider takes the nearest it knows."""

FORMAT = "forethought judging plan"


@dataclass(frozen=True)
class Settings:
    """How a model is asked.

    Attributes:
        model: `PROVIDER:NAME`, such as `google:gemini-3.8-flash`.
        base_url: address of an OpenAI-compatible server; None for the provider's own.
        thinking: one of `minimal`, `low`, `medium`, `high`, `xhigh`; None leaves it to the model.
        shape: shape of a reply, `records` or `keyed`.
        asks: how often one target is asked before it is given up, at least 1.
    """

    model: str
    base_url: str | None = None
    thinking: str | None = "high"
    shape: str = "records"
    asks: int = 4

    def __post_init__(self):
        if not self.model:
            raise ValueError("the model has no name; name one as PROVIDER:NAME")
        if self.thinking is not None and self.thinking not in THINKING:
            raise ValueError(f"thinking is {self.thinking!r}; allowed are {', '.join(THINKING)} and none")
        if self.shape not in SHAPES:
            raise ValueError(f"shape is {self.shape!r}; allowed are {' and '.join(SHAPES)}")
        if self.asks < 1:
            raise ValueError(f"asks is {self.asks}; it must be at least 1")
        if self.base_url and "@" in self.base_url.split("?")[0]:
            raise ValueError(
                "base_url holds a name or password, which would be stored; give the key in the environment"
            )


@dataclass(frozen=True)
class Plan:
    """What a run asks.

    Attributes:
        kind: one of `KINDS`.
        tasks: the task set; positions in it are used everywhere below.
        prompts: template and contexts.
        settings: model and how it is asked.
        repetitions: per repetition, the groups of blocks (paper, Appendix B.1).
        block_sizes: the most goals shown in one query, by role, such as `{"source_goals": 64, "target_goals": 16}`.
        seed: of the shuffles; None if the blocks were given.
        learner: a name for the learner that the judgments are about.
        pruning: how candidates were chosen; None if every ordered pair is asked.
        own_ids: whether replies name tasks by their own ids instead of short ones (`g017`).
        notes: what a reader of the graph should know.
    """

    kind: str
    tasks: TaskSet
    prompts: Prompts
    settings: Settings
    repetitions: tuple[tuple[Group, ...], ...]
    block_sizes: dict[str, int]
    seed: int | None = None
    learner: str | None = None
    pruning: dict[str, Any] | None = None
    own_ids: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.repetitions:
            raise ValueError("a plan needs at least one repetition")
        if self.prompts.kind != self.kind:
            raise ValueError(f"the prompts are for {self.prompts.kind}; the plan is for {self.kind}")

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """Every query, in the order in which it is asked."""
        return tuple(queries(self.kind, self.repetitions))

    @cached_property
    def by_id(self) -> dict[str, Query]:
        """The queries by id."""
        return {query.id: query for query in self.queries}

    @cached_property
    def wire_ids(self) -> tuple[str, ...]:
        """The ids that stand in prompts and replies, by position: short, so that schemas stay small."""
        if self.own_ids:
            return self.tasks.ids
        width = max(3, len(str(len(self.tasks) - 1)))
        return tuple(f"g{i:0{width}d}" for i in range(len(self.tasks)))

    @property
    def pairs(self) -> int:
        """Ordered pairs that all repetitions together ask about."""
        return sum(query.pairs for query in self.queries)

    @property
    def share_asked(self) -> float:
        """The part of all ordered pairs that a repetition asks about, on average; 1 without pruning."""
        size = len(self.tasks)
        possible = size * (size - 1) * len(self.repetitions)
        return self.pairs / possible if possible else 1.0

    @property
    def share_ever_asked(self) -> float:
        """The part of all ordered pairs that at least one repetition asks about."""
        size = len(self.tasks)
        ever = np.zeros((size, size), dtype=bool)
        for query in self.queries:
            ever[np.ix_(query.sources, query.targets)] = True
        np.fill_diagonal(ever, False)
        return float(ever.sum()) / (size * (size - 1))

    def check_pairs(self) -> None:
        """Raise a ValueError unless every repetition asks each ordered pair of different tasks exactly once."""
        size = len(self.tasks)
        for r, groups in enumerate(self.repetitions):
            asked = np.zeros((size, size), dtype=np.int64)
            for group in groups:
                for sources in group.sources:
                    for targets in group.targets:
                        asked[np.ix_(sources, targets)] += 1
            np.fill_diagonal(asked, 1)
            for count, what in ((asked > 1, "more than once"), (asked == 0, "never")):
                if count.any():
                    s, t = (self.tasks.ids[i] for i in np.argwhere(count)[0])
                    raise ValueError(
                        f"repetition {r} asks about {s!r} -> {t!r} {what}; it must ask about each pair once"
                    )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything in the plan."""
        canonical = json.dumps(self._document(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON; an old file is replaced only by a whole new one."""
        document = {"format": FORMAT, "version": 1, "digest": self.digest} | self._document()
        lines = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items())
        with replacing(path) as temporary:
            temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan that `save` wrote; a ValueError says what is wrong with another file."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"{path}: no such plan; make one with: forethought judge plan") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: not a readable plan: {error}") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f"{path}: not a judging plan")
        if document.get("version") != 1:
            raise ValueError(f"{path}: a plan of version {document.get('version')!r}; version 1 can be read")
        try:
            plan = cls._from_document(document)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: not a whole plan: {error!r}") from error
        if plan.digest != document.get("digest"):
            raise ValueError(f"{path}: was changed after it was made; plan a new run instead")
        return plan

    def _document(self) -> dict[str, Any]:
        prompts = asdict(self.prompts)
        prompts.pop("kind")
        return {
            "kind": self.kind,
            "learner": self.learner,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "block_sizes": self.block_sizes,
            "pruning": self.pruning,
            "own_ids": self.own_ids,
            "notes": list(self.notes),
            "prompt_hash": self.prompts.digest,
            "prompts": prompts,
            "tasks": [{"id": task.id, "text": task.text} for task in self.tasks],
            "repetitions": [
                [{"sources": group.sources, "targets": group.targets} for group in groups]
                for groups in self.repetitions
            ],
        }

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> "Plan":
        return cls(
            kind=document["kind"],
            tasks=TaskSet(Task(task["id"], task["text"]) for task in document["tasks"]),
            prompts=Prompts(kind=document["kind"], **document["prompts"]),
            settings=Settings(**document["settings"]),
            repetitions=tuple(
                tuple(Group(_blocks(group["sources"]), _blocks(group["targets"])) for group in groups)
                for groups in document["repetitions"]
            ),
            block_sizes=document["block_sizes"],
            seed=document["seed"],
            learner=document["learner"],
            pruning=document["pruning"],
            own_ids=document["own_ids"],
            notes=tuple(document["notes"]),
        )


def make_plan(
    tasks: TaskSet,
    prompts: Prompts,
    settings: Settings,
    *,
    repetitions: int = 5,
    source_block: int | None = None,
    target_block: int | None = None,
    seed: int = 0,
    pruning: Pruning | None = None,
    learner: str | None = None,
    notes: Sequence[str] = (),
) -> Plan:
    """Lay out a run: shuffles and blocks for every repetition (paper, Appendix B.1).

    Args:
        tasks: at least 2 tasks.
        prompts: template and contexts; they fix the kind of judgment.
        settings: model and how it is asked.
        repetitions: R, at least 1.
        source_block: most goals to choose from in one query; default all for evidence, otherwise 64.
        target_block: most goals to judge in one query; default 8 for evidence, otherwise 16.
        seed: of the shuffles, at least 0.
        pruning: ask only about likely pairs; None asks about all.
        learner: a name for the learner.
        notes: what a reader of the graph should know.

    Raises:
        ValueError: a number out of range, or vectors for another number of tasks.
    """
    kind = prompts.kind
    evidence = kind == "feasibility_evidence"
    if len(tasks) < 2:
        raise ValueError("one task alone has nothing to be judged against; at least 2 tasks are needed")
    if evidence and source_block is not None:
        raise ValueError("source_block is set; every evidence query shows all candidates")
    offered = pruning.candidates if pruning else len(tasks)
    if source_block is None:
        source_block = min(offered if evidence else 64, len(tasks))
    if target_block is None:
        target_block = min(8 if evidence else 16, len(tasks))
    for name, value, least in (
        ("repetitions", repetitions, 1),
        ("source_block", source_block, 1),
        ("target_block", target_block, 1),
        ("seed", seed, 0),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    if pruning and len(pruning.vectors) != len(tasks):
        raise ValueError(f"pruning has {len(pruning.vectors)} vectors; {len(tasks)} tasks need as many")
    return Plan(
        kind=kind,
        tasks=tasks,
        prompts=prompts,
        settings=settings,
        repetitions=tuple(
            likely_pairs(kind, pruning, source_block, target_block, seed, r)
            if pruning
            else all_pairs(kind, len(tasks), source_block, target_block, seed, r)
            for r in range(repetitions)
        ),
        block_sizes={LISTS[kind]: source_block, "target_goals": target_block},
        seed=seed,
        learner=learner,
        pruning=None
        if pruning is None
        else {
            "candidates": pruning.candidates,
            "random_share": pruning.random_share,
            "vectors_from": pruning.vectors_from,
        },
        notes=tuple(notes),
    )


def _blocks(lists: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))
