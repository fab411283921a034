"""Three rules that go by the name of M2PO and select other tokens than the paper's Algorithm 1.

Each reproduces a public implementation token by token, so that a run made with it can be explained.
They differ in what is selected over, in the rule, and in whether a kept token counts (METHODS):

* `keep_released`: the authors' code (Infini-AI-Lab/M2PO af54a3e), a water-filling cap turned into a
  PPO clip range.
* `keep_areal`: AReaL (4aef98d), all valid tokens, proximal against behavior, advantages ignored.
* `keep_all_tokens`: a SkyRL fork, the mean runs over all valid tokens though only the trust-region
  ones can go.

All three work on one batch, sort it, and answer on the host. No gradient flows through.
"""

from dataclasses import dataclass

import numpy as np

from m2po_lab.core.arrays import Array
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.host import Host, to_host, to_library

SLACK = 1e-12
"""The released code's epsilon: in comparisons and under the root, where it decides at the break."""
NO_CLIP = 100000.0
"""Upper bound of the ratio that the released code uses for "no clipping needed"."""


@dataclass(frozen=True)
class Released:
    """What the authors' code decides for one batch.

    Attributes:
        keep: boolean, the batch's shape; valid tokens that the clip range does not bind on.
        clip_low: epsilon of the lower bound; where A < 0, ratios below 1 - clip_low are clipped.
        clip_high: epsilon of the upper bound; where A > 0, ratios above 1 + clip_high are clipped.
        m2_before: its mean of (log r)^2 over its trust-region tokens in nats^2, 0 for none.
        m2_after: the same with the cap, as that code logs it.
    """

    keep: Array
    clip_low: float
    clip_high: float
    m2_before: float
    m2_after: float


def keep_released(
    batch: TokenBatch,
    budget: float,
    miniclip_low: float | None = None,
    miniclip_high: float | None = None,
) -> Released:
    """Clip as the authors' released code does, rounding included.

    Trust-region tokens: the ratio is above (A > 0) or below (A < 0) 1, with the sign of A from the
    first position of the row, masked or not. With their squares v ascending, the cap is v[k-1] for
    the first k with sum_{i<=k} v_i + (n-k-1) (v_k - 1e-12) >= budget n - 1e-12, and the clip range
    is exp(+-sqrt(v[k-1] - 1e-12)) in float32, zero for k = 0. Any valid token whose own advantage
    and ratio lie beyond it is clipped; A = 0 never is.

    Ratios and squares are float32, in which a ratio with |d| < 6e-8 is 1, where all kept log-probs
    are float32 numbers (whatever the dtype that holds them), else float64, as torch would have it.

    Args:
        batch: needs current_logp, behavior_logp, advantage.
        budget: bound on M2 in nats^2, at least 0.
        miniclip_low: smallest clip_low that is used; None for no such bound.
        miniclip_high: smallest clip_high that is used; None for no such bound.

    Raises:
        ValueError: where that code crashes: a budget of about 0, an infinite log-ratio, a break
            below 1e-12; or a column is missing.
    """
    advantage = _advantage(batch)
    keep = to_host(batch.keep)
    d = _difference(batch, "current_logp", "behavior_logp")
    precision = np.float32 if _is_float32(batch) else np.float64
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        d = d.astype(precision)
        ratio = np.exp(d.astype(np.float64)).astype(precision)
        square = d * d
    sign = _row_sign(batch, advantage)
    above, below = precision(1 + SLACK), precision(1 - SLACK)
    region = keep & (((sign > SLACK) & (ratio > above)) | ((sign < -SLACK) & (ratio < below)))
    cap, before, after = _water_filling(np.sort(square[region]), budget)
    low = 1.0 if cap is None else 1 - _float32_exp(-cap)
    high = NO_CLIP - 1 if cap is None else _float32_exp(cap) - 1
    low = low if miniclip_low is None else max(low, miniclip_low)
    high = high if miniclip_high is None else max(high, miniclip_high)
    clipped = (advantage > 0) & (ratio > precision(1 + high))
    clipped |= (advantage < 0) & (ratio < precision(1 - low))
    return Released(to_library(keep & ~clipped, batch.keep), low, high, before, after)


def _float32_exp(x: float) -> float:
    """Exp of x as a float32 number, rounded once (float32 exp differs between libraries)."""
    return float(np.float32(np.exp(np.float64(np.float32(x)))))


def _is_float32(batch: TokenBatch) -> bool:
    """Whether every kept log-prob is a float32 number."""
    keep = to_host(batch.keep)
    for name in ("current_logp", "behavior_logp"):
        values = to_host(getattr(batch, name))
        if values.dtype == np.float64:
            kept = values[keep]
            with np.errstate(over="ignore", under="ignore"):
                if not np.array_equal(kept.astype(np.float32), kept, equal_nan=True):
                    return False
    return True


