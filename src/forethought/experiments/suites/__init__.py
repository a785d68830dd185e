"""Suites: every experiment as a list of runs, read from TOML files like those beside this one.

A suite is blocks of runs, each a product of goals, methods, learners, variants and seeds, at a scale that says from
which preset the runs start. A run's directory depends on its scale, goal, learner, method, variant and seed, not on
the suite, so suites share the runs that they have in common.
"""

import itertools
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forethought.config import ConfigError, RunConfig, merge, nearest, parse, read_layer
from forethought.experiments.suites.schema import UNIFORM, Block, Scale, SuiteFile, check_file

__all__ = ["RUN", "SCALES", "SERIES", "SUITES", "UNIFORM", "RunSpec", "Suite", "load_suite"]

_HERE = Path(__file__).parent
_SCALES = "scales"

SUITES: dict[str, Path] = {
    name: _HERE / f"{name}.toml" for name in ("targets", "uniform", "sensitivity", "smoothing", "screening", "tuning")
}
"""The suites that ship with the package, by name."""

SCALES = ("paper", "gpu-hour", "laptop")
"""The scales that every shipped suite has: as published; about an hour a run on a data-centre GPU; minutes a run on
one CPU core."""

RUN = ("group", "learner", "method", "variant", "seed")
"""What tells the runs of a suite apart: fields of `RunSpec`, and columns of every table of runs."""

SERIES = RUN[:-1]
"""What runs have in common that differ in nothing but the seed."""


@dataclass(frozen=True)
class RunSpec:
    """One run of a suite."""

    group: str
    """Id of the goal that counts, or "uniform"."""
    method: str
    """How goals are chosen."""
    learner: str
    """Whether the agent can call its own behaviour for other goals."""
    seed: int
    """Seed; equal seeds are paired across methods, learners and variants."""
    variant: str
    """What differs from the suite's main configuration, such as "L=1"; empty for that itself."""
    config: RunConfig
    """Everything that the run computes."""
    directory: str
    """Where the run lies below a sweep's folder."""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The values of `RUN`."""
        return self.group, self.learner, self.method, self.variant, self.seed


@dataclass(frozen=True)
class Suite:
    """An experiment at one scale."""

    name: str
    source: str
    """What `load_suite` was given: a name, or the path of a file."""
    scale: str
    title: str
    """What the suite is for."""
    about: str
    """What the scale is, in one line."""
    one_core_each: bool
    """Whether a run is meant to have one core, beside others; else it has the machine to itself."""
    runs: tuple[RunSpec, ...]
    """All runs, seed by seed, so that a sweep that is cut off leaves whole comparisons."""

    def command(self, out: str | Path) -> str:
        """The command that makes the runs in a folder, or goes on with them."""
        return f"forethought sweep {self.source} --scale {self.scale} --out {out}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The runs' groups, in order."""
        return tuple(dict.fromkeys(run.group for run in self.runs))

    def select(
        self,
        *,
        groups: Collection[str] = (),
        methods: Collection[str] = (),
        learners: Collection[str] = (),
        variants: Collection[str] = (),
        seeds: Collection[int] = (),
    ) -> "Suite":
        """The suite with some of its runs; an empty collection leaves that part as it is.

        Raises:
            ConfigError: If the suite has no such group, method, learner, variant or seed.
        """
        wanted = {"group": groups, "method": methods, "learner": learners, "variant": variants, "seed": seeds}
        for part, values in wanted.items():
            there = list(dict.fromkeys(getattr(run, part) for run in self.runs))
            for value in values:
                if value not in there:
                    known = ", ".join(str(item) or "''" for item in there)
                    raise ConfigError(f"{part}: {value!r} given; allowed in suite {self.name} are {known}")
        kept = tuple(
            run
            for run in self.runs
            if all(not values or getattr(run, part) in values for part, values in wanted.items())
        )
        return replace(self, runs=kept)


