"""`forethought train`: one run, or several that differ in the seed; new or continued."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forethought.cli.errors import UsageError, bad_input, one_line

if TYPE_CHECKING:
    from forethought.config import RunConfig

HELP = """usage: forethought train PRESET|FILE.toml ... [--out DIR] [--dry-run] [--SECTION.FIELD VALUE ...]
       forethought train PRESET|FILE.toml ... --seeds SEED SEED ... [--devices N] ...
       forethought train RUNDIR [--devices N] ...

Train an agent. Presets ({presets}) and TOML files are laid on top of
each other from left to right, flags come last. With the directory of a run that was interrupted, continue
that run exactly.

  forethought train laptop
  forethought train paper-target --tasks.target place_furnace --embeddings minilm --seed 3
  forethought train paper my.toml --out runs/mine
  forethought train runs/mine

  --env KIND       what plays Craftax: engine, jax, or auto for the engine if it is installed
  --out DIR        where the results go; must not exist (default: runs/<name>-<hash>-s<seed>)
  --dry-run        print the resolved configuration as TOML and stop

  --seeds S S ...  runs that differ in the seed, side by side in one program; those of a device take turns. Each has
                   a directory of its own (--out DIR: DIR/seed-S) like a run of one seed; the same command goes on
                   with them. --devices must divide the number of seeds.

What computes it, for a new or a continued run; up to rounding the result does not depend on it:

  --devices N      devices of each process that share the run (default: 1)
  --processes N    start the command N times, on one host or several, each with its own --process I (from 0) and
                   with --coordinator HOST:PORT of process 0; or once a task with --processes auto under Slurm or
                   Open MPI

