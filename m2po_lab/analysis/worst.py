"""The tokens with the largest |d|, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from m2po_lab.analysis.bins import Floats
from m2po_lab.analysis.chunk import Chunk
from m2po_lab.analysis.finish import finite
from m2po_lab.core.batch import LOGP_FIELDS
from m2po_lab.logs.rows import UNKNOWN

CONTEXT = 8
"""Kept tokens shown on each side of a worst one."""
EXCERPT_CHARACTERS = 400
"""Characters of a response that are kept beside its worst token."""

Token = dict[str, Any]
Rank = tuple[Any, ...]


@dataclass(eq=False)
class Worst:
    """The `size` tokens with the largest |d| of one ratio.

    Ties go by step, then by a hash of the row id, position and lag, so that neither the order of
    rows nor the split into files decides. A token with d = 0 is never among them.

    Attributes:
        size: how many to keep.
        ranked: (rank, token) pairs, largest first; the rank is (-|d|, step, hash of the row's id,
            position, lag), the token is as the report has it, but for `keep` of its context.
    """

    size: int
    ranked: list[tuple[Rank, Token]] = field(default_factory=list)

    def absorb(self, other: "Worst") -> None:
        """Keep the largest of both."""
        both = [*self.ranked, *other.ranked]
        self.ranked = sorted(both, key=lambda pair: pair[0])[: self.size]

    def add(self, chunk: Chunk, d: Floats) -> None:
        """Look through a chunk; d is not finite where it does not count."""
        size = np.where(np.isfinite(d), np.abs(d), 0.0)
        floor = -self.ranked[-1][0][0] if 0 < self.size <= len(self.ranked) else 0.0
        chosen = np.flatnonzero((size >= floor) & (size > 0))
        if chosen.size > self.size > 0:
            least = np.partition(size[chosen], -self.size)[-self.size]
            chosen = chosen[size[chosen] >= least]
        row = chunk.row[chosen]
        place = (chunk.step[row], chunk.key[row], chunk.index[chosen], chunk.lag[chosen])
        rank = (-size[chosen], *place)
        order = np.lexsort(rank[::-1])[: self.size]
        ranks = list(zip(*(column[order].tolist() for column in rank), strict=True))
        found = [_describe(chunk, d, i) for i in chosen[order].tolist()]
        self.absorb(Worst(self.size, list(zip(ranks, found, strict=True))))


def _describe(chunk: Chunk, d: Floats, i: int) -> Token:
    row = int(chunk.row[i])
    columns = chunk.columns

    def known(value: Any, unknown: int) -> int | None:
        return None if int(value) == unknown else int(value)

    token: Token = {
        "row_id": chunk.row_id[row],
        "step": known(chunk.step[row], UNKNOWN),
        "mini_batch": known(chunk.mini_batch[row], UNKNOWN),
        "lag": known(chunk.lag[i], UNKNOWN),
        "position": int(chunk.index[i]),
        "log_ratio": float(d[i]),
    }
    for name in LOGP_FIELDS:
        value = float(np.exp(min(columns[name][i], 0.0))) if name in columns else None
        token[name.replace("logp", "probability")] = finite(value)
    texts = chunk.token_text[row]
    return {
        **token,
        "advantage": _advantage(chunk, i),
        "token_id": known(chunk.token_id[i], -1),
        "text": None if texts is None else texts[int(chunk.index[i])],
        **excerpt(chunk.response[row], texts, int(chunk.index[i])),
        "context": _context(chunk, d, i),
    }


def _advantage(chunk: Chunk, i: int) -> float | None:
    column = chunk.columns.get("advantage")
    return None if column is None else finite(float(column[i]))


def excerpt(response: str | None, texts: Sequence[str] | None, index: int) -> Token:
    """Cut the part of a response around one of its tokens.

    Args:
        response: its text.
        texts: what each of its tokens reads.
        index: the token.

    Returns:
        response: the part, null without a text; response_start: its first character within the
        whole; response_characters: of the whole; response_at: first and last character of the token
        within the part, null where the log does not say: then the part is the beginning. It does
        say if the tokens' texts, joined, are the response or begin with it (special tokens at the
        end are left out of some logs).
    """
    if not response:
        names = ("response", "response_start", "response_characters", "response_at")
        return dict.fromkeys(names)
    at = None
    if texts is not None and "".join(texts).startswith(response):
        start = sum(map(len, texts[:index]))
        at = (start, start + len(texts[index])) if start < len(response) else None
    middle = 0 if at is None else sum(at) // 2
    last = max(0, len(response) - EXCERPT_CHARACTERS)
    first = min(max(0, middle - EXCERPT_CHARACTERS // 2), last)
    part = response[first : first + EXCERPT_CHARACTERS]
    within = None if at is None else [max(at[0] - first, 0), min(at[1] - first, len(part))]
    return {
        "response": part,
        "response_start": first,
        "response_characters": len(response),
        "response_at": within,
    }


def _context(chunk: Chunk, d: Floats, i: int) -> list[Token]:
    """Kept tokens of the same row around token i, itself included."""
    near = np.arange(max(0, i - CONTEXT), min(chunk.n, i + CONTEXT + 1))
    near = near[chunk.row[near] == chunk.row[i]]
    texts = chunk.token_text[int(chunk.row[i])]
    return [
        {
            "position": int(chunk.index[k]),
            "token_id": None if chunk.token_id[k] == -1 else int(chunk.token_id[k]),
            "text": None if texts is None else texts[int(chunk.index[k])],
            "log_ratio": finite(float(d[k])),
            "advantage": _advantage(chunk, k),
        }
        for k in near.tolist()
    ]
