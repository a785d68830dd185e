"""What stands in a page of the documentation, and how its code is run.

| in the page | here |
|---|---|
| `python` | runs in the page's one namespace |
| `sh` | runs line by line in the page's folder; what `pip install` and `make` lines name must exist |
| `output` | must be what the block before it prints; `...` stands for anything |
| `{code-block} LANGUAGE` with a `:caption:` | a file of that name in the page's folder, which a later block must use |
| `{literalinclude} PATH` | with a `:caption:` the same; else an example that a test runs (see test_pages.py) |
| `{not-run} LANGUAGE` | is not run, says why in the page, and is counted in test_pages.py |
| `text`, `toml`, `json` and the like | data, not run |

Of a block that is not run, commands and flags of forethought and what is installed or made must exist, and Python must
compile. The page's folder is an empty one, with the project's `results` in it. Calls are not checked for types, as they
are not for a reader.

`python tests/docs/page_runner.py PAGE` writes what is printed now into the `output` blocks of a page.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jaxtyping
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATA = {"text", "toml", "json", "jsonl", "csv", "md", "yaml", "bibtex"}
DIRECTIVES = {"toctree", "eval-rst", "figure", "image", "include", "note", "raw"}
SHELL_SIGNS = re.compile(r"[|<>&;$`*?~]|\bcd\b|\bexport\b")


@dataclass(frozen=True)
class Block:
    """One fenced block: its kind, options, code, and the line of its first line of code."""

    kind: str
    options: dict[str, str]
    code: str
    line: int
    argument: str = ""


def pages() -> list[Path]:
    """The README and every page of the site."""
    return [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "build" not in p.relative_to(DOCS).parts)]


def name(page: Path) -> str:
    """A page's name in reports."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [_block(token) for token in tokens if token.type == "fence"]


def _block(token: Any) -> Block:
    kind, _, argument = token.info.strip().partition(" ")
    lines, line, options = token.content.splitlines(), token.map[0] + 2, {}
    if kind.startswith("{"):
        kind = kind.strip("{}")
        while lines and (option := re.fullmatch(r":([\w-]+): *(.*)", lines[0])):
            options[option[1]] = option[2].strip()
            lines, line = lines[1:], line + 1
        if options and lines and not lines[0].strip():
            lines, line = lines[1:], line + 1
    return Block(kind, options, "".join(f"{text}\n" for text in lines), line, argument.strip())


