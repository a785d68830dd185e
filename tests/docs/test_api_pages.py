"""The API reference holds every public name, and no name that is not there."""

import ast
import re
from importlib import import_module

import pytest
from page_runner import DOCS, ROOT

from forethought import CurriculumConfig
from forethought.cli import COMMANDS

PACKAGES = (
    "forethought",
    "forethought.craftax",
    "forethought.curriculum",
    "forethought.minigrid",
    "forethought.simulate",
)
ADAPTERS = ("gymnasium", "jax", "rllib", "sb3", "torch", "trl")
INTERNAL = {"assign", "check_takes_tasks", "Edges", "Problem"}
"""Of the adapters: what other adapters use, and the constants of a compiled program."""


def documented() -> dict[str, set[str]]:
    """Module -> names that a directive of the reference shows from it."""
    found: dict[str, set[str]] = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        module, within = "", False
        for kind, argument in re.findall(r"^ *(?:\.\. |:)([\w-]+)(?:::|:) *(.*)$", page.read_text(), re.MULTILINE):
            if kind in ("currentmodule", "automodule"):
                module, within = argument, kind == "automodule"
            elif kind.startswith("auto"):
                found.setdefault(module, set()).add(argument)
                within = False
            elif kind == "members" and within:
                found.setdefault(module, set()).update(name for name in argument.split(", ") if name)
    return found


SHOWN = documented()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented(package):
    names = set().union(*SHOWN.values())
    assert sorted(set(import_module(package).__all__) - names) == []


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_public_name_of_an_adapter_is_documented(adapter):
    tree = ast.parse((ROOT / f"src/forethought/adapters/{adapter}.py").read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public = {name for name in defined if not name.startswith("_")}
    assert public - INTERNAL == SHOWN[f"forethought.adapters.{adapter}"]


def test_no_public_member_is_left_out():
    left_out = [re.findall(r":exclude-members: *(.*)", page.read_text()) for page in (DOCS / "api").glob("*.md")]
    assert set().union(*left_out) <= {"__init__"}


def test_the_adapters_are_those_that_the_package_names():
    assert set(import_module("forethought.adapters").__all__) == set(ADAPTERS)


def test_the_settings_that_a_page_gives_with_their_defaults_have_them():
    defaults, found = CurriculumConfig(), 0
    for page in (DOCS / "method.md", DOCS / "howto" / "methods.md", DOCS / "howto" / "own-graph.md"):
        for name, value in re.findall(r"`(\w+)`\s\((\d[\d.]*)", page.read_text(encoding="utf-8")):
            assert float(value) == getattr(defaults, name), f"{page.name}: {name}"
            found += 1
    assert found > 8


def test_every_command_is_listed_as_the_command_line_lists_it():
    page = (DOCS / "api" / "commands.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `forethought (\w+)` \| (.*) \|$", page, re.MULTILINE)) == COMMANDS
