"""Vectors of task texts: shipped or made, keyed by text, checked."""

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from forethought.files import replacing
from forethought.tasks import TaskSet

TOO_CLOSE = 0.999
"""Cosine above which two tasks' vectors are reported as hard to tell apart."""


class Embeddings:
    """Vectors of unit length, one for each text.

    Attributes:
        model: the name of the model that made them.
        texts: the texts, unique.
        vectors: float32 [text width].

    Raises:
        ValueError: repeated texts, vectors of another number, or numbers that are not finite.
    """

    def __init__(self, model: str, texts: Sequence[str], vectors: Float[np.ndarray, "text width"]):
        self.model = model
        self.texts = tuple(texts)
        self.vectors: Float[np.ndarray, "text width"] = np.asarray(vectors, dtype=np.float32)
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.texts):
            raise ValueError(f"{len(self.texts)} texts need as many vectors; their shape is {self.vectors.shape}")
        if not np.isfinite(self.vectors).all():
            bad = int(np.flatnonzero(~np.isfinite(self.vectors).all(axis=1))[0])
            raise ValueError(f"the vector of {self.texts[bad]!r} has numbers that are not finite")
        self._row = {text: row for row, text in enumerate(self.texts)}
        if len(self._row) < len(self.texts):
            raise ValueError("a text occurs more than once; texts must be unique")

    @property
    def width(self) -> int:
        """Numbers in one vector."""
        return self.vectors.shape[1]

    def for_tasks(self, tasks: TaskSet) -> Float[np.ndarray, "task width"]:
        """The vectors of a task set in its order; warns of tasks that are hard to tell apart.

        Raises:
            ValueError: texts without a vector, by name.
        """
        missing = [task.id for task in tasks if task.text not in self._row]
        if missing:
            some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise ValueError(
                f"the embeddings by {self.model} hold no vector for the texts of {some}; "
                "make them with: forethought embed"
            )
        chosen = self.vectors[[self._row[task.text] for task in tasks]]
        _warn_if_close(chosen, tasks.ids)
        return chosen

    def check(self) -> None:
        """Warn of every text whose vector is closer to another's than cosine 0.999."""
        _warn_if_close(self.vectors, self.texts)

    def save(self, path: str | Path) -> None:
        """Write a `.npz` file; an old one is replaced only by a whole new one."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, model=self.model, texts=np.array(self.texts), vectors=self.vectors)

    @classmethod
    def load(cls, path: str | Path) -> "Embeddings":
        """Read a file that `save` wrote; a ValueError says what is wrong with another."""
        try:
            with Path(path).open("rb") as handle, np.load(handle, allow_pickle=False) as file:
                return cls(str(file["model"]), file["texts"].tolist(), file["vectors"])
        except FileNotFoundError:
            raise ValueError(f"{path}: no such embeddings file; make one with: forethought embed") from None
        except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: not a readable embeddings file: {error}") from error


def embed(texts: Sequence[str], model: str, dim: int | None = None) -> Embeddings:
    """Embed texts with any model that sentence-transformers loads, by name or local path.

    No instruction is put before a text. Vectors are cut to `dim` numbers and scaled to unit length, as the paper does
    with Qwen3-Embedding-4B and 512 (Appendix C.2).

    Raises:
        ValueError: sentence-transformers is not installed, the model cannot be loaded, or it is narrower than `dim`.
    """
    if dim is not None and dim < 1:
        raise ValueError(f"dim is {dim}; it must be at least 1")
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise ValueError("embedding needs sentence-transformers: pip install 'forethought[embed]'") from None
    try:
        encoder = SentenceTransformer(model)
    except Exception as error:
        raise ValueError(f"the model {model!r} cannot be loaded: {str(error).splitlines()[0]}") from error
    vectors = np.asarray(encoder.encode(list(texts), convert_to_numpy=True), dtype=np.float64)
    width = vectors.shape[1]
    if dim is not None and dim > width:
        raise ValueError(f"dim is {dim}; the model {model!r} gives {width} numbers a text, so at most that")
    vectors = vectors[:, :dim]
    return Embeddings(model, texts, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


def _warn_if_close(vectors: Float[np.ndarray, "text width"], names: Sequence[str]) -> None:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    for row in range(1, len(unit)):
        close = np.flatnonzero(unit[:row] @ unit[row] > TOO_CLOSE)
        if close.size:
            warnings.warn(
                f"the vectors of {names[close[0]]!r} and {names[row]!r} are closer than cosine {TOO_CLOSE}; "
                "a policy can hardly tell them apart",
                stacklevel=3,
            )
