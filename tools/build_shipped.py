"""Rebuild the graphs that ship with the Craftax benchmark from the recorded judgments beside them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from forethought.craftax.shipped import DATA, LEARNERS, goals, graph_path, prompts
from forethought.graphs import Provenance
from forethought.judging.aggregate import build_graph
from forethought.judging.journal import read_lines
from forethought.judging.recorded import import_recorded

MODEL = "Claude (Anthropic)"
NOTE = (
    "The blocks of one repetition were judged one after another in one context, each repetition in a fresh context "
    "with its own shuffle; the paper judges every block in a context of its own, with Gemini 3.7 Flash."
)
RATES = "In repetition 2 the judge had also read measured success rates of a random policy."
KINDS = {"learning_connectivity": "connectivity", "feasibility_evidence": "evidence"}


def main() -> None:
    """Write the four graph files."""
    for learner in LEARNERS:
        for kind, name in KINDS.items():
            with TemporaryDirectory() as directory:
                run = import_recorded(
                    read_lines(DATA / "judgments" / f"{kind}.{learner}.jsonl"),
                    goals(),
                    prompts(kind, learner),
                    Path(directory) / "run",
                    model=MODEL,
                    learner=learner,
                    received="2026-11",
                    notes=(NOTE, RATES) if (kind, learner) == ("feasibility_evidence", "primitive") else (NOTE,),
                )
                graph = build_graph(run)
                # The tokens used were not recorded, and what is recorded has not changed since it was first built.
                graph.provenance = Provenance(
                    model_asked=MODEL,
                    model_served=MODEL,
                    prompt_hash=run.plan.prompts.digest,
                    repetitions=len(run.plan.repetitions),
                    block_sizes=run.plan.block_sizes,
                    date="2026-11",
                    learner=learner,
                    notes=run.plan.notes,
                )
                graph.save(graph_path(name, learner))


if __name__ == "__main__":
    main()
