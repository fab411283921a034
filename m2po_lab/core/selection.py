"""M2PO's selection (arXiv 2510.01161, Algorithm 1): solve the threshold once, apply it anywhere."""

from m2po_lab.core.arrays import Array, namespace
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.selection_variants import keep_all_tokens, keep_areal, keep_released

__all__ = ["eligible", "keep_all_tokens", "keep_areal", "keep_m2po", "keep_released"]


def eligible(batch: TokenBatch, ratio: str = "current/behavior") -> Array:
    """Trust-region tokens H: valid and (A > 0 and d > 0) or (A < 0 and d < 0); A = 0 never is.

    Taken from the sign of the log-ratio: a ratio in float32 would lose tokens with |d| < 6e-8.

    Returns:
        Boolean, the batch's shape.

    Raises:
        ValueError: no advantages, or a column of the ratio is absent.
    """
    if batch.advantage is None:
        raise ValueError("trust-region tokens need advantage, which this batch does not have")
    d, a = batch.log_ratio(ratio), batch.advantage
    return namespace(d).logical_and(batch.keep, ((a > 0) & (d > 0)) | ((a < 0) & (d < 0)))


def keep_m2po(batch: TokenBatch, budget: float, ratio: str = "current/behavior") -> Array:
    """Keep every valid token but the largest of H, until the mean of d^2 over the rest fits."""
    import math

    import numpy as np

    from m2po_lab.core.host import to_host, to_library

    d = to_host(batch.log_ratio(ratio))
    if not np.isfinite(d).all():
        raise ValueError("non-finite log-ratio on a kept token")
    if not budget >= 0:
        raise ValueError(f"budget is {budget}; pass a number of nats^2 that is at least 0")
    keep = to_host(batch.keep).copy().reshape(-1)
    index = np.flatnonzero(to_host(eligible(batch, ratio)).reshape(-1))
    square = (d * d).reshape(-1)[index]
    order = np.argsort(square, kind="stable")
    n = len(order)
    while n and math.fsum(square[order[:n]]) / n > budget:
        n -= 1
    keep[index[order[n:]]] = False
    return to_library(keep.reshape(d.shape), batch.keep)
