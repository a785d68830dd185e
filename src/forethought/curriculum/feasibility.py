"""Whether training on a task is likely to get anywhere yet (paper, Section 4.2)."""

import numpy as np
from jaxtyping import Float64, Int64
from scipy import sparse

from forethought.curriculum.segments import gather


class Feasibility:
    """f(m) = E(bottom, m) + sum over s of E(s, m) P(s), kept up to date as success rates change.

    Args:
        evidence: E, sparse [source task], each column with `from_scratch` summing to at most 1.
        from_scratch: E(bottom, m).
    """

    def __init__(self, evidence: sparse.csr_array, from_scratch: Float64[np.ndarray, " task"]):
        by_source = sparse.csr_array(evidence)
        by_target = sparse.csc_array(evidence)
        self._targets = by_source.indptr, by_source.indices
        self._sources = by_target.indptr, by_target.indices, by_target.data
        self._from_scratch = np.asarray(from_scratch, np.float64)
        self.values = self._from_scratch.copy()

    def refresh(self, success_rate: Float64[np.ndarray, " task"]) -> None:
        """Compute every value anew."""
        self._set(np.arange(self.values.size), success_rate)

    def update(
        self, changed: Int64[np.ndarray, " seen"], success_rate: Float64[np.ndarray, " task"]
    ) -> Int64[np.ndarray, " affected"]:
        """Compute the values that rest on some tasks anew, and return whose they are."""
        indptr, indices = self._targets
        positions, _ = gather(indptr, changed)
        affected = np.unique(indices[positions]).astype(np.int64)
        self._set(affected, success_rate)
        return affected

    def _set(self, tasks: Int64[np.ndarray, " affected"], success_rate: Float64[np.ndarray, " task"]) -> None:
        indptr, indices, weights = self._sources
        positions, owner = gather(indptr, tasks)
        # bincount adds in the order of the column: a value never depends on which others were computed with it.
        evidence = np.bincount(owner, weights[positions] * success_rate[indices[positions]], tasks.size)
        self.values[tasks] = np.minimum(self._from_scratch[tasks] + evidence, 1.0)
