"""The runner notices what it is there to notice."""

from pathlib import Path

import jaxtyping
import pytest
from page_runner import Runner, blocks


def run(folder: Path, text: str) -> Runner:
    page = folder / "page.md"
    page.write_text(text)
    runner = Runner(page, folder)
    runner.run()
    return runner


def fence(info: str, *lines: str) -> str:
    return "\n".join([f"```{info}", *lines, "```", ""])


def test_blocks_of_a_page_share_a_namespace(tmp_path):
    runner = run(tmp_path, fence("python", "a = 1") + "words\n\n" + fence("python", "b = a + 1"))
    assert runner.namespace["b"] == 2


def test_an_exception_names_the_line_of_the_page(tmp_path):
    with pytest.raises(AssertionError, match=r'page\.md", line 5(.|\n)*ZeroDivisionError'):
        run(tmp_path, "# Title\n\n" + fence("python", "a = 1", "a / 0"))


@pytest.mark.parametrize("command", ["false", "forethought nonsense", "exit 3 | cat"])
def test_a_failing_command_fails(tmp_path, command):
    with pytest.raises(AssertionError, match=r"page\.md, line 3: exit code"):
        run(tmp_path, fence("sh", "true", command))


def test_commands_run_in_the_pages_folder_and_see_its_files(tmp_path):
    text = fence("{code-block} python", ":caption: mine.py", "", "answer = 42")
    text += fence("sh", "python -c 'import mine; print(mine.answer)' \\", "  > answer.txt")
    text += fence("python", "import mine", "print(mine.answer, end='')") + fence("sh", "cat answer.txt")
    assert run(tmp_path, text + fence("output", "42")).printed.strip() == "42"


def test_output_must_be_what_was_printed(tmp_path):
    code = fence("python", "print('a 1.25')")
    run(tmp_path, code + fence("output", "a ..."))
    with pytest.raises(AssertionError, match=r"page\.md, line 5: printed is\na 1.25"):
        run(tmp_path, code + fence("output", "a 2"))


def test_forethoughts_commands_run_in_process(tmp_path):
    run(tmp_path, fence("sh", "forethought goals have_8_wood   # one") + fence("output", "...have_8_wood..."))


@pytest.mark.parametrize("kind", ["bash", "console", "py", "", "{code-block} python"])
def test_a_block_that_nothing_runs_is_refused(tmp_path, kind):
    with pytest.raises(AssertionError, match="which nothing runs"):
        run(tmp_path, fence(kind, "x"))


def test_what_is_not_run_gives_a_reason(tmp_path):
    run(tmp_path, fence("{not-run} sh", ":because: a cluster is needed", "", "sbatch me"))
    with pytest.raises(AssertionError, match="without a reason"):
        run(tmp_path, fence("{not-run} sh", "sbatch me"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("forethought nonsense", "no command nonsense"),
        ("forethought judge nonsense", "no command judge nonsense"),
        ("forethought sweep run targets --nonsense 3", "forethought sweep run targets knows no --nonsense"),
        ("srun forethought train paper --env jax --seed=1 --device-s 2", "forethought train paper knows no --device-s"),
        ("pip install 'forethought[nonsense]'", "no extra nonsense"),
        ("make nonsense", "no target nonsense"),
    ],
)
def test_what_is_not_run_could_be_run(tmp_path, line, complaint):
    page = fence("{not-run} sh", ":because: a cluster is needed", "", "forethought train paper --env jax", line)
    with pytest.raises(AssertionError, match=rf"page\.md, line 5: .*{complaint}"):
        run(tmp_path, page)


def test_python_that_is_not_run_must_compile(tmp_path):
    with pytest.raises(SyntaxError):
        run(tmp_path, fence("{not-run} python", ":because: a GPU is needed", "", "if True"))


def test_types_are_not_checked_in_pages_and_are_after_them(tmp_path):
    before = jaxtyping.config.jaxtyping_disable
    code = fence("python", "import jaxtyping", "print(jaxtyping.config.jaxtyping_disable)") + fence("output", "True")
    run(tmp_path, code)
    assert jaxtyping.config.jaxtyping_disable == before


def test_a_page_finds_the_results_of_the_project(tmp_path):
    run(tmp_path, fence("sh", "test -f results/leaderboard.jsonl"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("pip install 'forethought[nonsense]'", "no extra nonsense"),
        ("pip install numpy", "no part of the project"),
        ("make nonsense", "no target nonsense"),
    ],
)
def test_installing_is_checked(tmp_path, line, complaint):
    run(tmp_path, fence("sh", "pip install -e '.[craftax]'", "make test"))
    with pytest.raises(AssertionError, match=complaint):
        run(tmp_path, fence("sh", line))


def test_blocks_know_their_options_and_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n\n" + fence("{code-block} toml", ":caption: my.toml", "", "a = 1"))
    (block,) = blocks(page)
    assert (block.kind, block.argument, block.options, block.code, block.line) == (
        "code-block",
        "toml",
        {"caption": "my.toml"},
        "a = 1\n",
        6,
    )
