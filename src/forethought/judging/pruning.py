"""Large task sets: ask only about likely pairs and a random share of the others."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def likely_pairs(
    kind: str, pruning: Pruning, source_block: int, target_block: int, seed: int, repetition: int
) -> tuple[Group, ...]:
    """One repetition over the candidates only: no pair is asked twice, every target is asked about."""
    lengths = np.linalg.norm(pruning.vectors, axis=1, keepdims=True)
    vectors = (pruning.vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    size = len(vectors)
    wanted = min(pruning.candidates, size)
    drawn = round(pruning.random_share * wanted)
    order = generator(kind, seed, repetition, "sources")
    share = generator(kind, seed, repetition, "random share")
    groups = []
    for targets in _alike(vectors, target_block, generator(kind, seed, repetition, "targets")):
        near = _neighbours(vectors, targets, wanted - drawn)
        rest = np.setdiff1d(np.arange(size), near)
        chosen = np.concatenate([near, share.choice(rest, min(wanted - len(near), len(rest)), replace=False)])
        groups.append(Group(cut(order.permutation(chosen), source_block), (tuple(targets.tolist()),)))
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


def _alike(
    vectors: Float[np.ndarray, "task width"], size: int, random: np.random.Generator
) -> list[Int[np.ndarray, " target"]]:
    """Blocks of a random task and its nearest neighbours among those left, so that blocks differ by repetition."""
    left = np.ones(len(vectors), dtype=bool)
    blocks = []
    for first in random.permutation(len(vectors)):
        if not left[first]:
            continue
        similar = np.where(left, vectors @ vectors[first], -np.inf)
        similar[first] = np.inf
        block = np.argsort(-similar, kind="stable")[: min(size, left.sum())]
        left[block] = False
        blocks.append(random.permutation(block))
    return blocks


def _neighbours(
    vectors: Float[np.ndarray, "task width"], targets: Int[np.ndarray, " target"], count: int
) -> Int[np.ndarray, " source"]:
    """The targets' nearest tasks, each target's nearest first, then each one's second nearest, and so on."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    similar = vectors[targets] @ vectors.T
    similar[np.arange(len(targets)), targets] = -np.inf
    nearest = np.argpartition(-similar, min(count, len(vectors) - 1), axis=1)[:, :count]
    by_rank = np.take_along_axis(nearest, np.argsort(-np.take_along_axis(similar, nearest, 1), axis=1), 1)
    in_turn = by_rank.T.ravel()
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:count]]
