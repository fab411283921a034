"""How the losses of tokens become one number, with the host's counts where it has them."""

from dataclasses import dataclass
from typing import Any

from m2po_lab.core.arrays import Array
from m2po_lab.core.batch import TokenBatch

AGGREGATIONS = {
    "token_mean": "sum over tokens / N (DAPO, verl token-mean)",
    "sequence_mean_token_mean": "mean over rows of the mean over the row's tokens (GRPO)",
    "sequence_mean": "mean over rows of a row's one loss, the mean of its token losses (GMPO)",
    "sequence_sum": "mean over rows of the sum over the row's tokens (verl seq-mean-token-sum)",
    "constant": "sum over tokens / (B * max_length) (Dr.GRPO)",
}
"""Name -> what it is. N: counted tokens; B: rows with one. Empty rows count nowhere."""


@dataclass(frozen=True)
class Counts:
    """Tokens and rows of the whole batch, where the batch at hand is a part of it.

    The gradients of the parts then add up to that of the whole. A host that averages gradients over
    ranks instead of adding them passes counts divided by the number of ranks.

    Attributes:
        tokens: N over all parts (all micro-batches, all ranks); only token_mean reads it.
        rows: B over all parts: rows with at least one valid token; token_mean does not read it.
    """

    tokens: Any = None
    rows: Any = None


def divisor(
    aggregation: str,
    batch: TokenBatch,
    counted: Array,
    counts: Counts | None = None,
    max_length: float | None = None,
) -> Array:
    """Return D, the number by which each token's loss is divided so that the sum is the loss.

    Args:
        aggregation: one of AGGREGATIONS.
        batch: gives rows and layout.
        counted: boolean, the tokens that count.
        counts: counts of the whole batch, else those of this one.
        max_length: L_max of the constant aggregation.

    Returns:
        0-d, or one value a token; 1 where there is nothing to divide.
    """
    xp = batch.xp
    whole = counts or Counts()
    if aggregation == "token_mean":
        return _count(xp, whole.tokens, xp.sum(xp.astype(counted, xp.int64)))
    per_row = batch.replace(keep=counted).row_sum(xp.astype(counted, xp.int64))
    rows = _count(xp, whole.rows, xp.sum(xp.astype(per_row > 0, xp.int64)))
    if aggregation == "sequence_sum":
        return rows
    if aggregation == "constant":
        return rows * max_length
    lengths = xp.astype(xp.where(per_row > 0, per_row, xp.ones_like(per_row)), xp.float64)
    return rows * batch.spread(lengths)


def _count(xp: Any, given: Any, own: Array) -> Array:
    """The host's count if it gave one, else the batch's own; at least 1; float64."""
    value = own if given is None else xp.asarray(given, device=own.device)
    value = xp.astype(value, xp.float64)
    return xp.where(value > 0, value, xp.ones_like(value))
