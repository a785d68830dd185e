"""Large task sets: ask only about likely pairs and a random share of the others."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from forethought.judging.blocks import Group, cut, generator


@dataclass(frozen=True)
class Pruning:
    """How the candidates of a target are chosen when not every pair is asked.

    The targets of a block are alike, and share their candidates: neighbours of each of them by cosine, nearest first,
    and a share drawn afresh from the rest of the tasks for every block and repetition. That share finds what the
    neighbours miss, and its yes votes say how much that is.

    Attributes:
        candidates: sources offered to a target block.
        random_share: the part of them, in [0, 1], that is drawn at random.
        vectors: one vector a task, of any length.
        vectors_from: where the vectors come from.
    """

    candidates: int
    random_share: float
    vectors: Float[np.ndarray, "task width"]
    vectors_from: str

    def __post_init__(self):
        if self.candidates < 2:
            raise ValueError(f"candidates is {self.candidates}; a target block needs at least 2")
        if not 0 <= self.random_share <= 1:
            raise ValueError(f"random_share is {self.random_share}; it must lie in [0, 1]")
        if self.vectors.ndim != 2 or not np.isfinite(self.vectors).all():
            raise ValueError(f"vectors have the shape {self.vectors.shape}; one finite vector a task is needed")

    @property
    def near_count(self) -> int:
        """Candidates that are neighbours."""
        wanted = min(self.candidates, len(self.vectors))
        return wanted - round(self.random_share * wanted)

    @cached_property
    def unit(self) -> Float[np.ndarray, "task width"]:
        """The vectors, scaled to length 1."""
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        return (self.vectors / np.maximum(lengths, 1e-12)).astype(np.float32)

    @cached_property
    def nearest(self) -> Int[np.ndarray, "task rank"]:
        """Each task's nearest others, nearest first: as many as there are places for neighbours."""
        size, count = len(self.unit), min(self.near_count, len(self.unit) - 1)
        found = np.empty((size, count), dtype=np.int64)
        for first in range(0, size, 512):
            rows = slice(first, min(first + 512, size))
            similar = self.unit[rows] @ self.unit.T
            similar[np.arange(similar.shape[0]), np.arange(rows.start, rows.stop)] = -np.inf
            chosen = np.argpartition(-similar, max(count - 1, 0), axis=1)[:, :count]
            order = np.argsort(-np.take_along_axis(similar, chosen, 1), axis=1, kind="stable")
            found[rows] = np.take_along_axis(chosen, order, 1)
        return found


def likely_pairs(
    kind: str, pruning: Pruning, source_block: int, target_block: int, seed: int, repetition: int
) -> tuple[Group, ...]:
    """One repetition over the candidates only: no pair is asked twice, every target is asked about."""
    size = len(pruning.vectors)
    wanted = min(pruning.candidates, size)
    order = generator(kind, seed, repetition, "sources")
    share = generator(kind, seed, repetition, "random share")
    groups = []
    for targets in _alike(pruning, target_block, generator(kind, seed, repetition, "targets")):
        near = _in_turn(pruning.nearest[targets], pruning.near_count)
        rest = np.ones(size, dtype=bool)
        rest[near] = False
        drawn = share.choice(np.flatnonzero(rest), wanted - len(near), replace=False)
        chosen = order.permutation(np.concatenate([near, drawn]))
        groups.append(Group(cut(chosen, source_block), (tuple(targets.tolist()),)))
    return tuple(groups)


def text_vectors(texts: Sequence[str], width: int = 512) -> Float[np.ndarray, "text width"]:
    """Vectors of what texts are made of, words and groups of four letters, rare ones counting more; needs no model.

    They see shared wording only. A model's vectors (`forethought embed`) also see shared meaning.
    """
    counts = np.zeros((len(texts), width))
    for row, text in enumerate(texts):
        for part in _parts(text):
            digest = int.from_bytes(hashlib.blake2b(part.encode(), digest_size=8).digest(), "big")
            counts[row, digest % width] += 1 if digest >> 63 else -1
    spread = np.log((1 + len(texts)) / (1 + (counts != 0).sum(axis=0))) + 1
    return np.sign(counts) * np.sqrt(np.abs(counts)) * spread


def _parts(text: str) -> list[str]:
    text = text.casefold()
    words = re.findall(r"\w+", text)
    padded = f" {' '.join(words) or text} "
    return words + [padded[i : i + 4] for i in range(max(len(padded) - 3, 1))]


def _alike(pruning: Pruning, size: int, random: np.random.Generator) -> list[Int[np.ndarray, " target"]]:
    """Blocks of a random task and its nearest neighbours among those left, so that blocks differ by repetition."""
    unit = pruning.unit
    left = np.ones(len(unit), dtype=bool)
    blocks = []
    for first in random.permutation(len(unit)):
        if not left[first]:
            continue
        left[first] = False
        others = pruning.nearest[first]
        others = others[left[others]][: size - 1]
        if len(others) < size - 1:
            free = np.flatnonzero(left)
            others = free[np.argsort(-(unit[free] @ unit[first]), kind="stable")[: size - 1]]
        left[others] = False
        blocks.append(random.permutation(np.concatenate([[first], others])))
    return blocks


def _in_turn(nearest: Int[np.ndarray, "target rank"], count: int) -> Int[np.ndarray, " source"]:
    """The first `count` different tasks: each target's nearest, then each one's second nearest, and so on."""
    in_turn = nearest.T.ravel()
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:count]]
