"""Optional places that metrics are copied to; a run contacts none that its configuration does not name."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Sink(Protocol):
    """Takes a copy of every iteration's metrics."""

    def log(self, steps: int, scalars: Mapping[str, float]) -> None:
        """Take one iteration's finite numbers at `steps` environment steps."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class _WeightsAndBiases:
    """Weights & Biases, online or offline as its own environment variables say."""

    module = "wandb"

    def __init__(self, path: Path, config: Mapping[str, Any], run_id: str):
        from importlib import import_module

        self._run = import_module(self.module).init(
            project="forethought",
            name=path.name,
            dir=str(path),
            config=dict(config),
            id=run_id,
            resume="allow",
            reinit="create_new",  # Runs of several seeds are in one process; by itself it would give all the first one.
        )

    def log(self, steps: int, scalars: Mapping[str, float]) -> None:
        self._run.log(dict(scalars), step=steps)

    def close(self) -> None:
        self._run.finish()


class _TensorBoard:
    module = "tensorboardX"

    def __init__(self, path: Path, config: Mapping[str, Any], run_id: str):
        from importlib import import_module

        self._writer = import_module(self.module).SummaryWriter(str(path / "tensorboard"))

    def log(self, steps: int, scalars: Mapping[str, float]) -> None:
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, steps)

    def close(self) -> None:
        self._writer.close()


SINKS: dict[str, type[_WeightsAndBiases] | type[_TensorBoard]] = {
    "wandb": _WeightsAndBiases,
    "tensorboard": _TensorBoard,
}
_INSTALL = {"wandb": "'forethought[wandb]'", "tensorboard": "'forethought[tensorboard]'"}


def check_sinks(names: Sequence[str]) -> None:
    """Refuse names that are unknown or whose package is missing, without importing any.

    Raises:
        ValueError: Naming the sink and what is allowed, or the command that brings the package.
    """
    for name in names:
        if name not in SINKS:
            raise ValueError(f"sinks: unknown sink {name!r}; allowed are {', '.join(SINKS)}")
        if find_spec(SINKS[name].module) is None:
            raise ValueError(
                f"sinks: {name} needs the package {SINKS[name].module}, which is not installed;"
                f" pip install {_INSTALL[name]}"
            )


def open_sinks(names: Sequence[str], path: Path, config: Mapping[str, Any], run_id: str) -> list[Sink]:
    """Open the sinks named.

    Args:
        names: Keys of `SINKS`.
        path: The run directory.
        config: The run's configuration.
        run_id: The same for a run and its continuations.

    Raises:
        ValueError: As `check_sinks`.
    """
    check_sinks(names)
    return [SINKS[name](path, config, run_id) for name in names]
