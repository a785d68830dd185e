"""`forethought embed`: goal vectors from any model that sentence-transformers loads."""

from collections.abc import Sequence
from pathlib import Path

from forethought.cli.errors import UsageError, bad_input
from forethought.cli.judge_domain import craftax_goals


def command(arguments: Sequence[str]) -> int:
    """Run `forethought embed`."""
    from forethought.cli.parsing import call

    return call(embed, arguments, "forethought embed")


def embed(model: str, dim: int | None = None, out: str = "", tasks: str = "", own_goals: str = "") -> int:
    """Make the file of goal vectors that `--embeddings` takes.

    The paper's: forethought embed --model Qwen/Qwen3-Embedding-4B --dim 512

    Args:
        model: Name of a model on the Hugging Face hub, or a local directory.
        dim: Keep this many leading numbers of each vector; unset: all.
        out: The file to write; default: <model>-<dim>.npz in the current directory.
        tasks: A task file (JSON, YAML or CSV); default: the 256 goals of Craftax.
        own_goals: A Python file with goals of your own, to add to those of Craftax.
    """
    from forethought.embeddings import embed as make
    from forethought.tasks import TaskSet

    path = Path(out or default_name(model, dim))
    if dim is not None and dim < 1:
        raise UsageError(f"--dim: {dim} given; allowed are 1 and more")
    if path.exists():
        raise UsageError(f"--out: {path} exists already; name another file")
    if not path.resolve().parent.is_dir():
        raise UsageError(f"--out: {path.parent} is no directory")
    if tasks and own_goals:
        raise UsageError(f"--own-goals: {own_goals} given, but it adds to the goals of Craftax; use it without --tasks")
    with bad_input():
        texts = (TaskSet.load(Path(tasks)) if tasks else craftax_goals(own_goals)).texts
        embeddings = make(texts, model, dim)
        embeddings.check()
        embeddings.save(path)
    print(f"{len(texts)} vectors of width {embeddings.vectors.shape[1]} in {path}; use with --embeddings {path}")
    return 0


def default_name(model: str, dim: int | None) -> str:
    """File name for a model's vectors, such as `qwen3-embedding-4b-512.npz`."""
    return f"{Path(model).name.lower()}{f'-{dim}' if dim else ''}.npz"