@dataclass
class Runner:
    """Runs a page's blocks in order in a folder; raises AssertionError with page and line at what goes wrong."""

    page: Path
    folder: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    printed: str = ""
    outputs: list[tuple[Block, str]] | None = None
    """Where this is a list, `output` blocks are collected with what was printed, and not compared."""

    def run(self) -> None:
        """Run the whole page; the current directory is the folder meanwhile."""
        before = list(sys.path), set(sys.modules)
        if not (results := self.folder / "results").exists():
            results.symlink_to(ROOT / "results")
        with contextlib.chdir(self.folder), _unchecked_types():
            sys.path.insert(0, str(self.folder))
            try:
                for block in blocks(self.page):
                    self.block(block)
            finally:
                sys.path[:] = before[0]
                for module in set(sys.modules) - before[1]:
                    if str(self.folder) in str(getattr(sys.modules[module], "__file__", None) or ""):
                        del sys.modules[module]

    def block(self, block: Block) -> None:
        """Run, check or write one block."""
        if block.kind == "python":
            self._python(block)
        elif block.kind == "sh":
            self._shell(block)
        elif block.kind == "output":
            self._compare(block)
        elif block.kind == "code-block" and "caption" in block.options:
            self._write(block, block.code)
        elif block.kind == "literalinclude" and "caption" in block.options:
            self._write(block, (self.page.parent / block.argument).read_text(encoding="utf-8"))
        elif block.kind == "not-run":
            self._require(block, bool(block.options.get("because")), "not-run without a reason")
            self._could_run(block)
        elif block.kind not in DATA | DIRECTIVES | {"literalinclude"}:
            self._require(block, False, f"a block of kind {block.kind!r}, which nothing runs")

    def _could_run(self, block: Block) -> None:
        """Check of a block that is not run what can be checked without running it."""
        if block.argument == "python":
            compile(block.code, str(self.page), "exec")
        for number, line in _logical_lines(block.code) if block.argument == "sh" else ():
            at = Block("sh", {}, line, block.line + number)
            if line.startswith("pip install"):
                self._require(at, *_installable(line))
            elif line.startswith("make "):
                self._require(at, *_makeable(line))
            else:
                words = shlex.split(line, comments=True)
                if "forethought" in words:
                    self._require(at, *_understood(words[words.index("forethought") + 1 :]))

    def _write(self, block: Block, text: str) -> None:
        path = self.folder / block.options["caption"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _python(self, block: Block) -> None:
        # Line numbers in tracebacks are then those of the page.
        code = compile("\n" * (block.line - 1) + block.code, str(self.page), "exec")
        with self._printing() as printed:
            try:
                exec(code, self.namespace)
            except Exception as error:
                raise AssertionError(f"{name(self.page)}: {''.join(traceback.format_exception(error))}") from error
        self.printed = printed.getvalue()

    def _shell(self, block: Block) -> None:
        printed = []
        for number, line in _logical_lines(block.code):
            at = Block("sh", {}, line, block.line + number)
            if line.startswith("pip install"):
                self._require(at, *_installable(line))
            elif line.startswith("make "):
                self._require(at, *_makeable(line))
            elif line.startswith("forethought ") and not SHELL_SIGNS.search(re.sub(r"'[^']*'", "", line)):
                printed.append(self._forethought(at))
            else:
                printed.append(self._bash(at))
        self.printed = "".join(printed)

    def _forethought(self, line: Block) -> str:
        """In this process, since loading JAX anew takes seconds."""
        from forethought.cli import run

        # A file: what writes to a stream may ask for its name and mode.
        with tempfile.TemporaryFile("w+") as complaints:
            with self._printing() as printed, contextlib.redirect_stderr(complaints):
                try:
                    code = run(shlex.split(line.code, comments=True)[1:])
                except SystemExit as ended:
                    code = ended.code or 0
            complaints.seek(0)
            complaint = complaints.read()
        self._require(line, code == 0, f"exit code {code}: {line.code}\n{printed.getvalue()}{complaint}")
        return printed.getvalue()

    def _bash(self, line: Block) -> str:
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = ["bash", "-euo", "pipefail", "-c", line.code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        self._require(
            line, done.returncode == 0, f"exit code {done.returncode}: {line.code}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def _compare(self, block: Block) -> None:
        if self.outputs is not None:
            self.outputs.append((block, self.printed))
            return
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(block.code, self.printed, flags)
        self._require(block, same, f"printed is\n{self.printed}")

    def _require(self, block: Block, holds: bool, complaint: str = "") -> None:
        assert holds, f"{name(self.page)}, line {block.line}: {complaint}"

    def _printing(self) -> contextlib.redirect_stdout[io.StringIO]:
        return contextlib.redirect_stdout(io.StringIO())


def _logical_lines(code: str) -> list[tuple[int, str]]:
    """Commands with their line numbers; a backslash at the end of a line joins it with the next."""
    result: list[tuple[int, str]] = []
    joined, start = "", 0
    for number, text in enumerate(code.splitlines()):
        start = start if joined else number
        joined += text.removesuffix("\\") if text.endswith("\\") else text
        if text.endswith("\\"):
            continue
        if joined.strip() and not joined.strip().startswith("#"):
            result.append((start, joined.strip()))
        joined = ""
    return result


def _installable(line: str) -> tuple[bool, str]:
    """Whether each thing to install is the project, its engine, or an extra that it has."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in shlex.split(line, comments=True)[2:]:
        wanted = re.fullmatch(r"(?:\.|forethought)(?:\[([\w,-]+)\])?", word)
        if word in ("-e", "./engine"):
            continue
        if wanted is None:
            return False, f"pip install of {word!r}, which is no part of the project"
        unknown = set((wanted[1] or "").split(",")) - set(extras) - {""}
        if unknown:
            return False, f"pyproject.toml has no extra {', '.join(sorted(unknown))}"
    return True, ""


def _understood(words: list[str]) -> tuple[bool, str]:
    """Whether `forethought` has a command, and the command the flags that are given to it."""
    place = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    said = _help(tuple(words[: min(place, 2)]))
    if said is None:
        return False, f"forethought has no command {' '.join(words[:place])}"
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    unknown = sorted(flag for flag in flags if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", said))
    return not unknown, f"forethought {' '.join(words[:place])} knows no {', '.join(unknown)}"


@cache
def _help(command: tuple[str, ...]) -> str | None:
    """What `forethought COMMAND --help` prints; None if there is no such command."""
    from forethought.cli import run

    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        try:
            code = run([*command, "--help"])
        except SystemExit as ended:
            code = ended.code or 0
    return None if code else printed.getvalue()


@contextlib.contextmanager
def _unchecked_types() -> Iterator[None]:
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


def _makeable(line: str) -> tuple[bool, str]:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    unknown = set(shlex.split(line, comments=True)[1:]) - set(targets)
    return not unknown, f"the Makefile has no target {', '.join(sorted(unknown))}"


def rewrite(page: Path) -> None:
    """Write what a page's blocks print into its `output` blocks."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(page, Path(folder), outputs=[])
        runner.run()
    lines = page.read_text(encoding="utf-8").splitlines()
    for block, printed in reversed(runner.outputs or []):
        lines[block.line - 1 : block.line - 1 + len(block.code.splitlines())] = printed.rstrip().splitlines()
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]).resolve())
