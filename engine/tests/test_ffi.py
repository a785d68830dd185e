"""The engine inside JAX programs: the same as through NumPy, pure, and errors instead of crashes."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import craftax_native
from craftax_native import _core, ffi

N, LIMIT, CAPACITY = 21, 9, 30
# Codes of: have one wood, and be on floor 8.
GOALS = np.array([[0, 0, 1, 255], [0, 21, 8, 255]], np.uint8)


def keys(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (count, 2), dtype=np.uint32)


def started(start: str) -> np.ndarray:
    state = _core.new_state(N, GOALS, LIMIT, CAPACITY)
    getattr(_core, start)(state, keys(N), np.arange(N, dtype=np.int32) % 2, *craftax_native.new_observations(N))
    return state


def actions(steps: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 43, (steps, N), dtype=np.int32)


@pytest.mark.parametrize("donate", [False, True])
def test_a_program_does_what_numpy_does(donate):
    step = jax.jit(ffi.step, static_argnames="threads", donate_argnums=0 if donate else ())
    enqueue = jax.jit(ffi.enqueue, donate_argnums=0 if donate else ())
    expected = started("begin")
    state = jax.numpy.array(expected)
    seen, flags = craftax_native.new_observations(N), np.zeros((3, N), bool)
    for time, chosen in enumerate(actions(4 * LIMIT)):
        if time % 10 == 0:
            more = keys(8, seed=time), np.arange(8, dtype=np.int32) % 2
            state = enqueue(state, *more)
            _core.enqueue(expected, *more)
        before, given = (state, np.array(state)) if not donate else (None, None)
        state, *results = step(state, chosen, threads=2)
        if not donate:
            np.testing.assert_array_equal(before, given)
        _core.step(expected, chosen, *seen, *flags)
        np.testing.assert_array_equal(state, expected)
        for got, wanted in zip(results, (*seen, *flags), strict=True):
            np.testing.assert_array_equal(got, wanted)
        for got, wanted in zip(ffi.assignment(state, N), _core.assignment(expected), strict=True):
            np.testing.assert_array_equal(got, wanted)
    counts = {name: float(value) for name, value in ffi.counts(state).items()}
    assert counts == _core.counts(expected)
    assert counts["episodes"] > N


def test_counts_have_the_same_names():
    assert tuple(_core.counts(started("reset"))) == ffi.COUNTS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ffi.step(started("reset"), actions(1)[0] + 43), "actions contain .*, but must be from 0 to 42"),
        (lambda: ffi.step(started("reset"), actions(1)[0], threads=0), "threads is 0, but must be from 1 to 1024"),
        (lambda: ffi.step(started("reset"), actions(1)[0, :5]), "actions has 5 elements, but must have 21"),
        (lambda: ffi.step(started("reset")[:-64], actions(1)[0]), "it is not whole"),
        (lambda: ffi.step(_core.new_state(N, GOALS), actions(1)[0]), "state holds plain games"),
        (lambda: ffi.step(started("reset"), actions(1)), r"actions is int32\[1, 21\], but must be int32 of 1 axes"),
        (lambda: ffi.step(started("reset"), actions(1)[0].astype(float)), r"actions is float64\[21\]"),
        (lambda: ffi.step(np.zeros(0, np.uint8), actions(1)[0]), r"state is uint8\[0\], but must be .* not empty"),
        (
            lambda: ffi.enqueue(started("begin"), keys(1).view(np.int32), np.zeros(1, np.int32)),
            r"keys is int32\[1, 2\]",
        ),
        (lambda: ffi.enqueue(started("reset"), keys(1), np.zeros(1, np.int32)), r"queued after begin\(\)"),
        (lambda: ffi.enqueue(started("begin"), keys(1), np.full(1, 2, np.int32)), "goals contain 2, but must be from"),
        (lambda: ffi.enqueue(started("begin"), keys(31), np.zeros(31, np.int32)), "no room for 31 episodes"),
        (lambda: ffi.enqueue(started("begin"), keys(3), np.zeros(2, np.int32)), "keys has 6 elements, but must have 4"),
        (lambda: ffi.assignment(started("begin"), N + 1), "goal has 22 elements, but must have 21"),
        (lambda: ffi.counts(np.zeros(4096, np.uint8)), r"it was not made by new_state\(\)"),
        (lambda: ffi.counts(np.zeros(5, np.uint8)), "it is too short to be one"),
    ],
)
def test_what_cannot_be_is_an_error_of_the_program(call, message):
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=message):
        jax.block_until_ready(call())


def test_without_the_part_for_xla_one_line_says_how_to_get_it():
    code = "from craftax_native import _core; del _core.ffi_targets; import craftax_native.ffi"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: craftax_native was built without jaxlib")
