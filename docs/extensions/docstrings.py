"""Docstrings as they stand in the code, with single backticks and indented examples, made reStructuredText."""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
"""What signatures show in place of `ArrayLike`: the union of seven types that it stands for."""


def setup(app: Any) -> dict[str, bool]:
    """Rewrite docstrings before napoleon reads their sections, and shorten signatures."""
    app.connect("autodoc-process-docstring", _rewrite, priority=400)
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if re.fullmatch(r"Alias for field number \d+", lines[0] if lines else ""):
        lines.clear()
    lines[:] = reworded(lines)


def _shorten(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    return signature and signature.replace(ARRAY_LIKE, "ArrayLike"), returns


def reworded(lines: list[str]) -> list[str]:
    """The lines with literals between double backticks, bars escaped, and indented examples marked as such."""
    result: list[str] = []
    before, verbatim = "", None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if verbatim is not None and line.strip() and indent < verbatim:
            verbatim = None
        example = line.lstrip().startswith((">>>", "...")) or before.lstrip().startswith((">>>", "..."))
        if verbatim is None and line.strip() and not example and result and not result[-1].strip():
            deeper = indent > len(before) - len(before.lstrip())
            if deeper and not before.rstrip().endswith("::") and not re.match(r"\s*- ", line):
                result += [f"{' ' * (indent - 4)}::", ""]
                verbatim = indent
        result.append(line if verbatim is not None or example else _inline(line))
        before = line if line.strip() else before
    return result


def _inline(line: str) -> str:
    parts = re.split(r"(?<!`)(?<!:)`([^`]+)`(?!`)", line)
    for place, text in enumerate(parts):
        if place % 2:
            follows = parts[place + 1][:1]
            parts[place] = f"``{text}``" + ("\\ " if follows.isalnum() else "")
        else:
            parts[place] = text if "``" in text else text.replace("|", "\\|").replace("*", "\\*")
    return "".join(parts)
