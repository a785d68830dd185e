"""The processes of one run: how they find each other, and what they tell each other. Alone, all of it does nothing."""

import os
import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import numpy as np

Result = TypeVar("Result")


_LOCAL_NUMBER = ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
"""Where schedulers say which of the processes on its host a process is. Within a job of Slurm, Open MPI starts several
processes in one task, so its number comes first, as in JAX's own detection."""


def join(coordinator: str | None, count: int | None, index: int | None, devices: int = 1) -> None:
    """Meet the other processes of the run; call before anything else touches a device.

    Args:
        coordinator: `HOST:PORT` of the first process, which all can reach; None to learn all three from Slurm,
            Open MPI or the cloud's own service.
        count: Processes of the run.
        index: Number of this process, from 0.
        devices: GPUs of each process. Where a scheduler starts several processes on a host and each sees all of its
            GPUs, each takes its own.

    Raises:
        ValueError: The processes do not find each other, or nothing here tells who they are.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    auto = coordinator is None
    # By itself JAX gives each task of Slurm or Open MPI one GPU alone, even if it has been told who the processes are.
    gpus, detection = (own_gpus(os.environ, devices), None) if auto else (None, "deactivate")
    try:
        jax.distributed.initialize(coordinator, count, index, gpus, detection)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        if auto and "defined" in reason:
            reason = "nothing here tells who they are, as Slurm, Open MPI or a cloud's service would"
        raise ValueError(f"the processes of the run do not find each other: {reason}") from error


def own_gpus(environment: Mapping[str, str], devices: int) -> list[int] | None:
    """Which of the GPUs that a process sees are its own, where processes of one host see the same ones.

    Args:
        environment: The process's.
        devices: GPUs of each process.

    Returns:
        Their numbers, all of them where the scheduler hides the others'; None where none says which of its host's
        processes this is.

    >>> own_gpus({"SLURM_LOCALID": "1"}, 2)
    [2, 3]
    """
    number = next((int(environment[name]) for name in _LOCAL_NUMBER if name in environment), None)
    if number is None:
        return None
    if (seen := environment.get("CUDA_VISIBLE_DEVICES")) is not None:
        given = len([name for name in seen.split(",") if name])
        if given <= devices:
            return list(range(given))
    return list(range(number * devices, (number + 1) * devices))


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
