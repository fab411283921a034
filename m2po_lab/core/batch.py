"""TokenBatch: the one shape in which tokens reach every statistic and objective."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from m2po_lab.core.arrays import Array, float64, namespace, row_positions, segment_sum

LOGP_FIELDS = ("behavior_logp", "proximal_logp", "current_logp")
TOKEN_FIELDS = (*LOGP_FIELDS, "advantage", "keep", "entropy", "version")
RATIOS = {
    "current/behavior": ("current_logp", "behavior_logp"),
    "proximal/behavior": ("proximal_logp", "behavior_logp"),
    "current/proximal": ("current_logp", "proximal_logp"),
}
"""Ratio name -> (numerator field, denominator field), in order of preference as the primary one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenBatch:
    """Log-probs of sampled tokens under up to three policies, with what an objective needs besides.

    Two layouts. Padded: every per-token array is (B, T). Ragged: every per-token array is flat,
    (N,), rows one after the other, and `lengths` (B,) says how many tokens each row has. Shapes are
    checked once, here; what lies under `keep == False` is never read, padding may hold anything.

    Args:
        behavior_logp: log-probs in nats under the policy that sampled the tokens (rollout engine).
        proximal_logp: log-probs under the trainer at the start of the step, if it recomputed them.
        current_logp: log-probs under the policy being trained; a torch tensor keeps its gradient.
        advantage: per token, or (B,) and then the same for all tokens of a row.
        keep: which tokens count (the loss mask), boolean or 0/1 integers; None keeps all.
        entropy: entropy of the sampling distribution at each token, in nats.
        version: weight version that sampled each token; below 0 means unknown.
        lengths: (B,) integers for the ragged layout, None for the padded one.
        rows: what a log says about each row (`m2po_lab.logs.rows.Rows`); the core does not read it.

    Raises:
        ValueError: nothing to tell a shape from, or an array that does not fit; it is named.
    """

    behavior_logp: Array | None = None
    proximal_logp: Array | None = None
    current_logp: Array | None = None
    advantage: Array | None = None
    keep: Array | None = None
    entropy: Array | None = None
    version: Array | None = None
    lengths: Array | None = None
    rows: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check shapes, broadcast per-row advantages, make `keep` boolean."""
        first = self._first
        if first is None:
            raise ValueError(f"TokenBatch needs lengths or one of {', '.join(TOKEN_FIELDS)}")
        xp, shape = self.xp, tuple(first.shape)
        if self.lengths is not None:
            shape = (int(xp.sum(self.lengths)),)
        elif len(shape) != 2:
            raise ValueError(
                f"log-probs have shape {shape}; "
                "pass (B, T) arrays, or flat (N,) arrays with lengths="
            )
        object.__setattr__(self, "_shape", shape)
        advantage = self.advantage
        if advantage is not None and advantage.ndim == 1 and self._is_per_row(advantage):
            object.__setattr__(self, "advantage", self.spread(advantage))
        keep = self.keep
        if keep is None:
            keep = xp.ones(shape, dtype=xp.bool, device=first.device)
        elif keep.dtype != xp.bool:
            keep = keep != 0
        object.__setattr__(self, "keep", keep)
        for name in TOKEN_FIELDS:
            array = getattr(self, name)
            if array is not None and tuple(array.shape) != shape:
                layout = "the other columns have" if self.lengths is None else "lengths add up to"
                raise ValueError(f"{name} has shape {tuple(array.shape)}, {layout} {shape}")

    def _is_per_row(self, advantage: Array) -> bool:
        """A (B,) advantage is per row; a flat one of a ragged batch is per token if it fits."""
        if self.lengths is None:
            if advantage.shape[0] != self.n_rows:
                raise ValueError(
                    f"advantage has shape {tuple(advantage.shape)}, but the batch has "
                    f"{self.n_rows} rows; pass (B, T), or one value a row"
                )
            return True
        return advantage.shape[0] == self.n_rows and self.n_rows != self.shape[0]

    @property
    def xp(self) -> Any:
        """The array-API namespace of this batch."""
        return namespace(self._first)

    @property
    def _first(self) -> Array | None:
        """The array that decides namespace, device and padded shape: log-probs if there are any."""
        names = (*TOKEN_FIELDS, "lengths")
        return next((a for n in names if (a := getattr(self, n)) is not None), None)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, T) in the padded layout, (N,) in the ragged one."""
        return self._shape  # type: ignore[attr-defined,no-any-return]

    @property
    def n_rows(self) -> int:
        """Rows (responses), those without a kept token included."""
        return int(self.shape[0] if self.lengths is None else self.lengths.shape[0])

    @cached_property
    def row_and_position(self) -> tuple[Array, Array]:
        """Row and position in the row of every token, as two int64 arrays of the batch's shape."""
        xp = self.xp
        if self.lengths is not None:
            return row_positions(self.lengths)
        rows, width = self.shape
        dev = self.keep.device  # type: ignore[union-attr]
        row = xp.arange(rows, dtype=xp.int64, device=dev)[:, None]
        position = xp.arange(width, dtype=xp.int64, device=dev)[None, :]
        return xp.broadcast_to(row, self.shape), xp.broadcast_to(position, self.shape)

    def spread(self, per_row: Array) -> Array:
        """Give every token the value of its row: (B,) -> the batch's shape."""
        xp = self.xp
        if self.lengths is None:
            return xp.broadcast_to(per_row[:, None], self.shape)
        return xp.take(per_row, self.row_and_position[0])

    def to_padded(self, values: Array, fill: float | bool = 0) -> Array:
        """Lay per-token values out as (B, T) with `fill` behind short rows (no copy if padded)."""
        if self.lengths is None:
            return values
        xp, (index, inside) = self.xp, self._gather
        blank = xp.full(inside.shape, fill, dtype=values.dtype, device=values.device)
        if values.shape[0] == 0:
            return blank
        laid = xp.reshape(xp.take(values, xp.reshape(index, (-1,))), inside.shape)
        return xp.where(inside, laid, blank)

    @cached_property
    def _gather(self) -> tuple[Array, Array]:
        """Flat index and validity of the padded layout of a ragged batch."""
        xp, lengths = self.xp, self.xp.astype(self.lengths, self.xp.int64)
        width = int(xp.max(lengths)) if lengths.shape[0] else 0
        column = xp.arange(width, dtype=xp.int64, device=lengths.device)[None, :]
        starts = (xp.cumulative_sum(lengths) - lengths)[:, None]
        inside = column < lengths[:, None]
        return xp.where(inside, starts + column, 0), inside

    def row_sum(self, values: Array) -> Array:
        """Sum per-token values over the kept tokens of each row: the batch's shape -> (B,)."""
        xp = self.xp
        zero = xp.zeros((), dtype=values.dtype, device=values.device)
        kept = xp.where(self.keep, values, zero)
        if self.lengths is not None:
            return segment_sum(kept, self.lengths, self.row_and_position[0])
        return xp.sum(kept, axis=1, dtype=values.dtype)

    @cached_property
    def row_counts(self) -> Array:
        """Kept tokens of each row, (B,) int64."""
        return self.row_sum(self.xp.astype(self.keep, self.xp.int64))

    def available_ratios(self) -> tuple[str, ...]:
        """Names of the ratios whose two columns are present, the primary one first."""
        return tuple(
            name
            for name, (top, bottom) in RATIOS.items()
            if getattr(self, top) is not None and getattr(self, bottom) is not None
        )

    def log_ratio(self, ratio: str = "current/behavior") -> Array:
        """Log-ratio d = log(numerator policy / denominator policy), nats, 0 where not kept.

        Computed in float64 from the log-probs as given. Selecting in both columns before they meet
        keeps NaN and infinities in padding out of values and gradients.

        Raises:
            ValueError: unknown ratio, or one of its two columns is absent.
        """
        if ratio not in RATIOS:
            raise ValueError(f"unknown ratio {ratio!r}; one of {', '.join(RATIOS)}")
        columns = [(name, getattr(self, name)) for name in RATIOS[ratio]]
        for name, array in columns:
            if array is None:
                raise ValueError(f"ratio {ratio} needs {name}, which this batch does not have")
        top, bottom = (self._kept_or_zero(float64(array)) for _, array in columns)
        return top - bottom

    def _kept_or_zero(self, values: Array) -> Array:
        zero = self.xp.zeros((), dtype=values.dtype, device=values.device)
        return self.xp.where(self.keep, values, zero)

    def replace(self, **changes: Any) -> "TokenBatch":
        """Return a copy with some fields changed; shapes are checked again."""
        return replace(self, **changes)

    def present(self) -> tuple[str, ...]:
        """Names of the per-token fields this batch has."""
        return tuple(n for n in TOKEN_FIELDS if getattr(self, n) is not None)
