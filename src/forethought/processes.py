"""The processes of one run: how they find each other, and what they tell each other. Alone, all of it does nothing."""

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

Result = TypeVar("Result")


def join(coordinator: str | None, count: int | None, index: int | None) -> None:
    """Meet the other processes of the run; call before anything else touches a device.

    Args:
        coordinator: `HOST:PORT` of the first process, which all can reach; None to learn all three from Slurm,
            Open MPI or the cloud's own service.
        count: Processes of the run.
        index: Number of this process, from 0.

    Raises:
        ValueError: The processes do not find each other, or nothing here tells who they are.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(coordinator, count, index)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"the processes of the run do not find each other: {str(error).splitlines()[0]}") from error


def is_first() -> bool:
    """Whether this process is the one that writes and reports."""
    return jax.process_index() == 0


def share(value: Result) -> Result:
    """What the first process has, in all of them."""
    if jax.process_count() == 1:
        return value
    from jax.experimental.multihost_utils import broadcast_one_to_all

    data = np.frombuffer(pickle.dumps(value) if is_first() else b"", np.uint8)
    size = int(broadcast_one_to_all(np.int64(len(data))))
    whole = data if is_first() else np.zeros(size, np.uint8)
    return pickle.loads(np.asarray(broadcast_one_to_all(whole)).astype(np.uint8).tobytes())


def on_first(function: Callable[[], Result]) -> Result | None:
    """Call a function in the first process alone.

    Returns:
        Its result there, None elsewhere.

    Raises:
        ValueError: In every process, if the first one's function raises one.
    """
    result, error = None, None
    if is_first():
        try:
            result = function()
        except ValueError as raised:
            error = raised
    told = share(None if error is None else str(error))
    if error is not None:
        raise error
    if told is not None:
        raise ValueError(told)
    return result


def any_says(flag: bool) -> bool:
    """Whether any process says yes; all must ask."""
    return bool(largest(np.array([flag], np.int8))[0])


def largest(array: np.ndarray) -> np.ndarray:
    """The largest of all processes' numbers, place by place; all must give arrays of one shape."""
    if jax.process_count() == 1:
        return array
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(array)).max(0).astype(array.dtype)


def require_same(what: str, value: Any) -> None:
    """See to it that all processes have come to the same result.

    Raises:
        RuntimeError: This one differs from the first.
    """
    if jax.process_count() > 1 and share(value) != value:
        raise RuntimeError(f"process {jax.process_index()} has another {what} than process 0: versions differ?")
