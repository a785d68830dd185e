"""Flags of `forethought judge` that say what is judged, and what the model is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from forethought.cli.errors import UsageError

if TYPE_CHECKING:
    from forethought.judging.prompts import Prompts
    from forethought.tasks import TaskSet

GOAL_SUITE = "What counts as success on a goal is what its text says. Ids are labels only."

KIND_NAMES = {
    "both": ("learning_connectivity", "feasibility_evidence"),
    "connectivity": ("learning_connectivity",),
    "evidence": ("feasibility_evidence",),
    "interestingness": ("interestingness",),
}


@dataclass(frozen=True)
class Domain:
    """What is judged, and what the model is told; the texts of the benchmark ship, those of other domains are files.

    Attributes:
        tasks: craftax (the 256 goals), or a task file (JSON, YAML or CSV).
        own_goals: For craftax, a Python file with goals of your own, which are judged with the 256.
        kind: both, connectivity (what helps what), evidence (what shows that a task is ready), or interestingness (what
            is boring once another is mastered; for the method omni).
        learner: A name for the learner. For craftax, primitive (default) and subroutines have contexts that ship.
        domain: What the domain is called; default: the task file's name.
        environment: Text file on how the domain works; needed for tasks of your own.
        goal_suite: Text file on how the goals are to be read.
        learner_context: Text file on the learner, its training and its rewards; needed for tasks of your own.
        connectivity_template: Jinja template in place of the one that ships.
        evidence_template: Likewise.
        interestingness_template: Likewise.
    """

    tasks: str = "craftax"
    own_goals: str = ""
    kind: str = "both"
    learner: str = ""
    domain: str = ""
    environment: str = ""
    goal_suite: str = ""
    learner_context: str = ""
    connectivity_template: str = ""
    evidence_template: str = ""
    interestingness_template: str = ""

    def kinds(self) -> tuple[str, ...]:
        """The kinds of judgment asked for."""
        if self.kind not in KIND_NAMES:
            raise UsageError(f"--kind: {self.kind!r} given; allowed are {', '.join(KIND_NAMES)}")
        return KIND_NAMES[self.kind]

    @property
    def learner_name(self) -> str | None:
        """The name of the learner, for provenance."""
        return self.learner or ("primitive" if self.tasks == "craftax" and not self.learner_context else None)

    def load_tasks(self) -> "TaskSet":
        """The task set."""
        from forethought.tasks import TaskSet

        if self.tasks == "craftax":
            return craftax_goals(self.own_goals)
        if self.own_goals:
            raise UsageError(
                f"--own-goals: {self.own_goals!r} given, but these are goals of Craftax; use --tasks alone"
            )
        if not Path(self.tasks).is_file():
            raise UsageError(f"--tasks: {self.tasks!r} is neither craftax nor a file")
        return TaskSet.load(self.tasks)

    def prompts(self, kind: str) -> "Prompts":
        """Template and contexts of a kind of judgment."""
        from forethought.judging.prompts import Prompts, default_template, read_text

        template = {
            "learning_connectivity": self.connectivity_template,
            "feasibility_evidence": self.evidence_template,
            "interestingness": self.interestingness_template,
        }
        texts = {name: read_text(path) if path else None for name, path in self._contexts().items()}
        if self.tasks == "craftax":
            from forethought.craftax import shipped

            # With a context of one's own, the name need not be one that ships.
            default = shipped.prompts(kind, shipped.LEARNERS[0] if texts["learner"] else self.learner_name or "")
            texts = {name: getattr(default, name) if text is None else text for name, text in texts.items()}
        flags = {"environment": "--environment", "learner": "--learner-context"}
        for name, flag in flags.items():
            if not texts[name]:
                raise UsageError(
                    f"{flag}: a text file is needed for tasks of your own; the model knows nothing of them"
                )
        return Prompts(
            kind=kind,
            template=read_text(template[kind]) if template[kind] else default_template(kind),
            environment=texts["environment"] or "",
            goal_suite=texts["goal_suite"] or GOAL_SUITE,
            learner=texts["learner"] or "",
            domain_name=self.domain or ("Craftax" if self.tasks == "craftax" else Path(self.tasks).stem),
        )

    def _contexts(self) -> dict[str, str]:
        return {"environment": self.environment, "goal_suite": self.goal_suite, "learner": self.learner_context}


def craftax_goals(own: str = "") -> "TaskSet":
    """The goals of Craftax, and after them those in a Python file of one's own, if one is named."""
    from forethought.cli.errors import bad_input
    from forethought.craftax.own_goals import load_goals, with_own

    with bad_input():
        return with_own(load_goals(own) if own else ())


CRAFTAX = Domain()
"""The benchmark, as the primitive learner meets it."""
