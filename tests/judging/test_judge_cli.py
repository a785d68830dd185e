import json
import subprocess
import sys

import pytest

from forethought import Curriculum, CurriculumConfig, Interestingness, TaskSet
from forethought.cli import run as forethought
from forethought.cli.judge_domain import KIND_NAMES
from forethought.judging.store import open_run

pytest.importorskip("pydantic_ai")

KINDS = KIND_NAMES["both"]


@pytest.fixture
def domain(tmp_path):
    """Flags that name a task file and contexts of its own."""
    tasks = [{"id": f"task-{i}", "text": f"Öffne Tür {i}."} for i in range(9)]
    (tmp_path / "my doors.json").write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf-8")
    for name in ("environment", "learner"):
        (tmp_path / f"{name}.md").write_text(f"All about the {name}.", encoding="utf-8")
    return [
        *("--tasks", str(tmp_path / "my doors.json"), "--environment", str(tmp_path / "environment.md")),
        *("--learner-context", str(tmp_path / "learner.md"), "--learner", "door opener"),
    ]


@pytest.fixture
def planned(domain, tmp_path, capsys):
    """A directory with a plan of both kinds."""
    directory = str(tmp_path / "judging")
    assert forethought(["judge", "plan", directory, *domain, "--repetitions", "2", "--price", "1", "10"]) == 0
    capsys.readouterr()
    return directory


@pytest.fixture
def answering(monkeypatch, student):
    """Let a student answer in place of the model that is asked for; gives the student."""
    from pydantic_ai.models.function import FunctionModel

    from forethought.judging import backend

    model = student()
    function_model = FunctionModel(model)
    monkeypatch.setattr(backend, "make_model", lambda settings: function_model)
    return model


@pytest.fixture
def terminal(monkeypatch):
    """A person at the terminal: answers from a list, and keeps the questions."""
    asked = []

    def person(*answers):
        given = iter(answers)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or next(given))
        return asked

    return person


def test_plan_counts_queries_tokens_and_dollars_and_sends_nothing(capsys):
    models = ["--compare", "openai:gpt-6.1-terra", "anthropic:claude-sonnet-5-5", "nobody:m"]
    assert forethought(["judge", "plan", *models]) == 0
    out = capsys.readouterr().out
    assert "320 queries of at most 64 source goals and 16 target goals" in out
    assert "160 queries of at most 256 evidence goals and 8 target goals" in out
    assert "480 queries, 4.07 M input tokens" in out
    (sonnet,) = (line for line in out.splitlines() if line.startswith("anthropic:claude-sonnet-5-5 ($2 in, $10 out"))
    assert sonnet.split()[-6:] == ["27.79", "51.79", "109.39", "13.89", "to", "54.69"]
    assert "nobody:m: price unknown" in out


def test_a_plan_for_ones_own_tasks(domain, tmp_path, capsys):
    directory = tmp_path / "judging"
    arguments = [*domain, "--model", "ollama:qwen", "--base-url", "http://localhost:11434/v1", "--thinking", "none"]
    assert forethought(["judge", "plan", str(directory), *arguments]) == 0
    assert "nothing was sent" in capsys.readouterr().out
    for kind in KINDS:
        plan = open_run(directory / kind).plan
        assert plan.prompts.environment == "All about the environment."
        assert plan.prompts.domain_name == "my doors"
        assert plan.learner == "door opener"
        assert plan.settings.thinking is None
        assert plan.tasks.texts[3] == "Öffne Tür 3."


