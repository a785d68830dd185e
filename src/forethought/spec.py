"""What an observation holds, in words and numbers; apart from `environment`, whose types load JAX."""

from typing import NamedTuple


class CellTable(NamedTuple):
    """One kind of id in a grid cell, and how many of the cell's channels hold it.

    Channels of one table share its vocabulary, and a learner sums their embeddings.
    """

    name: str
    rows: int
    channels: int = 1


class ObservationSpec(NamedTuple):
    """What an observation holds: a grid of small integer ids and a flat vector of numbers."""

    height: int
    width: int
    tables: tuple[CellTable, ...]
    features: int

    @property
    def channels(self) -> int:
        """Ids in one cell, over all tables."""
        return sum(table.channels for table in self.tables)
