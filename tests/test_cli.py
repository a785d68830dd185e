"""The command line answers fast, reads well, and refuses bad input in one line with exit code 2."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forethought.cli import COMMANDS, run
from forethought.cli.demo import before_and_after, free_directory
from forethought.cli.errors import missing_extra
from forethought.cli.parsing import split_settings
from forethought.cli.train import default_directory
from forethought.config import load_config
from forethought.rundir import EVALUATION_COLUMNS, RunDirectory

HEAVY = ("jax", "scipy", "polars", "matplotlib", "craftax", "equinox")
HELP = [[], ["--help"], *([name, "--help"] for name in COMMANDS), ["graph", "show", "--help"]]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fails(capsys, *arguments: str) -> str:
    """Run a command that must be refused; gives its one line."""
    before = sorted(Path().rglob("*"))
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    return captured.err


@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_help_is_fast_and_loads_nothing_heavy(arguments: list[str]):
    code = (
        "import sys; from forethought.cli import main\n"
        f"try: main({arguments!r})\n"
        f"finally: print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        best = min(best, time.perf_counter() - start)
        if best < 0.7:
            break
    assert done.stderr.strip() == "[]"
    assert "usage: forethought" in done.stdout
    assert best < 2.0  # 0.3 s on an idle machine; tests share theirs


def test_train_help_shows_the_settings_of_a_preset(capsys):
    assert run(["train", "demo", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--ppo.learning-rate" in text
    assert "as in demo" in text
    assert "(default: 0.001)" in text


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("forethought ")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("trian", ["no command 'trian'", "did you mean train?"]),
        ("train papr", ["papr", "did you mean paper?"]),
        ("train paper --ppo.minibatches 7", ["ppo.minibatches: 7", "512"]),
        ("train paper --ppo.minibatch 8", ["--ppo.minibatch", "did you mean --ppo.minibatches?"]),
        ("train paper --learning-rate 8", ["--learning-rate", "did you mean --ppo.learning-rate?"]),
        ("train paper --iterations", ["--iterations: expected one value"]),
        ("train paper --iterations 1 2", ["--iterations: expected one value, got 2"]),
        ("train paper -x", ["-x: expected a flag"]),
        ("train paper-target", ["tasks.target: not set"]),
        ("train demo --environment.envs-per-goal 0", ["environment.envs_per_goal: '0'"]),
        ("train --seed 1", ["name a preset"]),
        ("train toy --tasks.target nowhere", ["tasks.target: 'nowhere'", "forethought goals"]),
        ("train toy --tasks.goals wood stome", ["tasks.goals: 'stome'", "did you mean stone?"]),
        ("train toy --embeddings nothing.npz", ["embeddings: nothing.npz", "forethought embed"]),
        ("eval nowhere", ["nowhere"]),
        ("eval nowhere --episode 3", ["--episode"]),
        ("eval nowhere --goals wood --trace missing/x.jsonl", ["--trace", "missing/x.jsonl"]),
        ("eval nowhere --goals wood --trace .", ["--trace", "folder"]),
        ("eval nowhere --goals wood,gem --trace x.jsonl", ["--trace", "got 2"]),
        ("eval", ["RUN"]),
        ("graph draw", ["graph draw", "show and check"]),
        ("graph show nothing.json wood", ["nothing.json"]),
        ("embed --model x --dim 0", ["--dim: 0"]),
        ("embed --model x --out nowhere/x.npz", ["nowhere"]),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, line: str, parts: list[str]):
    message = fails(capsys, *line.split())
    for part in parts:
        assert part in message


def test_a_missing_file_of_vectors_says_how_to_make_it(capsys):
    message = fails(capsys, "train", "paper")
    assert "forethought embed --model Qwen/Qwen3-Embedding-4B --dim 512" in message
    assert "--embeddings minilm" in message


def test_an_existing_run_directory_says_how_to_continue(capsys):
    Path("mine").mkdir()
    message = fails(capsys, "train", "toy", "--out", "mine")
    assert "mine exists already" in message
    assert "continue" in message


def test_a_directory_that_is_no_run_cannot_be_continued(capsys):
    Path("mine").mkdir()
    assert "mine is not a run directory" in fails(capsys, "train", "mine")
    assert "takes nothing else; got seed" in fails(capsys, "train", "mine", "--seed", "3")


def test_an_unwritable_run_directory_is_refused(capsys):
    Path("file").write_text("x")
    assert "cannot be written" in fails(capsys, "train", "toy", "--out", "file/run")


def test_a_gpu_that_is_not_there_is_no_fallback(capsys):
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("this machine has an accelerator")
    message = fails(capsys, "train", "toy", "--device", "gpu")
    assert "'gpu' given" in message
    assert "allowed here are auto and cpu" in message


def test_a_dry_run_prints_what_would_run(capsys):
    assert run(["train", "demo", "--dry-run", "--ppo.epochs=2", "--tasks.goals", "have_4_wood",
                "--evaluation.goals", "have_4_wood", "--ppo.bootstrap-at-time-limit"]) == 0  # fmt: skip
    text = capsys.readouterr().out
    assert "epochs = 2\n" in text
    assert "bootstrap_at_time_limit = true" in text
    Path("again.toml").write_text(text)
    assert run(["train", "again.toml", "--dry-run"]) == 0
    assert capsys.readouterr().out == text


def test_env_is_short_for_the_backend(capsys):
    assert run(["train", "demo", "--dry-run", "--env", "jax"]) == 0
    assert 'backend = "jax"' in capsys.readouterr().out
    message = fails(capsys, "train", "demo", "--dry-run", "--env", "gpu")
    assert "environment.backend: 'gpu' given; allowed is 'auto', 'engine' or 'jax'" in message


def test_flags_are_split_from_words():
    fields = {"a.on": bool, "a.many": tuple[str, ...], "a.one": float, "a.may": int | None}
    line = "x y --a.many p q --a.one -3 --a.no-on --a.may none"
    assert split_settings(line.split(), fields) == (
        ["x", "y"],
        {"a.many": ["p", "q"], "a.one": "-3", "a.on": False, "a.may": None},
    )
    assert split_settings(["--a.on", "--a.many"], fields) == ([], {"a.on": True, "a.many": []})


def test_goals_are_listed_and_filtered(capsys):
    assert run(["goals", "--toy"]) == 0
    assert "gem-se" in capsys.readouterr().out
    assert run(["goals", "lava", "--toy"]) == 0
    assert "1 of 9 goals" in capsys.readouterr().out
    assert run(["goals", "nothing-like-it", "--toy"]) == 1


def test_the_benchmarks_goals_are_listed(capsys):
    assert run(["goals"]) == 0
    assert "256 of 256 goals" in capsys.readouterr().out


def test_a_graph_file_is_shown_and_checked(capsys):
    from forethought import toy

    toy.connectivity().save(Path("helps.json"))
    toy.evidence().save(Path("ready.json"))
    assert run(["graph", "check", "helps.json"]) == 0
    assert "sound" in capsys.readouterr().out
    assert run(["graph", "show", "helps.json", "stone"]) == 0
    shown = capsys.readouterr().out
    assert "0.800  wood" in shown
    assert "0.900  gem" in shown
    assert run(["graph", "show", "ready.json", "stone"]) == 0
    assert "evidence for stone" in capsys.readouterr().out
    assert "did you mean stone?" in fails(capsys, "graph", "show", "helps.json", "stome")

    content = json.loads(Path("helps.json").read_text())
    content["kind"] = "other"
    Path("helps.json").write_text(json.dumps(content))
    assert run(["graph", "check", "helps.json"]) == 1
    assert "other" in capsys.readouterr().out


def test_the_shipped_graphs_are_shown(capsys):
    assert run(["graph", "show", "primitive", "have_4_wood", "--top", "3"]) == 0
    shown = capsys.readouterr().out
    assert "sources of have_4_wood" in shown
    assert "evidence for have_4_wood" in shown
    assert "have_4_wod" in fails(capsys, "graph", "show", "primitive", "have_4_wod")


def test_a_missing_package_names_the_extra_that_brings_it():
    error = ModuleNotFoundError("No module named 'sentence_transformers'", name="sentence_transformers.models")
    assert "pip install 'forethought[embed]'" in str(missing_extra(error))
    assert missing_extra(ModuleNotFoundError("x", name="something_else")) is None


TINY = "--iterations 2 --evaluation.every 2 --evaluation.episodes 4"


def forethought(line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a caller does."""
    program = "from forethought.cli import main; main()"
    command = [sys.executable, "-c", program, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_train_continue_and_eval():
    """The whole path on the tiny domain: a run, its continuation (nothing is left to do), its evaluation."""
    assert forethought(f"train toy {TINY} --out runs/tiny").stderr.startswith("device: cpu")
    assert {"config.toml", "meta.json", "metrics.jsonl"} <= {path.name for path in Path("runs/tiny").iterdir()}
    metrics = Path("runs/tiny/metrics.jsonl").read_bytes()
    forethought("train runs/tiny")
    assert Path("runs/tiny/metrics.jsonl").read_bytes() == metrics
    shown = forethought("eval runs/tiny --goals wood,move --episodes 3").stdout
    assert "after iteration 2, 3 episodes per goal" in shown
    assert "mean" in shown
    assert Path("runs/tiny/eval.parquet").exists()
    assert "evaluation.goals: 'wod'" in forethought("eval runs/tiny --goals wod", code=2).stderr


def test_what_only_the_run_can_see_is_bad_input_too():
    before = sorted(Path().rglob("*"))
    done = forethought(f"train toy {TINY} --sinks wandb --out runs/tiny", code=2)
    assert "wandb" in done.stderr.splitlines()[-1]
    assert sorted(Path().rglob("*")) == before


def test_the_default_directory_tells_configuration_and_seed():
    config = load_config("toy", overrides={"seed": 3})
    assert default_directory(config, "some/toy.toml") == Path("runs") / f"toy-{config.digest[:8]}-s3"


def test_the_demo_never_overwrites_a_run():
    assert free_directory(Path("runs/demo")) == Path("runs/demo")
    Path("runs/demo").mkdir(parents=True)
    Path("runs/demo-2").mkdir()
    assert free_directory(Path("runs/demo")) == Path("runs/demo-3")


def test_the_demo_ends_with_what_changed():
    run = RunDirectory.create(Path("run"), load_config("toy").to_toml(), {})
    for iteration, rates in ((0, [0.0, 0.25]), (30, [0.5, 0.75])):
        columns = {name: [0, 0] for name in EVALUATION_COLUMNS}
        columns |= {"iteration": [iteration] * 2, "goal": ["wood", "stone"], "success_rate": rates}
        columns |= {"wilson_low": [0.1, 0.2], "wilson_high": [0.8, 0.9]}
        run.record_evaluation(columns)
    assert before_and_after(Path("run")).splitlines() == [
        "success in evaluation  before   after   95 % interval",
        "stone                     25%     75%   20% to 90%",
        "wood                       0%     50%   10% to 80%",
    ]
