"""What a caller may choose about a figure."""

from collections.abc import Iterable
from dataclasses import dataclass

from forethought.experiments.figures.names import METHODS, ordered
from forethought.experiments.figures.style import WIDTHS


@dataclass(frozen=True)
class Options:
    """Choices about a figure; empty ones leave them to the figure."""

    width: str = "page"
    methods: tuple[str, ...] = ()
    """Methods that are drawn."""
    goals: tuple[str, ...] = ()
    """Auxiliary goals whose dynamics are drawn."""
    target: str = ""
    """The target whose dynamics are drawn."""

    def __post_init__(self):
        if self.width not in WIDTHS:
            raise ValueError(f"width is {self.width!r}; allowed: {', '.join(WIDTHS)}")

    def chosen(self, available: Iterable[str], default: Iterable[str] = METHODS) -> list[str]:
        """The methods to draw, in the order of all figures.

        Args:
            available: Methods with records.
            default: Methods the figure shows when none are chosen; methods the paper has not are shown too if this is
                left as it is.

        Raises:
            ValueError: for a chosen method without records.
        """
        available = set(available)
        if unknown := [method for method in self.methods if method not in available]:
            allowed = ", ".join(ordered(available, METHODS))
            raise ValueError(f"method is {unknown[0]!r}; those with evaluated runs are: {allowed}")
        if self.methods:
            return ordered(self.methods, METHODS)
        default = tuple(default)
        return ordered(available if default == METHODS else available & set(default), METHODS)

    def wants(self, method: str, default: Iterable[str] | None = None) -> bool:
        """Whether a method belongs to a figure that shows `default` (None: all) unless methods are chosen."""
        return method in self.methods if self.methods else default is None or method in default
