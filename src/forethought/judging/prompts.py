"""What a model is told: a template for each kind of judgment, filled with contexts and lists of goals."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template

LISTS = {
    "learning_connectivity": "source_goals",
    "feasibility_evidence": "evidence_goals",
    "interestingness": "mastered_goals",
}
"""The variable that holds the goals to choose from, by kind of judgment."""

CONTEXTS = ("domain_name", "environment", "goal_suite", "learner")
"""The variables that hold the contexts."""


@dataclass(frozen=True)
class Prompts:
    """A Jinja template and the contexts that every query puts into it (paper, Appendix B.2).

    A template uses `target_goals` and, by kind, one of `LISTS` (lists of objects with `id` and `goal`), and may use
    `domain_name`, `environment`, `goal_suite` and `learner` (texts). Texts are put in as they are: what looks like
    Jinja inside a context or a goal stays what it is.

    Attributes:
        kind: one of `LISTS`.
        template: text of the template.
        environment: how the domain works.
        goal_suite: how the goals are to be read.
        learner: what learns, from what, with which rewards.
        domain_name: what the domain is called.

    Raises:
        ValueError: an unknown kind, a template that cannot be read, lacks a list of goals or asks for something else.
    """

    kind: str
    template: str
    environment: str
    goal_suite: str
    learner: str
    domain_name: str

    def __post_init__(self):
        if self.kind not in LISTS:
            raise ValueError(f"the kind of judgment is {self.kind!r}; allowed are {', '.join(LISTS)}")
        _compile(self.kind, self.template)

    @property
    def digest(self) -> str:
        """SHA-256 of the template and the contexts, in UTF-8: the `prompt_hash` of a graph."""
        parts = (self.template, self.environment, self.goal_suite, self.learner)
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def render(self, choices: Sequence[tuple[str, str]], targets: Sequence[tuple[str, str]]) -> str:
        """The prompt of one query.

        Args:
            choices: id and text of the goals to choose from, in the order to show them.
            targets: id and text of the goals to judge, likewise.

        Raises:
            ValueError: the template fails.
        """
        seen = {
            "domain_name": self.domain_name,
            "environment": self.environment,
            "goal_suite": self.goal_suite,
            "learner": self.learner,
            LISTS[self.kind]: _listed(choices),
            "target_goals": _listed(targets),
        }
        try:
            return _compile(self.kind, self.template).render(seen)
        except Exception as error:  # a template is a program of the user's
            raise ValueError(f"the {self.kind} template fails: {error}; a goal has id and goal (its text)") from error


def default_template(kind: str) -> str:
    """The template that ships, for any domain."""
    if kind not in LISTS:
        raise ValueError(f"the kind of judgment is {kind!r}; allowed are {', '.join(LISTS)}")
    return read_text(Path(str(files("forethought.judging") / "templates" / f"{kind}.md.j2")))


def read_text(path: str | Path) -> str:
    """The text of a template or context file; a ValueError names a file that is missing or not UTF-8."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text in UTF-8: {error}") from error


@lru_cache(maxsize=8)
def _compile(kind: str, template: str) -> "Template":
    from jinja2 import StrictUndefined, TemplateError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Templates travel inside plan files, so they get no more than they need.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        used = meta.find_undeclared_variables(environment.parse(template))
        compiled = environment.from_string(template)
    except TemplateError as error:
        raise ValueError(f"the {kind} template cannot be read: {error}") from error
    needed = {LISTS[kind], "target_goals"}
    if missing := sorted(needed - used):
        raise ValueError(f"the {kind} template does not use {', '.join(missing)}; the model would not see these goals")
    if unknown := sorted(used - needed - set(CONTEXTS)):
        allowed = ", ".join(sorted(needed | set(CONTEXTS)))
        raise ValueError(f"the {kind} template asks for {', '.join(unknown)}; allowed are {allowed}")
    return compiled


def _listed(goals: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    # One line a goal: a line break inside a text could pass for another goal.
    return [{"id": id, "goal": " ".join(text.split())} for id, text in goals]
