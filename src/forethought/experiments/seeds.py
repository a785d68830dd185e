"""The paired runs of one configuration, side by side in this process."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from forethought.config import ConfigError, RunConfig
from forethought.experiments.claim import Busy, claimed
from forethought.experiments.runs import check_same, in_use, run_state
from forethought.progress import Reporter


def run_seeds(
    config: RunConfig,
    run_dirs: Mapping[int, Path],
    *,
    reporter: Reporter | None = None,
    argv: Sequence[str] | None = None,
    devices: int = 1,
) -> bool:
    """Bring the runs of some seeds to their ends: begin them, go on with them, and leave those that are done.

    Call it again after an interruption.

    Args:
        config: The runs, but for the seed.
        run_dirs: Where, by seed.
        reporter: Shows the course of the runs.
        argv: The command line, for the record.
        devices: Devices that share the seeds; of those, as many as divide the number of seeds that are left.

    Returns:
        Whether all are done; False if a signal has cut them off. What they did by then is saved.

    Raises:
        ConfigError: If a directory holds another run.
        Busy: If another process is at work on one of them; nothing is begun then.
        ValueError: As `forethought.training.train_seeds` does.
    """
    config = as_begun(config, run_dirs)
    with ExitStack() as claims:
        for path in run_dirs.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            claims.enter_context(claimed(path))
        left = {seed: path for seed, path in run_dirs.items() if not run_state(path, config.iterations).done}
        for path in left.values():
            if path.exists() and (reason := in_use(path)):
                raise Busy(reason)
        if not left:
            return True
        from forethought.training import train_seeds

        share = max(count for count in range(1, devices + 1) if len(left) % count == 0)
        results = train_seeds(config, left, reporter=reporter, argv=argv, devices=share)
        return not any(result.interrupted for result in results.values())


def as_begun(config: RunConfig, run_dirs: Mapping[int, Path]) -> RunConfig:
    """The configuration with the backend that runs have begun with.

    Raises:
        ConfigError: If a directory holds another run, or they began with both.
        ValueError: If something else lies there.
    """
    begun = {
        check_same(path, config.model_copy(update={"seed": seed})).environment.backend
        for seed, path in run_dirs.items()
        if path.exists()
    }
    if len(begun) > 1:
        raise ConfigError("environment.backend: the runs of these seeds began with both; side by side they have one")
    environment = config.environment.model_copy(
        update={"backend": begun.pop() if begun else config.environment.backend}
    )
    return config.model_copy(update={"environment": environment})
