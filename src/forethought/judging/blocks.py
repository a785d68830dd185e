"""Which goals stand together in one query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

PREFIXES = {"learning_connectivity": "lc", "feasibility_evidence": "fe", "interestingness": "in"}
"""What the ids of queries begin with, by kind of judgment."""

Block = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the model: which of the sources go with each target? Both are positions in the task set."""

    id: str
    repetition: int
    sources: Block
    targets: Block

    @property
    def pairs(self) -> int:
        """Ordered pairs of different tasks that it asks about."""
        return len(self.sources) * len(self.targets) - len(set(self.sources) & set(self.targets))


@dataclass(frozen=True)
class Group:
    """Blocks of which every source block meets every target block."""

    sources: tuple[Block, ...]
    targets: tuple[Block, ...]


def all_pairs(
    kind: str, size: int, source_block: int, target_block: int, seed: int, repetition: int
) -> tuple[Group, ...]:
    """One repetition that asks every ordered pair once: both roles shuffled independently (paper, Appendix B.1)."""
    order = [shuffled(size, generator(kind, seed, repetition, role)) for role in ("sources", "targets")]
    return (Group(cut(order[0], source_block), cut(order[1], target_block)),)


def queries(kind: str, repetitions: Sequence[Sequence[Group]]) -> Iterator[Query]:
    """The queries of a design, repetition by repetition."""
    for r, groups in enumerate(repetitions):
        width = len(str(max(sum(len(group.targets) for group in groups) - 1, 0)))
        first = 0
        for group in groups:
            # Queries that share their choices follow each other, so that a provider can reuse the common beginning.
            for s, sources in enumerate(group.sources):
                for t, targets in enumerate(group.targets, first):
                    yield Query(f"{PREFIXES[kind]}-r{r}-t{t:0{width}d}-s{s}", r, sources, targets)
            first += len(group.targets)


def cut(order: Int[np.ndarray, " task"], size: int) -> tuple[Block, ...]:
    """Blocks of at most `size`, in order."""
    return tuple(tuple(order[first : first + size].tolist()) for first in range(0, len(order), size))


def shuffled(size: int, random: np.random.Generator) -> Int[np.ndarray, " task"]:
    """The positions 0 to size - 1 in random order."""
    return random.permutation(size).astype(np.int64)


def generator(kind: str, seed: int, repetition: int, role: str) -> np.random.Generator:
    """A stream of its own for each kind, repetition and role, so that shuffles are independent of each other."""
    words = [seed, list(PREFIXES).index(kind), repetition, ("sources", "targets", "random share").index(role)]
    return np.random.default_rng(np.random.SeedSequence(words))
