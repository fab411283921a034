"""A table that never cuts a number: columns that may go are dropped until the rest fits."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

GAP = 2


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        head: its title.
        cells: its texts, one a line.
        left: aligned left instead of right.
        style: a rich style for the cells.
        long: its texts may be folded on a page; a terminal folds the first column only.
        drop: 0 stays whatever the width; of the others the highest goes first.
    """

    head: str
    cells: Sequence[str]
    left: bool = False
    style: str = ""
    long: bool = False
    drop: int = 0

    @property
    def width(self) -> int:
        """Columns of the terminal it takes, the gap before the next one left out."""
        return max(map(cell_len, (self.head, *self.cells)))


def fit(columns: Sequence[Column], width: int) -> Table:
    """Lay columns out in at most `width`; when no more may be dropped, the first folds."""
    kept = list(columns)
    while _total(kept) > width and any(c.drop for c in kept):
        kept.remove(max(kept, key=lambda c: c.drop))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for index, column in enumerate(kept):
        table.add_column(
            Text(column.head),
            justify="left" if column.left else "right",
            style=column.style,
            no_wrap=index > 0,
            overflow="fold",
        )
    for cells in zip(*(c.cells for c in kept), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _total(columns: Sequence[Column]) -> int:
    return sum(c.width for c in columns) + GAP * (len(columns) - 1)