def _water_filling(squares: Host, budget: float) -> tuple[float | None, float, float]:
    """Return sqrt of the cap (None for no clipping), M2 before and after; squares ascend.

    Running sums are taken in float64 and rounded to the precision of the squares, as torch does it
    on a CPU.
    """
    n = squares.shape[0]
    if n == 0:
        return None, 0.0, 0.0
    values = squares.astype(np.float64)
    target = budget * n
    with np.errstate(over="ignore", invalid="ignore"):
        running = np.cumsum(values).astype(squares.dtype).astype(np.float64)
        total = float(running[-1])
        before = total / n
        if before <= budget + SLACK:
            return None, before, before
        if target >= total - SLACK or target <= SLACK:
            raise ValueError(
                f"m2po_released: the authors' code crashes at budget {budget} with M2 {before:.6g}"
                " over the trust-region tokens; pass a budget above 1e-12 / n, or use m2po"
            )
        rest = np.arange(n - 1, -1, -1)
        reached = (values - SLACK) * rest + running >= target - SLACK
    if not reached.any():
        raise ValueError(
            "m2po_released: the authors' code crashes on an infinite log-ratio; drop such tokens"
            " from keep, or use m2po, which names the rows"
        )
    k = int(np.argmax(reached))
    if k == 0:
        return 0.0, before, before
    under_root = float(values[k - 1]) - SLACK
    if under_root < 0:
        raise ValueError(
            f"m2po_released: the authors' code crashes where the squared log-ratio at the break"
            f" ({values[k - 1]:.3g}) is below {SLACK}; use m2po"
        )
    after = (float(values[k - 1]) * (n - k) + float(running[k - 1])) / n
    return under_root**0.5, before, after


def keep_areal(batch: TokenBatch, budget: float) -> Array:
    """Keep tokens as AReaL does: drop the largest (log b)^2 until the mean of the rest is < budget.

    Selected over all valid tokens whatever their advantage, b = p / mu; without proximal log-probs
    the current ones stand in. At least one token stays. Of tied tokens the last ones stay. A NaN or
    an infinity counts as the largest and goes first.

    Args:
        batch: needs behavior_logp and proximal_logp or current_logp.
        budget: bound on the mean in nats^2; at 0 one token stays.

    Returns:
        Boolean, the batch's shape. AReaL divides by the tokens that stay.

    Raises:
        ValueError: a column is missing, or the budget is negative or NaN.
    """
    _check_budget(budget)
    top = "current_logp" if batch.proximal_logp is None else "proximal_logp"
    keep = to_host(batch.keep).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        d = _difference(batch, top, "behavior_logp")[keep]
        square = np.where(np.isfinite(d), d * d, np.inf)
        order = _stable_descending(square)
        mean = np.cumsum(square[order][::-1]) / np.arange(1, len(d) + 1)
    below = np.flatnonzero(mean < budget)
    stay = int(below[-1]) + 1 if len(below) else 1
    chosen = np.zeros(len(d), dtype=bool)
    chosen[order[max(len(d) - stay, 0) :]] = True
    keep[keep] = chosen
    return to_library(keep, batch.keep)


def keep_all_tokens(batch: TokenBatch, budget: float) -> Array:
    """Drop the largest trust-region tokens until the mean over all tokens that stay is < budget.

    The mean of (log r)^2 runs over every valid token that stays, inside the region or not, so
    dropping is not monotone: below the mean it makes things worse. The first number of dropped
    tokens that meets the budget counts; where none does (always with a non-finite log-ratio) the
    whole region goes. Of tied tokens the last ones stay.

    Args:
        batch: needs current_logp, behavior_logp, advantage.
        budget: bound on the mean in nats^2; at 0 the whole region goes.

    Returns:
        Boolean, the batch's shape.

    Raises:
        ValueError: a column is missing, or the budget is negative or NaN.
    """
    _check_budget(budget)
    advantage = _advantage(batch)
    keep = to_host(batch.keep).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        d = _difference(batch, "current_logp", "behavior_logp")
        region = keep & (((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0)))
        square = d * d
        order = _stable_descending(square[region])
        gone = np.concatenate([[0.0], np.cumsum(square[region][order])])
        left = int(keep.sum()) - np.arange(len(gone))
        mean = np.where(left > 0, square[keep].sum() - gone, np.nan) / np.maximum(left, 1)
    reached = np.flatnonzero(mean < budget)
    drop = int(reached[0]) if len(reached) else len(order)
    stays = np.ones(len(order), dtype=bool)
    stays[order[:drop]] = False
    keep[region] = stays
    return to_library(keep, batch.keep)


def _check_budget(budget: float) -> None:
    if not budget >= 0:
        raise ValueError(f"budget is {budget}; pass a number of nats^2 that is at least 0")


def _stable_descending(values: Host) -> Host:
    """Indices from the largest to the smallest, tied values in their order."""
    return np.argsort(-values, kind="stable")


def _advantage(batch: TokenBatch) -> Host:
    if batch.advantage is None:
        raise ValueError("M2PO needs advantage, which this batch does not have")
    return to_host(batch.advantage)


def _difference(batch: TokenBatch, top: str, bottom: str) -> Host:
    """Return top - bottom in float64, 0 where not kept."""
    for name in (top, bottom):
        if getattr(batch, name) is None:
            raise ValueError(f"this selection needs {name}, which this batch does not have")
    a, b = to_host(getattr(batch, top)), to_host(getattr(batch, bottom))
    with np.errstate(invalid="ignore"):  # padding may hold anything, inf - inf included
        d = a.astype(np.float64) - b.astype(np.float64)
    return np.where(to_host(batch.keep), d, 0.0)


def _row_sign(batch: TokenBatch, advantage: Host) -> Host:
    """Advantage at position 0 of the row, for every token (the released code reads no other)."""
    if batch.lengths is None:
        return np.broadcast_to(advantage[:, :1], advantage.shape)
    lengths = to_host(batch.lengths).astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    return np.repeat(advantage[starts], lengths[lengths > 0])
