"""Canonical rows -> ragged TokenBatch: the one place where logged lists are aligned to tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core.batch import LOGP_FIELDS, TokenBatch
from m2po_lab.logs import facts, values
from m2po_lab.logs.hashing import row_hashes
from m2po_lab.logs.rows import Bools, Floats, Ints, Rows
from m2po_lab.logs.token_text import token_texts

FLOAT_COLUMNS = (*LOGP_FIELDS, "weights", "entropy", "advantage")
_BROADCAST = ("advantage", "version", "keep")
_MUST_ALIGN = (*LOGP_FIELDS, "weights", "keep")
_UNKNOWN_VERSION = -1


def token_count(row: Mapping[str, Any]) -> int:
    """How many tokens a canonical row has: its tokens, else its mask, else its log-probs.

    Tokens that hold the prompt as well are cut to the response where the row says how long either
    is; a row without any token column has none.
    """
    if "token_ids" in row:
        return facts.tokens_in_response(row)
    for name in ("keep", *LOGP_FIELDS, "weights", "entropy", "version", "advantage"):
        value = row.get(name)
        if value is not None and values.is_sequence(value):
            return len(values.unwrapped(value))
    return 0


@dataclass
class _Column:
    """One per-token column while it is put together."""

    values: NDArray[Any]
    null: Bools
    absent: Bools
    difference: Ints
    misfits: dict[int, NDArray[Any]] = field(default_factory=dict)
    seen: bool = False


@dataclass
class _Layout:
    """Row lengths of the batch, and where each row starts."""

    rows: Sequence[Mapping[str, Any]]
    lengths: Ints
    starts: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Sum the lengths up."""
        self.starts = np.cumsum(self.lengths) - self.lengths

    def column(self, name: str, fill: float | bool, dtype: Any) -> _Column:
        """Lay the column of every row out flat; rows that do not fit keep `fill`."""
        n, b = int(self.lengths.sum()), len(self.lengths)
        out = _Column(
            np.full(n, fill, dtype),
            np.zeros(n, np.bool_),
            np.zeros(b, np.bool_),
            np.zeros(b, np.int64),
        )
        for i, row in enumerate(self.rows):
            value = row.get(name)
            if value is None:
                out.absent[i] = True
                continue
            out.seen = True
            self._place(out, i, name, value, dtype)
        return out

    def _place(self, out: _Column, i: int, name: str, value: Any, dtype: Any) -> None:
        """Write one row of a column if its length fits, else note by how much it does not."""
        n, start = int(self.lengths[i]), int(self.starts[i])
        null = None
        if name == "keep":
            entries: NDArray[Any] = values.mask(value)
        else:
            entries, null = values.numbers(value)
        scalar = not values.is_sequence(value)
        if name == "version":
            entries = _versions(entries)
            scalar = scalar or (len(entries) > 0 and bool((entries == entries[0]).all()))
        if scalar and (name in _BROADCAST or n == 1) and len(entries):
            entries, null = np.repeat(entries[:1], n), None
        out.difference[i] = len(entries) - n
        if len(entries) == n:
            out.values[start : start + n] = entries.astype(dtype)
            if null is not None:
                out.null[start : start + n] = null
        else:
            out.misfits[i] = entries


def _versions(entries: Floats) -> Ints:
    """Versions as integers; null, text and anything below 0 is unknown."""
    known = np.isfinite(entries) & (entries >= 0) & (entries < 2**62)
    return np.where(known, np.where(known, entries, 0).astype(np.int64), _UNKNOWN_VERSION)


def assemble(
    records: Sequence[Mapping[str, Any]],
    source: str,
    lines: Sequence[int],
    step: int | None = None,
) -> TokenBatch:
    """Turn canonical rows into one ragged float64 batch with its Rows.

    A column that does not fit the tokens of its row is never cut or padded: the row holds NaN there
    and, if it is a log-prob column or the mask, is marked `unaligned`; a version that does not fit
    is unknown.

    Args:
        records: rows under the canonical names of `columns.SYNONYMS`.
        source: file they come from.
        lines: line or row number of each in that file.
        step: step of the file, for rows without one of their own.
    """
    records = [facts.one_turn_versions(row) for row in records]
    lengths = np.array([token_count(row) for row in records], dtype=np.int64)
    layout = _Layout(records, lengths)
    columns = {name: layout.column(name, np.nan, np.float64) for name in FLOAT_COLUMNS}
    columns["keep"] = layout.column("keep", True, np.bool_)
    columns["version"] = layout.column("version", _UNKNOWN_VERSION, np.int64)
    seen = {name: column for name, column in columns.items() if column.seen}
    unaligned = np.zeros(len(records), np.bool_)
    for name in _MUST_ALIGN:
        if name in seen:
            unaligned |= seen[name].difference != 0
    arrays = {name: column.values for name, column in seen.items() if name != "weights"}
    if "weights" in seen:
        _behavior_from_weights(arrays, seen["weights"].values)
    rows = _rows(records, layout, seen, unaligned, source, lines, step)
    return TokenBatch(**arrays, lengths=lengths, rows=rows)


def _behavior_from_weights(arrays: dict[str, NDArray[Any]], weights: Floats) -> None:
    """Fill behavior log-probs that are missing from logged weights: numerator - log(weight)."""
    numerator = arrays.get("proximal_logp", arrays.get("current_logp"))
    if numerator is None:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        derived = numerator - np.log(weights)
    behavior = arrays.get("behavior_logp")
    if behavior is not None:
        derived = np.where(np.isnan(behavior) & ~np.isnan(weights), derived, behavior)
    arrays["behavior_logp"] = derived


def _rows(
    records: Sequence[Mapping[str, Any]],
    layout: _Layout,
    seen: dict[str, _Column],
    unaligned: Bools,
    source: str,
    lines: Sequence[int],
    step: int | None,
) -> Rows:
    """Everything of the records that is not a token array of the batch."""
    token_ids = facts.token_ids(records, layout.lengths)
    hashed = {name: seen[name].values for name in sorted(seen) if name != "version"}
    if token_ids is not None:
        hashed["token_ids"] = token_ids
    per_row = facts.per_row(records, layout.lengths, step)
    content = row_hashes(hashed, layout.lengths) ^ facts.text_hashes(per_row)
    return Rows(
        source=[source] * len(records),
        line=np.asarray(lines, dtype=np.int64),
        token_ids=token_ids,
        token_text=token_texts(records, layout.lengths.tolist()),
        weights=seen["weights"].values if "weights" in seen else None,
        nulls={name: c.null for name, c in seen.items() if c.null.any()},
        absent={name: c.absent for name, c in seen.items() if c.absent.any()},
        length_difference={n: c.difference for n, c in seen.items() if c.difference.any()},
        misfits={name: c.misfits for name, c in seen.items() if c.misfits},
        unaligned=unaligned,
        retokenised=facts.retokenised(records),
        content=content,
        has_mask="keep" in seen,
        **per_row,
    )