def load_suite(name: str | Path, scale: str = "laptop") -> Suite:
    """Read a suite at a scale.

    Args:
        name: One of `SUITES`, or the path of a TOML file, which may bring scales of its own.
        scale: One of `SCALES`, or of the file's own.

    Raises:
        ConfigError: One line: an unknown suite or scale, or what is wrong in the file.
    """
    path = _path(str(name))
    file = _read(path)
    scales = _read(_HERE / f"{_SCALES}.toml").scales | file.scales
    if scale not in scales:
        raise ConfigError(f"scale: {scale!r} given; allowed are {', '.join(scales)}{nearest(scale, scales)}")
    chosen = scales[scale]
    runs: dict[str, RunSpec] = {}
    for block in file.blocks:
        if block.scales and scale not in block.scales:
            continue
        for run in _runs(path, file, chosen, scale, block):
            before = runs.setdefault(run.directory, run)
            if before != run:
                raise ConfigError(f"{path}: two different runs would lie in {run.directory}")
    _check_names(path, file, scales)
    if not runs:
        raise ConfigError(f"{path}: no runs at scale {scale}")
    ordered = tuple(sorted(runs.values(), key=lambda run: run.seed))
    return Suite(path.stem, str(name), scale, file.title, chosen.about, chosen.one_core_each, ordered)


def _path(name: str) -> Path:
    if name in SUITES:
        return SUITES[name]
    path = Path(name)
    if path.suffix == ".toml" and not path.is_file():
        raise ConfigError(f"suite: there is no file {name}")
    if path.suffix != ".toml":
        raise ConfigError(
            f"suite: {name!r} given; allowed are {', '.join(SUITES)}, or a file.toml{nearest(name, SUITES)}"
        )
    return path


def _read(path: Path) -> SuiteFile:
    try:
        return check_file(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except (ConfigError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _check_names(path: Path, file: SuiteFile, scales: Collection[str]) -> None:
    """Refuse what would be passed over in silence: settings of a scale that is none, and variants of no block."""
    named = {"targets": file.targets, "settings": file.settings}
    named |= {f"blocks.{number}.scales": block.scales for number, block in enumerate(file.blocks)}
    for field, names in named.items():
        for name in names:
            if name not in scales:
                raise ConfigError(
                    f"{path}: {field}: {name!r} given; allowed are {', '.join(scales)}{nearest(name, scales)}"
                )
    used = {variant for block in file.blocks for variant in block.variants}
    for name in file.variants:
        if name not in used:
            raise ConfigError(f"{path}: variants: no block has the variant {name!r}")


def _runs(path: Path, file: SuiteFile, chosen: Scale, scale: str, block: Block) -> Iterator[RunSpec]:
    """The runs of one block: the preset, then settings of the scale, the suite, the variant and the run on top."""
    setup = chosen.uniform if block.over == UNIFORM else chosen.targets
    if setup is None:
        raise ConfigError(f"{path}: scale {scale} says nothing about blocks over {block.over!r}")
    groups = (UNIFORM,) if block.over == UNIFORM else file.targets.get(scale, ())
    if not groups:
        raise ConfigError(f"{path}: targets.{scale}: not set; a block over targets needs their ids")
    base = merge(read_layer(setup.preset), setup.settings)
    base = merge(base, file.settings.get(scale, {}))
    for seed, group, learner, variant, method in itertools.product(
        block.seeds, groups, block.learners, block.variants, block.methods
    ):
        own = {"seed": seed, "method": method, "learner": learner}
        target = None if group == UNIFORM else group
        values = merge(merge(base, _variant(path, file, variant)), own | {"tasks": {"target": target}})
        label = "/".join((group, learner, method, variant))
        try:
            config = parse(_evaluating_target(values, target))
        except ConfigError as error:
            raise ConfigError(f"{path}: run {label} at scale {scale}: {error}") from None
        parts = (scale, group, learner, method, variant, f"seed-{seed}")
        yield RunSpec(group, method, learner, seed, variant, config, "/".join(part for part in parts if part))


def _variant(path: Path, file: SuiteFile, name: str) -> Mapping[str, Any]:
    if not name:
        return {}
    if name not in file.variants:
        raise ConfigError(f"{path}: variant {name!r} is not in the table variants{nearest(name, file.variants)}")
    if not re.fullmatch(r"[A-Za-z0-9.=+_-]+", name):
        raise ConfigError(f"{path}: variant {name!r}: allowed are letters, digits and . = + _ -, as in a file name")
    return file.variants[name]


def _evaluating_target(values: Mapping[str, Any], target: str | None) -> Mapping[str, Any]:
    """The same settings with the target among the evaluated goals, if these are listed."""
    goals = values.get("evaluation", {}).get("goals", ())
    if target is None or not goals or target in goals:
        return values
    return merge(values, {"evaluation": {"goals": [*goals, target]}})
