"""One run of an experiment, whatever starts it: `run_one` brings it to its end from wherever it stands.

Beside the directory of a run lie its plan, `<name>.toml`, which is the configuration that a new run begins with, its
log, `<name>.log`, which a sweep writes, and, while a process is at work on it, its lock, `<name>.lock` (see
`forethought.experiments.claim`). As a program, `python -m forethought.experiments.runs RUN_DIR` does what `run_one`
does and ends with 0 for done, 2 for bad input, 75 for in use by another process and 85 for cut off.
"""

import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forethought import checkpoint
from forethought.config import ConfigError, RunConfig, load_config
from forethought.experiments.claim import Busy, claim_on, claimed
from forethought.rundir import CONFIG, RunDirectory

INTERRUPTED = 85
"""Exit code of a run that was told to stop, and has saved what it did."""

BUSY = 75
"""Exit code where another process is at work on the run."""

_FREE = {"device", "sinks", "checkpoint_minutes"}
"""Settings that do not change what a run computes."""


@dataclass(frozen=True)
class RunState:
    """How far a run is."""

    begun: bool
    """Whether it has a directory."""
    iteration: int
    """Iterations that are saved: where it would go on."""
    done: bool
    """Whether its last evaluation is recorded."""


def run_one(run_dir: str | Path, job: str | None = None) -> bool:
    """Bring a run to its end: begin it from its plan, or go on with it; return at once if it is done.

    Args:
        run_dir: Directory of the run; if there is none yet, its plan must lie beside it.
        job: What a scheduler calls this, if it calls further attempts of the same by the same name.

    Returns:
        Whether the run is done; False if a signal has cut it off. What it did by then is saved.

    Raises:
        ConfigError: If there is neither a run nor a plan, or it asks for what is not there.
        Busy: If another process is at work on the run.
    """
    path = Path(run_dir)
    if _look(path)[2]:
        return True
    with claimed(path, job):
        # Whoever had it before may have come to its end meanwhile.
        config, begun, done = _look(path)
        if done:
            return True
        if begun and (reason := in_use(path)):
            raise Busy(reason)

        from forethought.devices import prepare

        prepare(config.device)
        from forethought.training import train

        # For the record, the command that would do this by hand; schedulers start processes with words of their own.
        argv = ["python", "-m", "forethought.experiments.runs", str(path)]
        return not train(config, path, resume=begun, argv=argv).interrupted


def _look(path: Path) -> tuple[RunConfig, bool, bool]:
    """A run's configuration, whether it has begun, and whether it is done."""
    begun = path.exists()
    source = RunDirectory(path).path / CONFIG if begun else plan_path(path)
    if not source.is_file():
        raise ConfigError(f"{path}: neither a run nor a plan for one ({source.name} beside it)")
    config = load_config(source)
    return config, begun, run_state(path, config.iterations).done


def in_use(run_dir: str | Path) -> str | None:
    """Which other process is at work on a run, in one line; None if none is, or it is this one."""
    path = Path(run_dir)
    found = claim_on(path)
    if found is not None and not found.void and not found.mine:
        return f"run {path} is in use by {found}"
    if not path.exists():
        return None
    # A run that was begun by hand has no claim; it has its own lock, which processes on one machine see.
    try:
        with RunDirectory(path).locked():
            return None
    except ValueError as error:
        return str(error)


def run_state(run_dir: str | Path, iterations: int) -> RunState:
    """How far a run of so many iterations is.

    Raises:
        ValueError: If something else lies there.
    """
    path = Path(run_dir)
    if not path.exists():
        return RunState(begun=False, iteration=0, done=False)
    run = RunDirectory(path)
    saved = checkpoint.iterations(run.checkpoints)
    return RunState(begun=True, iteration=saved[-1] if saved else 0, done=iterations in run.evaluated())


def plan_path(run_dir: str | Path) -> Path:
    """Where the plan of a run lies."""
    path = Path(run_dir)
    return path.with_name(f"{path.name}.toml")


def log_path(run_dir: str | Path) -> Path:
    """Where a sweep writes what a run says."""
    path = Path(run_dir)
    return path.with_name(f"{path.name}.log")


def write_plan(run_dir: str | Path, config: RunConfig) -> None:
    """Write down what a run that has not begun will be; several schedulers may do so at once."""
    path, text = plan_path(run_dir), config.to_toml()
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def check_same(run_dir: str | Path, config: RunConfig) -> RunConfig:
    """The configuration of an existing run, which must compute what `config` asks for.

    Where `config` leaves it open what plays the game, the run may have chosen either.

    Raises:
        ConfigError: If they differ; the message names the first setting that does.
        ValueError: If no run lies there.
    """
    path = RunDirectory(run_dir).path / CONFIG
    there = load_config(path)
    if config.environment.backend == "auto":
        chosen = config.environment.model_copy(update={"backend": there.environment.backend})
        config = config.model_copy(update={"environment": chosen})
    if (there.digest, there.seed) == (config.digest, config.seed):
        return there
    ours, theirs = (_flat(each.model_dump(mode="json", exclude=_FREE)) for each in (config, there))
    name = next(name for name in ours if ours[name] != theirs[name])
    raise ConfigError(
        f"{path.parent} holds another run: {name} is {theirs[name]!r} there and {ours[name]!r} is asked for; "
        "name another folder, or move that run away"
    )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def main(arguments: Sequence[str]) -> int:
    """`run_one` as a program; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m forethought.experiments.runs RUN_DIR", file=sys.stderr)
        return 2
    try:
        return 0 if run_one(arguments[0]) else INTERRUPTED
    except (ConfigError, Busy) as error:
        print(f"error: {error}", file=sys.stderr)
        return BUSY if isinstance(error, Busy) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
