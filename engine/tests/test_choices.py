"""Drawing one of many against jax.random.choice, compiled and batched: the same index, also at edges of shares."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SIZE, CELLS, BATCH, ROUNDS = 48, 48 * 48, 2048, 12
EQUAL_SHARES, EXACTLY, UNITS = 0, 1, 2


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    here = Path(__file__).parent
    path = tmp_path_factory.mktemp("choices") / "choices.so"
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", str(here.parent / "src")]
    subprocess.run([compiler, *flags, "-o", str(path), str(here / "choices.cpp")], check=True)
    return ctypes.CDLL(str(path))


def call(function, *arguments) -> bool:
    return function(*(x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else x for x in arguments))


def chosen_cells(library, way: int, masks: np.ndarray, u: np.ndarray) -> np.ndarray:
    shifts = np.uint64(1) << np.arange(SIZE, dtype=np.uint64)
    bits = (masks.reshape(-1, SIZE, SIZE) * shifts).sum(axis=-1, dtype=np.uint64)
    chosen = np.full(len(u), -1, np.int32)
    call(library.choose_bits, len(u), way, bits, u, chosen)
    return chosen


def random_masks(rng: np.random.Generator, round_: int) -> np.ndarray:
    masks = rng.random((BATCH, CELLS)) < rng.random((BATCH, 1)) ** 3
    if round_ % 4 == 1:
        masks[:] = True
    masks[np.arange(BATCH), rng.integers(0, CELLS, BATCH)] = True
    return masks


def near_edges(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """Uniform numbers within two places of where one set cell's share ends and the next one's begins."""
    counts = masks.sum(axis=1)
    edges = 1 - rng.integers(0, counts + 1) / counts
    places = np.round(edges * 2**23).astype(np.int64) + rng.integers(-2, 3, BATCH)
    return (np.clip(places, 0, 2**23 - 1) / 2**23).astype(np.float32)


def reference(weights, u):
    """What jax.random.choice does with the uniform number that it draws."""
    sums = jnp.cumsum(weights)
    return jnp.searchsorted(sums, sums[-1] * (1 - u))


def test_the_draws_of_random_keys(library):
    def choose(key, mask):
        shares = jax.random.choice(key, jnp.arange(CELLS), (1,), p=mask / jnp.sum(mask))[0]
        return shares, jax.random.choice(key, jnp.arange(CELLS), p=mask)

    program = jax.jit(jax.vmap(choose))
    rng = np.random.default_rng(0)
    for round_ in range(ROUNDS):
        masks = random_masks(rng, round_)
        keys = rng.integers(0, 2**32, (BATCH, 2), np.uint32)
        u = np.empty(BATCH, np.float32)
        call(library.uniforms, BATCH, keys, u)
        shares, units = map(np.asarray, program(keys, masks))
        np.testing.assert_array_equal(chosen_cells(library, EQUAL_SHARES, masks, u), shares)
        np.testing.assert_array_equal(chosen_cells(library, EXACTLY, masks, u), shares)
        np.testing.assert_array_equal(chosen_cells(library, UNITS, masks, u), units)


def test_draws_near_the_edges_of_shares(library):
    program = jax.jit(jax.vmap(lambda mask, u: (reference(mask / mask.sum(), u), reference(mask.astype(float), u))))
    rng = np.random.default_rng(1)
    ideal = 0  # how often real numbers give the same cell
    for round_ in range(ROUNDS):
        masks = random_masks(rng, round_)
        u = near_edges(rng, masks)
        shares, units = map(np.asarray, program(masks, u))
        np.testing.assert_array_equal(chosen_cells(library, EQUAL_SHARES, masks, u), shares)
        np.testing.assert_array_equal(chosen_cells(library, EXACTLY, masks, u), shares)
        np.testing.assert_array_equal(chosen_cells(library, UNITS, masks, u), units)
        ranks = np.ceil((1 - u.astype(float)) * masks.sum(axis=1))
        ideal += (np.cumsum(masks, axis=1)[np.arange(BATCH), shares] == ranks).sum()
    assert ideal < 0.98 * ROUNDS * BATCH, "these draws are to be hard: real numbers give other cells"


def test_the_draws_of_those_random_keys_that_fall_nearest_to_an_edge(library):
    def choose(key, mask):
        return jax.random.choice(key, jnp.arange(CELLS), (1,), p=mask / jnp.sum(mask))[0]

    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**32, (2**20, 2), np.uint32)
    u = np.empty(len(keys), np.float32)
    call(library.uniforms, len(keys), keys, u)
    masks = random_masks(rng, 0)[::32]
    nearest, ideal = [], []
    for count in masks.sum(axis=1):
        places = (1 - u).astype(float) * count
        nearest.append(np.argpartition(abs(places - np.rint(places)), 32)[:32])
        ideal.append(np.ceil(places[nearest[-1]]))
    masks, drawn = np.repeat(masks, 32, axis=0), np.concatenate(nearest)
    expected = np.asarray(jax.jit(jax.vmap(choose))(keys[drawn], masks))
    np.testing.assert_array_equal(chosen_cells(library, EQUAL_SHARES, masks, u[drawn]), expected)
    ranks = np.cumsum(masks, axis=1)[np.arange(BATCH), expected]
    assert (ranks == np.concatenate(ideal)).mean() < 0.95, "these draws are to be hard: real numbers give other cells"


@pytest.mark.parametrize("n", [8, 17, 300, CELLS])
def test_any_weights(library, n):
    program = jax.jit(jax.vmap(reference))
    rng = np.random.default_rng(n)
    for _ in range(3):
        weights = (rng.random((BATCH, n)) * (rng.random((BATCH, n)) < 0.5) + 1e-3).astype(np.float32)
        u = (rng.integers(0, 2**23, BATCH) / 2**23).astype(np.float32)
        chosen = np.full(BATCH, -1, np.int32)
        assert call(library.choose_weights, BATCH, n, weights, u, chosen)
        np.testing.assert_array_equal(chosen, np.asarray(program(weights, u)))


def test_without_any_set_cell_the_first_is_drawn(library):
    masks, u = np.zeros((3, CELLS), bool), np.array([0, 0.5, 1 - 2**-23], np.float32)
    expected = jax.jit(jax.vmap(lambda mask, u: reference(mask / mask.sum(), u)))(masks, u)
    for way in (EQUAL_SHARES, UNITS):
        np.testing.assert_array_equal(chosen_cells(library, way, masks, u), np.asarray(expected))
