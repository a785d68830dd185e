"""Where creatures appear: a draw that falls on the edge between two cells goes to the side that JAX's sums put it on.

Such draws are too rare for games to meet enough of them, so that here they are sought out.
"""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from conformance.fields import SIZE
from conformance.rules import ENGINE, build

MASKS = 48
DRAWS = 32  # of each mask, those nearest to an edge of 2^21
CELLS = SIZE * SIZE


@pytest.fixture
def masks() -> np.ndarray:
    """Cells to choose among: bool[mask, 48, 48], from a few to nearly all, scattered or in one place."""
    rng = np.random.default_rng(7)
    density = rng.uniform(0.07, 1, (MASKS, 1, 1)) ** 2
    scattered = rng.random((MASKS, SIZE, SIZE)) < density
    rows, cols = np.indices((SIZE, SIZE))
    centre = rng.integers(0, SIZE, (MASKS, 2, 1, 1))
    near = np.hypot(rows - centre[:, 0], cols - centre[:, 1]) < 14
    masks = np.where(np.arange(MASKS)[:, None, None] % 2, scattered, near & (rng.random(near.shape) < 0.7))
    assert masks.any(axis=(1, 2)).all()
    return masks


@pytest.mark.craftax
def test_draws_on_an_edge_fall_where_they_do_in_jax(masks: np.ndarray, tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(5), 1 << 21)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (1,))))(keys))[:, 0]
    counts = masks.sum(axis=(1, 2)).astype(np.int32)
    place = (np.float32(1) - draws).astype(np.float64)
    nearest = []
    for count in counts:
        distance = abs(place * count - np.rint(place * count))
        nearest.append(np.argpartition(distance, DRAWS)[:DRAWS])
    chosen, mask = np.concatenate(nearest), np.repeat(np.arange(MASKS), DRAWS)

    def choose(key: jax.Array, mask: jax.Array) -> jax.Array:
        weights = jnp.reshape(mask, -1) / jnp.sum(mask)
        return jax.random.choice(key, jnp.arange(CELLS), shape=(1,), p=weights)[0]

    expected = np.asarray(jax.jit(jax.vmap(choose))(keys[chosen], masks[mask]))
    actual = _choose(masks[mask], counts[mask], draws[chosen], tmp_path)
    wrong = np.flatnonzero(actual != expected)
    assert not len(wrong), (
        f"{len(wrong)} of {len(chosen)}, first {counts[mask[wrong[0]]]} cells, {draws[chosen[wrong[0]]]!r}"
    )
    # Sums without rounding would often give another cell: the draws are those in question.
    exact = np.array(
        [
            np.flatnonzero(m)[int(np.ceil(p * c)) - 1]
            for m, p, c in zip(masks[mask].reshape(-1, CELLS), place[chosen], counts[mask], strict=True)
        ]
    )
    assert np.count_nonzero(exact != expected) > len(chosen) // 20


def _choose(masks: np.ndarray, counts: np.ndarray, draws: np.ndarray, folder: Path) -> np.ndarray:
    """The engine's choice of a cell for each mask and draw."""
    build("choice", ENGINE / "src", folder / "choice.so")
    library = ctypes.CDLL(str(folder / "choice.so"))
    rows = (masks.astype(np.uint64) << np.arange(SIZE, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    cells = np.zeros(len(draws), np.int32)
    arrays = [np.ascontiguousarray(array) for array in (rows, counts, draws.astype(np.float32))]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    library.choose_cells(*pointers, len(draws), ctypes.c_void_p(cells.ctypes.data))
    return cells
