"""Sequence-level log-ratios, reduced per row in log space: product and geometric mean."""

from m2po_lab.core.arrays import Array
from m2po_lab.core.batch import TokenBatch

KINDS = ("product", "geometric")


def sequence_log_ratio(
    batch: TokenBatch, ratio: str = "current/behavior", kind: str = "product"
) -> tuple[Array, Array]:
    """Return one log-ratio a row, and which rows have one.

    product: log S_i = sum_t d_t, the exact importance weight of the whole response (TRL and verl's
    sequence-level correction); geometric: log s_i = mean_t d_t (GSPO, arXiv 2507.18071). Thresholds
    for one do not transfer to the other. Nothing is exponentiated here, so products over thousands
    of tokens neither overflow nor underflow.

    Args:
        batch: tokens; only kept ones enter.
        ratio: name of the ratio, see `RATIOS`.
        kind: "product" or "geometric".

    Returns:
        ((B,) float64 log-ratios in nats, 0 for rows without a kept token; (B,) boolean keep).

    Raises:
        ValueError: unknown kind or ratio, or a column the ratio needs is absent.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; one of {', '.join(KINDS)}")
    xp = batch.xp
    total = batch.row_sum(batch.log_ratio(ratio))
    keep = batch.row_counts > 0
    if kind == "product":
        return total, keep
    count = xp.astype(xp.where(keep, batch.row_counts, xp.ones_like(batch.row_counts)), xp.float64)
    return total / count, keep