Exit codes: 0 done, 2 bad input, 85 interrupted with everything saved (SIGINT, SIGTERM, SIGUSR1, SIGUSR2).
"""

INTERRUPTED = 85
"""Exit code of a run that was told to stop and has saved a checkpoint to continue from."""

MACHINE = ("devices", "processes", "process", "coordinator")
"""Flags that say what computes a run; no part of its configuration."""

STOPPED = 130
"""Exit code after a second Ctrl-C, as shells have it."""


@dataclass(frozen=True)
class Machine:
    """What computes a run."""

    devices: int = 1
    processes: str = "1"
    process: int | None = None
    coordinator: str | None = None

    def join(self) -> None:
        """Find the other processes.

        Raises:
            ValueError: A number is missing, or they do not find each other.
        """
        from forethought import processes

        if self.processes == "1":
            return
        if self.processes == "auto":
            processes.join(None, None, None, self.devices)
            return
        count = _whole("processes", self.processes, 1)
        if self.coordinator is None or self.process is None or self.process >= count:
            raise ValueError(
                f"--processes {count} needs --coordinator HOST:PORT and --process from 0 to {count - 1}, "
                f"got {self.coordinator} and {self.process}"
            )
        processes.join(self.coordinator, count, self.process, self.devices)


def command(arguments: Sequence[str]) -> int:
    """Run `forethought train`."""
    from forethought.cli.parsing import split_settings
    from forethought.config import field_types

    if not arguments or {"-h", "--help"} & set(arguments):
        return _help(arguments)
    own = {"out": str, "dry_run": bool, "env": str, "seeds": tuple[str, ...]}
    fields = field_types() | own | dict.fromkeys(MACHINE, str)
    layers, settings = split_settings(arguments, fields)
    if "env" in settings:
        settings["environment.backend"] = settings.pop("env")
    machine = _machine({name: settings.pop(name) for name in MACHINE if name in settings})
    out, dry_run = settings.pop("out", None), settings.pop("dry_run", False)
    seeds = _seeds(settings.pop("seeds"), settings, machine) if "seeds" in settings else None
    if not layers:
        raise UsageError("name a preset, a TOML file or the directory of a run (see forethought train --help)")
    directories = [layer for layer in layers if Path(layer).is_dir()]
    if directories:
        given = {"out": out, "seeds": seeds, "dry_run": dry_run or None}
        extra = [*layers[1:], *settings, *(name for name, value in given.items() if value is not None)]
        return _continue(directories[0], extra, machine)
    with bad_input():
        configs = [_resolve(layers, settings | {"seed": seed}) for seed in seeds or ()]
        config = configs[0] if configs else _resolve(layers, settings)
    if dry_run:
        print(config.to_toml(), end="")
        return 0
    if configs:
        places = [Path(out) / f"seed-{each.seed}" if out else default_directory(each, layers[-1]) for each in configs]
        return _start_seeds(config, {each.seed: path for each, path in zip(configs, places, strict=True)}, machine)
    return start(config, Path(out) if out else default_directory(config, layers[-1]), machine=machine)


def start(
    config: "RunConfig",
    directory: Path,
    *,
    resume: bool = False,
    machine: Machine = Machine(),
) -> int:
    """Check everything that can be checked, then train.

    Returns:
        The exit code.

    Raises:
        UsageError: for what is wrong with the input; nothing has been written then.
    """
    with bad_input():
        from forethought.devices import prepare
        from forethought.domains import choose_backend, load_domain
        from forethought.rundir import check_new

        if not resume and not machine.process:
            check_new(directory)
        config = choose_backend(config)
        load_domain(config)
        prepare(config.device, machine.devices, join=machine.join)
    from forethought.training import train

    def run(reporter: Any) -> bool:
        result = train(config, directory, resume=resume, reporter=reporter, argv=sys.argv, devices=machine.devices)
        return not result.interrupted

    return _finished(run, f"forethought train {directory}")


def _start_seeds(config: "RunConfig", run_dirs: dict[int, Path], machine: Machine) -> int:
    """The same for the runs of some seeds, side by side."""
    from forethought.experiments.seeds import as_begun, run_seeds

    with bad_input():
        from forethought.devices import prepare
        from forethought.domains import choose_backend, load_domain

        config = choose_backend(as_begun(config, run_dirs))
        load_domain(config)
        prepare(config.device, machine.devices)

    def run(reporter: Any) -> bool:
        return run_seeds(config, run_dirs, reporter=reporter, argv=sys.argv, devices=machine.devices)

    return _finished(run, "the same command")


def _finished(run: Callable[[Any], bool], again: str) -> int:
    """The exit code of training: `run` takes a reporter and says whether it came to the end."""
    from forethought.progress import make_reporter

    reporter = _Noticing(make_reporter())
    try:
        return 0 if run(reporter) else INTERRUPTED
    except ValueError as error:
        # Until the run has started, whatever is wrong is wrong with what the caller asked for.
        if reporter.started:
            raise
        raise UsageError(one_line(str(error))) from error
    except KeyboardInterrupt:
        print(f"stopped at once; continue with: {again}", file=sys.stderr)
        return STOPPED


def default_directory(config: "RunConfig", layer: str) -> Path:
    """`runs/<name>-<hash>-s<seed>` below the current directory."""
    return Path("runs") / f"{Path(layer).stem}-{config.digest[:8]}-s{config.seed}"


def _resolve(layers: Sequence[str], settings: dict[str, Any]) -> "RunConfig":
    from forethought.config import load_config

    return load_config(*layers, overrides=settings)


def _continue(directory: str, extra: list[str], machine: Machine) -> int:
    from forethought.config import load_config
    from forethought.rundir import CONFIG, RunDirectory

    if extra:
        raise UsageError(f"{directory} is a run to continue, which takes nothing else; got {', '.join(extra)}")
    with bad_input():
        run = RunDirectory(directory)
        config = load_config(run.path / CONFIG)
    return start(config, run.path, resume=True, machine=machine)


def _machine(words: dict[str, str]) -> Machine:
    """The flags of `MACHINE`, checked one by one."""
    devices = _whole("devices", words.get("devices", "1"), 1)
    process = words.get("process")
    number = None if process is None else _whole("process", process, 0)
    return Machine(devices, words.get("processes", "1"), number, words.get("coordinator"))


def _seeds(words: Sequence[str], settings: dict[str, Any], machine: Machine) -> list[int]:
    """The numbers after `--seeds`, checked."""
    seeds = [_whole("seeds", word, 0) for word in words]
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f"--seeds: {' '.join(words) or 'nothing'} given; allowed are numbers, none of them twice")
    if "seed" in settings:
        raise UsageError("--seed: given with --seeds; allowed is one of them")
    if machine.processes != "1":
        raise UsageError("--processes: given with --seeds; seeds side by side are trained by one process")
    if len(seeds) % machine.devices:
        raise UsageError(f"--devices: {machine.devices} given; allowed is a divisor of the {len(seeds)} seeds")
    return seeds


def _whole(name: str, word: str, least: int) -> int:
    if not word.isdecimal() or int(word) < least:
        raise UsageError(f"--{name}: {word!r} given; allowed is a whole number from {least} on")
    return int(word)


def _help(arguments: Sequence[str]) -> int:
    """The usage, then every setting with the value it has in the presets or files named."""
    import tyro

    from forethought.config import PRESETS, ConfigError, RunConfig, load_config

    print(HELP.format(presets=", ".join(PRESETS)))
    layers = [word for word in arguments if not word.startswith("-")]
    try:
        config = load_config(*layers)
    except ConfigError:
        config = RunConfig()
    shown = f"as in {' '.join(layers)}" if layers else "the paper's"
    description = f"Every setting, with its default ({shown})."
    with contextlib.suppress(SystemExit):
        tyro.cli(RunConfig, args=["--help"], default=config, prog="forethought train", description=description)
    return 0


class _Noticing:
    """A reporter that remembers whether the run has started."""

    def __init__(self, reporter: Any):
        self._reporter = reporter
        self.started = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reporter, name)

    def start(self, iterations: int, done: int, device: str) -> None:
        self._reporter.start(iterations, done, device)
        self.started = True
