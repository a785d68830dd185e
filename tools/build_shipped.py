"""Rebuild the graphs that ship with the Craftax benchmark from the recorded judgments beside them."""

import hashlib

from forethought.craftax.shipped import DATA, LEARNERS, goals, graph_path
from forethought.graphs import Provenance
from forethought.judging.prompts import default_template
from forethought.judging.recorded import connectivity_from_judgments, evidence_from_judgments, read_judgments

NOTE = (
    "The blocks of one repetition were judged one after another in one context, each repetition in a fresh context "
    "with its own shuffle; the paper judges every block in a context of its own, with Gemini 3.7 Flash."
)
RATES = "In repetition 2 the judge had also read measured success rates of a random policy."


def main() -> None:
    """Write the four graph files."""
    tasks = goals()
    for learner in LEARNERS:
        connectivity_from_judgments(
            read_judgments(DATA / "judgments" / f"learning_connectivity.{learner}.jsonl"),
            tasks,
            provenance("learning_connectivity", learner, {"source_goals": 64, "target_goals": 16}, (NOTE,)),
        ).save(graph_path("connectivity", learner))
        notes = (NOTE, RATES) if learner == "primitive" else (NOTE,)
        evidence_from_judgments(
            read_judgments(DATA / "judgments" / f"feasibility_evidence.{learner}.jsonl"),
            tasks,
            provenance("feasibility_evidence", learner, {"evidence_goals": 256, "target_goals": 8}, notes),
        ).save(graph_path("evidence", learner))


def provenance(kind: str, learner: str, block_sizes: dict[str, int], notes: tuple[str, ...]) -> Provenance:
    """What is known of the recorded judgments; the tokens used were not recorded."""
    parts = ("environment.md", "goal_suite.md", f"learner_{learner}.md")
    prompt = default_template(kind).encode() + b"".join((DATA / "prompts" / part).read_bytes() for part in parts)
    return Provenance(
        model_asked="Claude (Anthropic)",
        model_served="Claude (Anthropic)",
        prompt_hash=hashlib.sha256(prompt).hexdigest(),
        repetitions=5,
        block_sizes=block_sizes,
        date="2026-11",
        learner=learner,
        notes=notes,
    )


if __name__ == "__main__":
    main()
