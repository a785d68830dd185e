"""`forethought judge export`, `import`, `recorded` and `status`: what needs no model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from forethought.cli.errors import UsageError, bad_input
from forethought.cli.judge import runs_in
from forethought.cli.judge_domain import CRAFTAX, Domain
from forethought.cli.judge_run import known_price

if TYPE_CHECKING:
    from forethought.judging.store import Run

Directory = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
Files = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


def export(
    directory: Directory,
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    format: str = "plain",
) -> int:
    """Write the queries that are still open, one JSON line each; bring the replies back with `judge import`.

    Args:
        directory: Directory of the plan.
        file: The file to write; with both kinds of judgment, the kind is put into its name.
        format: plain (custom_id, prompt, schema) or openai (lines of a batch file, which vLLM takes too).
    """
    from forethought.judging.exchange import FORMATS, export_requests
    from forethought.judging.providers import Provider

    if format not in FORMATS:
        raise UsageError(f"--format: {format!r} given; allowed are {', '.join(FORMATS)}")
    runs = runs_in(directory)
    # Whoever answers may see the prompt only, so the prompt tells everything.
    provider = Provider("export", ("loose",) if format == "plain" else ("strict", "loose"), shows_schema=False)
    for run in runs:
        path = Path(file) if len(runs) == 1 else Path(file).with_suffix(f".{run.plan.kind}{Path(file).suffix}")
        if path.exists():
            raise UsageError(f"{path} exists already; name another file")
        with bad_input():
            count = export_requests(run, path, provider, format)
        print(f"{run.plan.kind}: {count} queries in {path}")
    return 0


def import_(
    directory: Directory, files: Files, model: str | None = None, price: tuple[float, float] | None = None
) -> int:
    """Store replies to exported queries: JSON lines with custom_id and text, or lines of an OpenAI batch result.

    Args:
        directory: Directory of the run.
        files: Files of replies.
        model: Who answered, for lines that do not say.
        price: Dollars for a million input and output tokens, for lines that say how many they took.
    """
    from forethought.judging.exchange import import_replies
    from forethought.judging.journal import read_lines

    if not files:
        raise UsageError("name at least one file of replies")
    runs = runs_in(directory)
    with bad_input():
        for file in files:
            by_run = _by_run(file, runs, list(read_lines(file)))
            for run, lines in by_run:
                done = import_replies(run, lines, known_price(run, price) if price else None, model)
                print(
                    f"{file}: {run.plan.kind}: {done.stored} new replies ({done.known} known), "
                    f"{done.judgments} judgments, {len(done.problems)} faults"
                )
                for problem in done.problems[:10]:
                    print(f"  {problem}")
    return 0


def recorded(
    directory: Directory,
    files: Files,
    domain: Annotated[Domain, tyro.conf.arg(name="")] = CRAFTAX,
    model: str = "",
    date: str | None = None,
    note: tuple[str, ...] = (),
) -> int:
    """Store judgments that were recorded together with their queries, such as those that ship with the benchmark.

    Args:
        directory: Directory of the new run.
        files: Files of one JSON line a query: repetition, target_ids, reply, and source_ids, evidence_ids or
            mastered_ids.
        domain: What was judged, and what the judge was told.
        model: Who judged.
        date: When.
        note: What a reader of the graphs should know.
    """
    from forethought.judging.journal import read_lines
    from forethought.judging.recorded import SOURCES, import_recorded

    if not files or not model:
        raise UsageError("name at least one file of recorded judgments, and who judged with --model")
    with bad_input():
        lines: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            for line in read_lines(file):
                kind = next((kind for kind, field in SOURCES.items() if field in line), None)
                if kind is None:
                    raise UsageError(
                        f"{file}: a line has none of {', '.join(SOURCES.values())}; it is no recorded query"
                    )
                lines.setdefault(kind, []).append(line)
        tasks = domain.load_tasks()
        for kind, queries in lines.items():
            run = import_recorded(
                queries,
                tasks,
                domain.prompts(kind),
                Path(directory) / kind,
                model=model,
                learner=domain.learner_name,
                received=date,
                notes=note,
            )
            missing = sum(map(len, run.missing().values()))
            print(f"{kind}: {len(queries)} replies, {missing} judgments not valid")
    return 0


def status(directory: Directory) -> int:
    """Show how far a run is, what it has cost, and what went wrong.

    Args:
        directory: Directory of the run.
    """
    from forethought.judging.requests import made_requests, stored_keys

    with bad_input():
        for run in runs_in(directory):
            print("\n".join(_standing(run)))
            unanswered = len(
                {key for key, line in made_requests(run).items() if line["via"] == "live"} - stored_keys(run)
            )
            if unanswered:
                print(f"{'':22}{unanswered} requests were sent and have no stored reply; they may have been paid for")
    return 0


def _standing(run: "Run") -> list[str]:
    from forethought.judging.batch_log import batch_records

    state = run.state()
    cost = f"${state.cost_usd:.2f}" + (f" and {state.unpriced:,} of unknown price" if state.unpriced else "")
    usage = ", ".join(f"{count:,} {name}" for name, count in sorted(state.usage.items()))
    served = ", ".join(f"{model} ({count})" for model, count in state.served.most_common())
    left = f"{len(state.missing()):,} of {len(run.plan.queries):,} queries open"
    facts = [
        f"{state.judged:,} of {state.wanted:,} judgments; {left}",
        f"{state.replies:,} replies, {state.bad} invalid judgments in them, {cost}",
    ]
    facts += [f"tokens: {usage}"] if usage else []
    facts += (
        [f"asked {run.plan.settings.model}, answered by {served}"] if served else [f"asked {run.plan.settings.model}"]
    )
    paid = f", {state.maybe_paid} of them may have been paid for" if state.maybe_paid else ""
    facts += [f"{state.errors} requests ended without a usable answer{paid}"] if state.errors else []
    facts += [f"{state.empty} replies name no source for any target; look at them"] if state.empty else []
    facts += [
        f"{record.id}: {len(record.requests)} queries of {record.submitted}, {record.status} {record.detail}".rstrip()
        for record in batch_records(run)
    ]
    given_up = [
        f"given up: {run.plan.tasks.ids[target]} in {query}: {problem}"
        for query, targets in state.given_up().items()
        for target, problem in targets.items()
    ]
    facts += given_up[:10] + ([f"and {len(given_up) - 10} more given up"] if len(given_up) > 10 else [])
    return [f"{run.plan.kind:22}{facts[0]}", *(f"{'':22}{fact}" for fact in facts[1:])]


def _by_run(file: str, runs: "list[Run]", lines: list[dict[str, Any]]) -> "list[tuple[Run, list[dict[str, Any]]]]":
    """The lines of each run, found by the digest at the end of their custom id."""
    found: dict[str, list[dict[str, Any]]] = {run.plan.digest[:8]: [] for run in runs}
    for number, line in enumerate(lines, 1):
        ending = str(line.get("custom_id", ""))[-8:]
        if ending not in found:
            raise UsageError(f"{file}, line {number}: {line.get('custom_id')!r} is not the id of a request of this run")
        found[ending].append(line)
    return [(run, found[run.plan.digest[:8]]) for run in runs if found[run.plan.digest[:8]]]