def test_large_task_sets_are_pruned_and_the_plan_says_so(domain, tmp_path, capsys):
    tasks = [{"id": f"t{i}", "text": f"Have {i % 60} of thing {i // 60}."} for i in range(600)]
    (tmp_path / "my doors.json").write_text(json.dumps(tasks))
    assert forethought(["judge", "plan", *domain, "--kind", "connectivity", "--repetitions", "1"]) == 0
    out = capsys.readouterr().out
    assert "pruned: a block of targets is offered 128 of 600 tasks, 96 nearest by shared wording and 32" in out
    assert "of the 359,400 ordered pairs are asked about in a repetition" in out
    flags = ["--kind", "connectivity", "--repetitions", "1", "--candidates"]
    assert forethought(["judge", "plan", *domain, *flags, "all"]) == 0
    assert "every ordered pair is asked" in capsys.readouterr().out
    assert forethought(["judge", "plan", *domain, *flags, "64"]) == 0
    assert "offered 64 of 600" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--environment: a text file is needed"),
        (["--environment", "none.md", "--learner-context", "none.md"], "none.md: cannot be read"),
        (["--tasks", "none.json"], "'none.json' is neither craftax nor a file"),
        (["--kind", "all"], "'all' given; allowed are both, connectivity, evidence"),
        (["--tasks", "craftax", "--learner", "octopus"], "'octopus'"),
        (["--tasks", "craftax", "--model", "gpt-6"], "name it as PROVIDER:NAME"),
        (["--tasks", "craftax", "--candidates", "few"], "'few' given; allowed are all, auto and a number"),
        (["--tasks", "craftax", "--repetitions", "0"], "repetitions is 0"),
        (["--tasks", "craftax", "--connectivity-template", "none.j2"], "none.j2: cannot be read"),
    ],
)
def test_bad_plans_end_in_one_line(arguments, message, domain, capsys):
    assert forethought(["judge", "plan", *domain[:2], *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_template_of_ones_own_is_used(domain, tmp_path, planned):
    template = (
        "{{ domain_name }}: {% for g in source_goals %}{{ g.id }}{% endfor %}{% for g in target_goals %}!{% endfor %}"
    )
    (tmp_path / "mine.j2").write_text(template)
    arguments = [*domain, "--connectivity-template", str(tmp_path / "mine.j2")]
    assert forethought(["judge", "plan", str(tmp_path / "other"), *arguments]) == 0
    assert open_run(tmp_path / "other" / KINDS[0]).plan.prompts.template == template
    assert open_run(tmp_path / "other" / KINDS[1]).plan.prompts.template != template


def test_without_a_terminal_and_without_yes_nothing_is_sent(planned, answering, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    for arguments in (["run", planned], ["batch", "submit", planned]):
        assert forethought(["judge", *arguments]) == 2
        assert "add --yes" in capsys.readouterr().err
    assert answering.prompts == []


def test_run_asks_all_and_status_tells(planned, answering, capsys):
    assert forethought(["judge", "run", planned, "--yes"]) == 0
    captured = capsys.readouterr()
    assert "complete: every judgment is in" in captured.err
    assert "forethought judge build" in captured.out
    assert forethought(["judge", "status", planned]) == 0
    out = capsys.readouterr().out
    assert out.count("18 of 18 judgments; 0 of") == 2
    assert "asked google:gemini-3.8-flash, answered by function" in out
    for kind in KINDS:
        assert open_run(f"{planned}/{kind}").missing() == {}


def test_what_bores_is_judged_by_itself_and_masks_progress(domain, tmp_path, answering, capsys):
    directory = str(tmp_path / "boring")
    arguments = [*domain, "--kind", "interestingness", "--repetitions", "2"]
    assert forethought(["judge", "plan", directory, *arguments]) == 0
    assert "2 queries of at most 9 mastered goals and 9 target goals" in capsys.readouterr().out
    assert forethought(["judge", "run", directory, "--yes"]) == 0
    assert all("no longer worth learning once another is mastered: my doors" in p for p in answering.prompts)
    assert forethought(["judge", "build", directory]) == 0
    graph = Interestingness.load(tmp_path / "boring" / "interestingness.json")
    assert graph.provenance.learner == "door opener"
    # The student names two goals for each target, whichever are shown first.
    assert graph.weights.sum(axis=0).tolist() == [2.0] * 9
    assert forethought(["judge", "audit", str(tmp_path / "boring" / "interestingness.json")]) == 2
    assert "holds a graph of kind 'interestingness'" in capsys.readouterr().err

    tasks = TaskSet.load(tmp_path / "my doors.json")
    curriculum = Curriculum(tasks, interestingness=graph, method="omni", config=CurriculumConfig(warmup=0))
    mastered = int(graph.weights.sum(axis=1).argmax())
    curriculum.update([mastered], [1.0])
    expected = graph.weights[[mastered], :].toarray().ravel() >= 0.5
    assert expected.any()
    assert (curriculum.interestingness < 1).tolist() == expected.tolist()


def test_a_person_is_told_the_cost_and_may_say_no(planned, answering, capsys, terminal):
    asked = terminal("n")
    # 2 repetitions of 1 and 2 queries.
    assert forethought(["judge", "run", planned, "--price", "1", "10"]) == 0
    assert len(answering.prompts) == 4
    (question,) = asked
    assert "4 replies so far" in question
    assert "the 2 queries left: about $0.02" in question
    assert "declined" in capsys.readouterr().err
    terminal("yes")
    assert forethought(["judge", "run", planned]) == 0
    assert len(answering.prompts) == 6


def test_the_cap_ends_in_85_with_everything_saved(planned, answering, capsys):
    assert forethought(["judge", "run", planned, "--yes", "--price", "0", "10", "--max-usd", "0.001"]) == 85
    assert "budget: $0.00 spent; the next request could exceed the cap" in capsys.readouterr().err
    assert answering.prompts == []


def test_judgments_without_a_valid_reply_end_in_1(planned, answering, capsys):
    answering.faults = dict.fromkeys(range(1, 999), lambda _: "prose")
    assert forethought(["judge", "run", planned, "--yes", "--asks", "1"]) == 1
    err = capsys.readouterr().err
    assert "given up: 36 judgments got no valid reply" in err
    assert "task-" in err


def test_a_batch_from_the_probe_to_the_end(domain, tmp_path, answering, capsys, terminal):
    directory = str(tmp_path / "batched")
    assert forethought(["judge", "plan", directory, *domain, "--target-block", "1", "--repetitions", "1"]) == 0
    for action, expected in (
        ("submit", "a probe of 4 queries is submitted as batch_"),
        ("collect", "4 queries  collected"),
        ("submit", "5 queries are submitted as batch_"),
        ("collect", "5 queries  collected"),
        ("submit", "nothing to submit"),
    ):
        capsys.readouterr()
        assert forethought(["judge", "batch", action, directory, *(["--yes"] if action == "submit" else [])]) == 0
        assert capsys.readouterr().out.count(expected) == 2
    assert forethought(["judge", "batch", "status", directory]) == 0
    assert capsys.readouterr().out.count("collected since") == 4
    for kind in KINDS:
        assert open_run(f"{directory}/{kind}").missing() == {}


def test_a_person_is_asked_before_a_batch_is_submitted(planned, answering, capsys, terminal):
    asked = terminal("n", "n")
    assert forethought(["judge", "batch", "submit", planned]) == 0
    assert "2 queries for about $" in asked[0]
    assert "not submitted" in capsys.readouterr().out
    assert answering.prompts == []


def test_a_batch_that_could_cost_too_much_is_not_submitted(planned, answering, capsys):
    arguments = ["judge", "batch", "submit", planned, "--yes", "--price", "1", "10", "--max-usd", "0.01"]
    assert forethought(arguments) == 2
    assert "not submitted, it could cost $" in capsys.readouterr().err
    assert answering.prompts == []


def test_export_and_import(planned, tmp_path, capsys, student):
    assert forethought(["judge", "export", planned, str(tmp_path / "q.jsonl")]) == 0
    files = []
    for kind in KINDS:
        requests = (tmp_path / f"q.{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        lines = [json.loads(line) for line in requests]
        replies = [{"custom_id": line["custom_id"], "text": student.answer(line["prompt"])} for line in lines]
        files.append(tmp_path / f"a.{kind}.jsonl")
        files[-1].write_text("\n".join(map(json.dumps, replies)))
    assert forethought(["judge", "import", planned, *map(str, files), "--model", "me"]) == 0
    assert "18 judgments, 0 faults" in capsys.readouterr().out
    for kind in KINDS:
        assert open_run(f"{planned}/{kind}").missing() == {}
    assert forethought(["judge", "export", planned, str(tmp_path / "q.jsonl")]) == 2
    files[0].write_text('{"custom_id": "strange-00000000", "text": ""}\n')
    assert forethought(["judge", "import", planned, str(files[0])]) == 2
    assert "line 1: 'strange-00000000' is not the id of a request" in capsys.readouterr().err


def test_recorded_judgments_become_a_run(tmp_path, capsys):
    from forethought.craftax.shipped import DATA

    files = [str(DATA / "judgments" / f"{kind}.subroutines.jsonl") for kind in KINDS]
    arguments = ["--learner", "subroutines", "--model", "Claude (Anthropic)", "--date", "2026-11", "--note", "as found"]
    assert forethought(["judge", "recorded", str(tmp_path / "run"), *files, *arguments]) == 0
    assert capsys.readouterr().out.count("0 judgments not valid") == 2
    plan = open_run(tmp_path / "run" / KINDS[0]).plan
    assert (plan.learner, plan.notes, len(plan.queries)) == ("subroutines", ("as found",), 320)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paint"], "no command 'judge paint'"),
        (["batch", "paint"], "no command 'judge batch paint'"),
        (["status", "nowhere"], "nowhere: no judging run"),
        (["run", "nowhere"], "nowhere: no judging run"),
        (["import", "nowhere"], "at least one file"),
        (["recorded", "nowhere"], "at least one file"),
        (["export", "nowhere", "x", "--format", "csv"], "'csv' given"),
        (["batch", "submit", "nowhere", "--dialect", "x"], "'x' given; allowed are strict"),
    ],
)
def test_wrong_words_end_in_one_line(arguments, message, capsys):
    assert forethought(["judge", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_second_process_is_refused_and_told_who_holds_the_run(planned, answering, capsys):
    run = open_run(f"{planned}/{KINDS[0]}")
    with run.writing("something else"):
        assert forethought(["judge", "run", planned, "--yes"]) == 2
    assert "(something else); wait for it or stop it" in capsys.readouterr().err


def test_help_and_planning_load_no_jax_and_no_client():
    code = (
        "import sys; from forethought.cli import run; run(['judge']); run(['judge', 'plan', '--repetitions', '1']); "
        "bad = {'jax', 'openai', 'anthropic', 'google.genai', 'pydantic_ai', 'craftax'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
