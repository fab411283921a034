"""Micro-batches as M2PO's selection sees them: columns, passes, canonical row numbers, ranks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from m2po_lab.core import selection_device, selection_scan
from m2po_lab.core.arrays import Array
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.host import to_host, to_library
from m2po_lab.core.radix import Ints
from m2po_lab.core.selection_scan import TRASH, Columns, host_columns, raw_columns

Reduce: TypeAlias = Callable[[Any], Any]
Rows: TypeAlias = Array | Sequence[int] | None
POSITION_BITS = 31
"""A token's place is row * 2^31 + position: rows below 2^32, rows of up to 2^31 tokens."""
DEVICES = ("cuda",)
"""Types of device with their own passes; tensors elsewhere are looked at on the host."""
NAMED = 5
"""So many rows are named in an error."""


@dataclass(frozen=True, eq=False)
class Part:
    """A micro-batch, its columns, the passes that suit its memory, and the numbers of its rows."""

    batch: TokenBatch
    columns: Columns
    scan: Any
    rows: Ints

    def places(self, flat: Ints) -> Ints:
        """Place in the mini-batch's canonical order of tokens given by their flat index."""
        if self.batch.lengths is None:
            width = max(self.batch.shape[1], 1)
            row, position = flat // width, flat % width
        else:
            ends = np.cumsum(to_host(self.batch.lengths).astype(np.int64))
            row = np.searchsorted(ends, flat, side="right")
            position = flat - np.concatenate([[0], ends])[row]
        return (self.rows[row] << POSITION_BITS) + position


def part(batch: TokenBatch, ratio: str, rows: Ints | None = None) -> Part:
    """Choose the passes by where the batch lies; rows are counted from 0 where not given."""
    numbers = np.arange(batch.n_rows) if rows is None else rows
    columns = raw_columns(batch, ratio)
    if getattr(columns.keep.device, "type", None) in DEVICES:
        return Part(batch, columns, selection_device, numbers)
    return Part(batch, host_columns(batch, ratio), selection_scan, numbers)


def parts_of(
    batches: TokenBatch | Iterable[TokenBatch], ratio: str, rows: Any, reduce: Reduce | None
) -> list[Part]:
    """Pair the batches with the canonical numbers of their rows."""
    if isinstance(batches, TokenBatch):
        batches, rows = [batches], None if rows is None else [rows]
    batches = list(batches)
    if rows is None:
        if reduce is not None:
            raise ValueError(
                "solving over ranks needs rows=, the number of each row in the mini-batch, so that"
                " tied tokens are treated alike on every rank"
            )
        ends = np.cumsum([batch.n_rows for batch in batches])
        rows = [
            np.arange(end - batch.n_rows, end) for batch, end in zip(batches, ends, strict=True)
        ]
    rows = list(rows)
    if len(rows) != len(batches):
        raise ValueError(f"rows has {len(rows)} entries for {len(batches)} batches; pass one each")
    numbered = [row_numbers(r, batch) for r, batch in zip(rows, batches, strict=True)]
    return [part(batch, ratio, r) for batch, r in zip(batches, numbered, strict=True)]


def row_numbers(rows: Any, batch: TokenBatch) -> Ints:
    """Check the canonical numbers of a batch's rows and bring them to the host."""
    host = to_host(rows) if hasattr(rows, "shape") else np.asarray(rows, dtype=np.int64)
    numbers = host.astype(np.int64)
    if numbers.shape != (batch.n_rows,):
        raise ValueError(f"rows has shape {numbers.shape} for {batch.n_rows} rows; pass one each")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < 1 << 32:
        raise ValueError(
            f"rows run from {numbers.min()} to {numbers.max()}; number them from 0 to 2^32 - 1"
        )
    return numbers


def places_of(parts: list[Part], find: Callable[[Any, Columns], Ints]) -> Ints:
    """Return the places of the tokens that `find(scan, columns)` finds in each part."""
    found = [part.places(find(part.scan, part.columns)) for part in parts]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def collect_from(parts: list[Part], low: int, high: int) -> Iterator[Ints]:
    """Yield the keys in [low, high) of each part's tokens of H."""
    for each in parts:
        yield each.scan.collect(each.columns, low, high)


def tally(parts: list[Part]) -> Any:
    """Return the first level of the selection over these parts, on their device."""
    tallies = [part.scan.tally(part.columns) for part in parts]
    return sum(tallies[1:], tallies[0]) if tallies else np.zeros((TRASH + 1, 3), dtype=np.int64)


def reducer(parts: list[Part], reduce: Reduce | None) -> Callable[[Any], Ints]:
    """Return a function that sums a table over ranks and brings it to the host."""

    def over_ranks(table: Any) -> Ints:
        if reduce is not None:
            if isinstance(table, np.ndarray) and parts:
                table = to_library(table, parts[0].batch.keep)
            result = reduce(table)
            table = table if result is None else result
        return to_host(table)

    return over_ranks


def check_finite(parts: list[Part], count: int) -> None:
    """Raise for non-finite log-ratios, naming the rows of this rank."""
    if count == 0:
        return
    places = places_of(parts, lambda scan, columns: scan.non_finite(columns))
    rows = np.unique(places >> POSITION_BITS)
    named = ", ".join(str(row) for row in rows[:NAMED].tolist())
    more = "" if rows.size <= NAMED else f" and {rows.size - NAMED} more"
    where = f"rows {named}{more}" if rows.size else "rows of another rank"
    first = ""
    if places.size:
        place = int(places.min())
        first = f" (first: row {place >> POSITION_BITS}, position {place % (1 << POSITION_BITS)})"
    raise ValueError(
        f"{count} kept tokens have a NaN or infinite log-ratio, in {where}{first}; M2PO never masks"
        " them silently: drop them from keep, or find out where they come from"
    )
