"""Reading many rows of a compressed sparse matrix at once."""

import numpy as np
from jaxtyping import Int, Int64


def gather(
    indptr: Int[np.ndarray, " rows_plus_one"], rows: Int64[np.ndarray, " row"]
) -> tuple[Int64[np.ndarray, " entry"], Int64[np.ndarray, " entry"]]:
    """Positions of the entries of some rows, row after row, and for each the place in `rows` it belongs to."""
    starts = indptr[rows].astype(np.int64)
    counts = indptr[rows + 1] - starts
    owner = np.repeat(np.arange(rows.size), counts)
    first = np.cumsum(counts) - counts
    return np.arange(owner.size) + (starts - first)[owner], owner
