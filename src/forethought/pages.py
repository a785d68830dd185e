"""Parts of self-contained HTML pages: pages that open from disk, load nothing, and forbid themselves to."""

import base64
import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np


def fill(package: str, template: str, **parts: str) -> str:
    """The text of a page: a template in a package's folder `page` with its `$parts` put in as they are.

    Args:
        package: such as `forethought.judging`.
        template: name of the file.
        parts: HTML, style, script and data; texts in them must be escaped already.
    """
    return Template(page_file(package, template)).substitute(parts)


def page_file(package: str, name: str) -> str:
    """The text of a file in a package's folder `page`."""
    return (files(package) / "page" / name).read_text(encoding="utf-8")


def section(title: str, content: str) -> str:
    """A section with a heading; the title is a text, the content HTML."""
    return f"<section>\n<h2>{html.escape(title)}</h2>\n{content}\n</section>"


def table(rows: Iterable[Sequence[str]], cls: str = "", head: Sequence[str] = ()) -> str:
    """A table of texts, that scrolls sideways where it is too wide."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if head else ""
    body = "\n".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table class="{cls}">{top}<tbody>\n{body}\n</tbody></table></div>'


def script_safe(document: Any) -> str:
    """JSON that no text in it can end the script element of."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def encode_array(values: np.ndarray, kind: str) -> str:
    """Base64 of an array's bytes; `kind` is a NumPy dtype such as `<f4`."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind)).tobytes()).decode("ascii")
