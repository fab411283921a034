"""Rows: what a log says about each response, beside the token arrays of its TokenBatch."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

UNKNOWN = -(2**63)
"""Marks an integer per-row field (step, version, length) that the log does not give."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
Texts = list[str | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Per-row facts of a ragged batch of B rows and N tokens; what the log does not have is None.

    Args:
        source: file each row came from, for messages.
        line: line or row number in that file, from 1.
        row_id: identity of the response; one row scored by several trainer versions keeps its id.
        group_id: which responses share a prompt (their rewards make the baseline).
        step: trainer step; from its column, else the file or directory name, else `train_version`.
        mini_batch: optimizer mini-batch within the step.
        train_version: weight version that `current_logp` belongs to.
        reward: NaN where absent.
        advantage: where the log gives one a response; a log without tokens has it only here.
        finish_reason: why sampling stopped, in the framework's words.
        prompt, response: text, if the log has any.
        prompt_key: hash of the prompt (ids or text); 0 where unknown.
        prompt_length: prompt tokens, UNKNOWN where absent.
        response_length: response tokens, masked ones included; else characters, see `length_unit`.
        length_unit: "tokens" or "characters".
        token_ids: (N,) ids of the sampled tokens, -1 where unknown.
        token_text: (B,) what each token of the response reads; None where the log does not say.
        weights: (N,) importance weights logged in place of behavior log-probs.
        nulls: column -> (N,) True where the log said null (the array holds NaN there); only columns
            with at least one null. NaN and infinities are in the arrays themselves.
        absent: column -> (B,) True where a row lacks a column that other rows of the batch have
            (its tokens hold NaN); only columns with at least one such row.
        length_difference: column -> (B,) entries minus tokens, 0 where it fits.
        misfits: column -> row of the batch -> the entries as logged, for rows that do not fit.
        unaligned: (B,) a log-prob column or the mask does not fit the tokens; a log-prob holds NaN.
        retokenised: (B,) two id columns of the row disagree.
        content: (B,) hash of what the row holds, identity, step and version left out.
        has_mask: a mask column gave `keep`; False means every token of the response counts.
    """

    source: list[str] | None = None
    line: Ints | None = None
    row_id: Texts | None = None
    group_id: Texts | None = None
    step: Ints | None = None
    mini_batch: Ints | None = None
    train_version: Ints | None = None
    reward: Floats | None = None
    advantage: Floats | None = None
    finish_reason: Texts | None = None
    prompt: Texts | None = None
    response: Texts | None = None
    prompt_key: Hashes | None = None
    prompt_length: Ints | None = None
    response_length: Ints | None = None
    length_unit: str = "tokens"
    token_ids: Ints | None = None
    token_text: list[list[str] | None] | None = None
    weights: Floats | None = None
    nulls: dict[str, Bools] = field(default_factory=dict)
    absent: dict[str, Bools] = field(default_factory=dict)
    length_difference: dict[str, Ints] = field(default_factory=dict)
    misfits: dict[str, dict[int, NDArray[np.generic]]] = field(default_factory=dict)
    unaligned: Bools | None = None
    retokenised: Bools | None = None
    content: Hashes | None = None
    has_mask: bool = False

    def place(self, row: int) -> str:
        """Where row number `row` of the batch stands in the log: "file:line"."""
        source = self.source[row] if self.source else "log"
        return source if self.line is None else f"{source}:{self.line[row]}"
