"""Which finished episodes count: the most recent few of every environment."""

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike


def latest_per_environment(
    environments: ArrayLike, successes: ArrayLike, k: int = 5
) -> tuple[Int64[np.ndarray, " seen"], Float64[np.ndarray, " seen"], Int64[np.ndarray, " seen"]]:
    """Mean success over each environment's last `k` finished episodes (paper, A.2, K = 5).

    Args:
        environments: the environment of each finished episode, in the order in which they finished.
        successes: each episode's outcome in [0, 1].
        k: episodes of one environment that count, at least 1.

    Returns:
        The environments that finished an episode, in ascending order; their mean success; the number of
        episodes behind each mean (1 to `k`).

    Raises:
        ValueError: if the lengths differ, `k` is below 1, or an outcome is not in [0, 1].

    Example:
        >>> environments, means, episodes = latest_per_environment([3, 1, 3, 3], [0, 1, 1, 1], k=2)
        >>> environments.tolist(), means.tolist(), episodes.tolist()
        ([1, 3], [1.0, 1.0], [1, 2])
    """
    which = np.asarray(environments)
    outcomes = np.asarray(successes, np.float64)
    if which.ndim != 1 or which.shape != outcomes.shape:
        raise ValueError(
            f"environments and successes have shapes {which.shape} and {outcomes.shape}; allowed: equal, flat"
        )
    if which.size and not np.issubdtype(which.dtype, np.integer):
        raise ValueError(f"environments has type {which.dtype}; allowed: integers")
    if k < 1:
        raise ValueError(f"k is {k}; allowed: at least 1")
    if not np.all((outcomes >= 0) & (outcomes <= 1)):
        raise ValueError("successes holds a value that is not in [0, 1]")
    order = np.argsort(which, kind="stable")
    names, starts, counts = np.unique(which[order], return_index=True, return_counts=True)
    from_end = np.repeat(starts + counts, counts) - np.arange(which.size)
    recent = from_end <= k
    group = np.repeat(np.arange(names.size), counts)
    episodes = np.minimum(counts, k)
    totals = np.bincount(group[recent], outcomes[order][recent], names.size)
    return names.astype(np.int64), totals / episodes, episodes.astype(np.int64)
