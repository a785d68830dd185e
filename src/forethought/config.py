"""What a run is: one frozen `RunConfig`, read from presets, TOML files and flags, and checked as a whole.

The defaults are the paper's uniform-weight experiment (paper, Sections 5.2, A, C.2 to C.5 and D).
"""

import difflib
import hashlib
import json
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from forethought.curriculum.config import CurriculumConfig
from forethought.learner.config import NetworkConfig, PPOConfig

Method = Literal[
    "unif",
    "target",
    "i-diff",
    "alp",
    "alp+d",
    "alp+f",
    "alp+d+f",
    "perm",
    "learnability",
    "plr",
    "mastering-rate",
    "thompson",
    "omni",
]

PRESETS: dict[str, Path] = {
    name: Path(__file__).parent / "presets" / f"{name}.toml"
    for name in ("paper", "paper-target", "laptop", "demo", "toy")
}
"""The configurations that ship with the package, by name."""


DOMAIN = re.compile(r"craftax|toy|[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""What `tasks.domain` can be."""


class ConfigError(ValueError):
    """A configuration that cannot run; the message, one line, names field, value and what is allowed."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TasksConfig(_Section):
    """Which goals there are and how a curriculum iteration spreads over them."""

    domain: str = "craftax"
    """The world that the goals belong to: `craftax`, `toy`, or `module:function` for one of your own."""
    goals: tuple[str, ...] = ()
    """Ids of the goals to train on, in this order; empty: all of the domain."""
    own_goals: str | None = None
    """A Python file with goals of your own for Craftax, see `forethought.craftax.own_goals`; unset: none."""
    target: str | None = None
    """The goal that counts; unset: all goals count the same."""
    target_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the importance weight on the target, the rest equal over the other goals (paper, E.2)."""
    goals_per_iteration: int = Field(default=64, ge=1)
    """Goals drawn at each curriculum decision, with replacement."""
    fixed_target_slots: int = Field(default=4, ge=0)
    """How many of those draws are always the target, if there is one; method `target` needs none."""


class EnvironmentConfig(_Section):
    """How many worlds step together, and for how long."""

    envs_per_goal: int = Field(default=8, ge=1)
    """Parallel environments for each drawn goal."""
    episode_limit: int = Field(default=4096, ge=1)
    """Steps after which an episode ends."""
    steps_per_iteration: int = Field(default=4096, ge=1)
    """Steps of each environment in one curriculum iteration; a multiple of ppo.rollout_length."""
    pool_size: int = Field(default=0, ge=0)
    """Fresh worlds kept ready; 0: chosen by the environment."""
    backend: Literal["auto", "engine", "jax"] = "auto"
    """What plays Craftax: the fast engine (the package craftax-native) or JAX; `auto` takes the engine if it is there,
    and a run keeps what it began with."""


class EvaluationConfig(_Section):
    """When and how the agent is measured; also done before the first iteration and after the last."""

    every: int = Field(default=30, ge=1)
    """Iterations between evaluations."""
    episodes: int = Field(default=128, ge=1)
    """Episodes per goal."""
    num_envs: int = Field(default=4096, ge=1)
    """Environments that evaluate together."""
    goals: tuple[str, ...] = ()
    """Ids of the goals to evaluate; empty: all that are trained on."""
    chunk: int = Field(default=128, ge=1)
    """Steps between two refills of the episode queue."""


class RunConfig(_Section):
    """Everything that decides what a training run computes."""

    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of every random choice of the run."""
    iterations: int = Field(default=1440, ge=1)
    """Curriculum iterations."""
    method: Method = "alp+d+f"
    """How goals are chosen (paper, Section 5.2 and Appendix D; after `perm`, methods of others for comparison)."""
    learner: Literal["primitive", "subroutines"] = "primitive"
    """Whether the agent acts by the environment's actions alone, or can also call its own behaviour for other goals
    (paper, C.4); the graphs that ship were judged for either."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to compute; `gpu` fails where there is none."""
    embeddings: str = "minilm"
    """Goal vectors: `minilm` for those that ship with the domain, or a file made by `forethought embed`."""
    connectivity: str = "shipped"
    """The learning-connectivity graph: `shipped` for the domain's own, or a file made by `forethought judge build`."""
    feasibility: str = "shipped"
    """The same for the feasibility-evidence graph."""
    interestingness: str | None = None
    """A file with a graph of which mastered goals make which others boring, for the method `omni`; none ships."""
    checkpoint_minutes: float = Field(default=5.0, ge=0)
    """Minutes between checkpoints; 0: after every iteration."""
    sinks: tuple[Literal["wandb", "tensorboard", "trackio"], ...] = ()
    """Trackers that get the metrics too; none is contacted unasked."""
    tasks: TasksConfig = TasksConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    network: NetworkConfig = NetworkConfig()
    ppo: PPOConfig = PPOConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @property
    def num_envs(self) -> int:
        """Environments that train together."""
        return self.tasks.goals_per_iteration * self.environment.envs_per_goal

    @property
    def updates_per_iteration(self) -> int:
        """PPO updates in one curriculum iteration."""
        return self.environment.steps_per_iteration // self.ppo.rollout_length

    @property
    def steps_per_iteration_total(self) -> int:
        """Environment steps of one curriculum iteration, over all environments."""
        return self.num_envs * self.environment.steps_per_iteration

    @property
    def fixed_selections(self) -> dict[str, int]:
        """Goals that every decision draws, with their number of draws (paper, Section 5.2)."""
        if self.tasks.target is None or self.method == "target" or not self.tasks.fixed_target_slots:
            return {}
        return {self.tasks.target: self.tasks.fixed_target_slots}

    @property
    def digest(self) -> str:
        """Hash (hex) of what the run computes, whatever its seed, device, trackers and checkpoint times."""
        content = self.model_dump(mode="json", exclude={"seed", "device", "sinks", "checkpoint_minutes"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_toml(self) -> str:
        """The whole configuration, defaults included; reading it again gives an equal one."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))

    @model_validator(mode="after")
    def _check_together(self) -> "RunConfig":
        tasks, environment, ppo = self.tasks, self.environment, self.ppo
        if not DOMAIN.fullmatch(tasks.domain):
            raise ValueError(
                f"tasks.domain: {tasks.domain!r} given; allowed are craftax, toy, and module:function for your own"
            )
        if tasks.target == "":
            raise ValueError("tasks.target: not set; name a goal, as in --tasks.target place_furnace")
        if self.method == "target" and tasks.target is None:
            raise ValueError("tasks.target: not set; method 'target' needs the id of a goal")
        if self.method == "omni" and self.interestingness is None:
            raise ValueError("interestingness: not set; method 'omni' needs the file of such a graph")
        for field, ids in (("tasks.goals", tasks.goals), ("evaluation.goals", self.evaluation.goals)):
            if repeated := sorted({goal for goal in ids if ids.count(goal) > 1}):
                raise ValueError(f"{field}: {', '.join(repeated)} given more than once; allowed once")
        if tasks.own_goals is not None and tasks.domain != "craftax":
            raise ValueError(f"tasks.own_goals: {tasks.own_goals!r} given, but goals of your own are Craftax's")
        if tasks.goals:
            _require_known("tasks.target", (tasks.target,) if tasks.target else (), tasks.goals)
            _require_known("evaluation.goals", self.evaluation.goals, tasks.goals)
        if self.fixed_selections and tasks.fixed_target_slots > tasks.goals_per_iteration:
            raise ValueError(
                f"tasks.fixed_target_slots: {tasks.fixed_target_slots} given, allowed at most "
                f"tasks.goals_per_iteration = {tasks.goals_per_iteration}"
            )
        if self.num_envs % ppo.minibatches:
            raise ValueError(
                f"ppo.minibatches: {ppo.minibatches} given, allowed is a divisor of the {self.num_envs} "
                f"environments (tasks.goals_per_iteration x environment.envs_per_goal)"
            )
        if environment.steps_per_iteration % ppo.rollout_length:
            raise ValueError(
                f"environment.steps_per_iteration: {environment.steps_per_iteration} given, "
                f"allowed is a multiple of ppo.rollout_length = {ppo.rollout_length}"
            )
        return self


def load_config(*layers: str | Path, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """Read presets and TOML files, later ones on top of earlier ones, then `overrides`, and check the result.

    Args:
        *layers: names of `PRESETS` or paths of TOML files.
        overrides: values by dotted field name, such as `{"ppo.minibatches": 4}`.

    Raises:
        ConfigError: one line that names the field, the value and what is allowed.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        values = merge(values, read_layer(layer))
    for name, value in (overrides or {}).items():
        nested: Any = value
        for part in reversed(name.split(".")):
            nested = {part: nested}
        values = merge(values, nested)
    return parse(values)


def read_layer(layer: str | Path) -> dict[str, Any]:
    """The content of a preset or a TOML file."""
    path = PRESETS.get(str(layer), Path(layer))
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        near = nearest(str(layer), PRESETS)
        raise ConfigError(f"{layer}: no such file; presets are {', '.join(PRESETS)}{near}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `top` on it, table by table."""
    merged = dict(base)
    for name, value in top.items():
        below = merged.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[name] = merge(below, value) if both else value  # pyright: ignore[reportArgumentType]
    return merged


def parse(values: Mapping[str, Any]) -> RunConfig:
    """Check nested values; raises `ConfigError` with one line."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(describe(error)) from None


def describe(error: ValidationError) -> str:
    """The first thing wrong, in one line: field, value, what is allowed."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{name}: no such field{nearest(name, field_types())}"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if not name or message.startswith(f"{name}:"):
        return message
    # What a section checks as a whole starts with the name of the field.
    if isinstance(first["input"], Mapping | BaseModel):
        return f"{name}.{message}"
    allowed = message.removeprefix("Input should be ")
    return f"{name}: {first['input']!r} given; allowed is {allowed}"


def nearest(name: str, names: Any) -> str:
    """A hint at the nearest of `names`, or nothing."""
    last = {candidate.rsplit(".", 1)[-1]: candidate for candidate in names}
    close = difflib.get_close_matches(name, list(names), 1, 0.7)
    close = close or [last[c] for c in difflib.get_close_matches(name.rsplit(".", 1)[-1], last, 1, 0.6)]
    return f" (did you mean {close[0]}?)" if close else ""


def field_types() -> dict[str, Any]:
    """The type of every single setting, by dotted name."""
    return dict(_leaves(RunConfig, ""))


def _leaves(section: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(section)
    names = section.model_fields if hasattr(section, "model_fields") else [f.name for f in fields(section)]
    for name in names:
        if _is_section(hints[name]):
            yield from _leaves(hints[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", hints[name]


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "model_fields"))


def _require_known(field: str, ids: tuple[str, ...], goals: tuple[str, ...]) -> None:
    for goal in ids:
        if goal not in goals:
            raise ValueError(f"{field}: {goal!r} given, allowed are the ids in tasks.goals{nearest(goal, goals)}")


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return value
