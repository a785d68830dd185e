"""The directive `not-run`: code that the tests cannot run, with the reason where every reader sees it."""

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives


class NotRun(Directive):
    """A code block of the language given, under a line that says why it is not run (the option `because`)."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"because": directives.unchanged_required}  # pyright: ignore[reportIncompatibleVariableOverride]

    def run(self) -> list[nodes.Node]:
        """The line and the block."""
        if not self.options.get("because"):
            raise self.error("not-run needs the option because")
        code = "\n".join(self.content)
        block = nodes.literal_block(code, code, language=self.arguments[0])
        said = f"Not run by this project's tests: {self.options['because']}."
        return [nodes.container("", nodes.paragraph(said, said), block, classes=["not-run"])]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("not-run", NotRun)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
