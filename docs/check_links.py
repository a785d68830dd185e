"""Check a built site without a network: every link inside it leads somewhere, and no page loads anything from outside.

python docs/check_links.py docs/build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
"""What a browser fetches unasked."""


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append((value, (tag, name) in LOADS))


def problems(site: Path) -> list[str]:
    """Everything wrong with the links of a site, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: holds no HTML page"]
    found = []
    for path, page in pages.items():
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme == "data" or ((parts.scheme or parts.netloc) and not loaded):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if parts.scheme or parts.netloc:
                complaint = "loads from outside"
            elif not target.exists():
                complaint = "no such file"
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                complaint = "no such place in the page"
            else:
                continue
            found.append(f"{path.relative_to(site.resolve())}: {link}: {complaint}")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "all links inside the site lead somewhere")
    sys.exit(bool(wrong))
