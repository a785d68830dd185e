"""What a suite's TOML file may say."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forethought.config import ConfigError, Method

UNIFORM = "uniform"
"""The group of the runs in which all goals count the same."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Setup(_Table):
    """Where the runs of a scale start from."""

    preset: str
    """A preset of the package or a TOML file."""
    settings: dict[str, Any] = {}
    """Tables of settings laid on top."""


class Scale(_Table):
    """How large the runs are."""

    about: str
    """One line for people."""
    one_core_each: bool = False
    """Whether runs share the machine, one core each; else one runs at a time, on all of it."""
    targets: Setup | None = None
    """Runs in which one goal counts."""
    uniform: Setup | None = None
    """Runs in which all goals count."""


class Block(_Table):
    """A product of runs."""

    over: Literal["targets", "uniform"]
    """Each target of the scale, or all goals alike."""
    methods: tuple[Method, ...] = Field(min_length=1)
    learners: tuple[Literal["primitive", "subroutines"], ...] = ("primitive",)
    variants: tuple[str, ...] = ("",)
    """Names in the file's table of variants; the empty one changes nothing."""
    seeds: tuple[int, ...] = Field(min_length=1)
    scales: tuple[str, ...] = ()
    """The scales that have this block; empty: all."""


class SuiteFile(_Table):
    """A whole file."""

    title: str = ""
    targets: dict[str, tuple[str, ...]] = {}
    """Ids of the goals that count, one after another, by scale."""
    settings: dict[str, dict[str, Any]] = {}
    """Settings of all the suite's runs, by scale."""
    variants: dict[str, dict[str, Any]] = {}
    """Settings by the name of a variant."""
    blocks: tuple[Block, ...] = ()
    scales: dict[str, Scale] = {}


def check_file(values: Mapping[str, Any]) -> SuiteFile:
    """Check the content of a file; raises `ConfigError` with one line that names the field."""
    try:
        return SuiteFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"{name}: no such field") from None
        if first["type"] == "missing":
            raise ConfigError(f"{name}: not set, but needed") from None
        allowed = first["msg"].removeprefix("Input should be ")
        raise ConfigError(f"{name}: {first['input']!r} given; allowed is {allowed}") from None
