"""How an objective's formulas read a batch: float64, zero where not valid, select before exp."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from m2po_lab.core.arrays import Array, float64
from m2po_lab.core.batch import LOGP_FIELDS, TokenBatch

Params: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

RATIO_LIMIT = 40.0
"""A log-ratio above this counts as this in exp.

e^40 = 2e17 is no ratio that data can give; its square, and the product of two such ratios, are
finite in float32, so the gradient of a float32 log-prob is finite however far the policies are.

It acts on kept tokens only, and only where an objective has no smaller bound: `is`, `m2po` outside
H, PPO's clip at A < 0, a correction with an infinite cap. There the loss is that of r = e^40 and
its gradient is that size too: d(e^d) = e^d holds at the limit and beyond, so loss, gradient and
`Objective.weight` tell one story, though a finite difference of the loss beyond it would be 0.
What is compared with a bound is the log-ratio itself, which has no limit.
"""


def detach(array: Array) -> Array:
    """Return the array without its gradient (sg in formulas); numpy arrays as they are."""
    return array.detach() if hasattr(array, "detach") else array


class Tokens:
    """A batch as an objective's formulas read it: float64, zero where not valid, lazily computed.

    Attributes:
        batch: the TokenBatch; only `current_logp` can carry a gradient.
        xp: its array-API namespace.
        valid: the loss mask m, boolean.
    """

    def __init__(self, batch: TokenBatch, *, gradient: bool) -> None:
        """View a batch; without `gradient` nothing derived from it carries one."""
        fixed = {
            name: detach(column)
            for name in (*LOGP_FIELDS, "advantage", "entropy")
            if getattr(column := getattr(batch, name), "requires_grad", False)
            and not (gradient and name == "current_logp")
        }
        self.batch = batch.replace(**fixed) if fixed else batch
        self.xp = batch.xp
        self.valid: Array = batch.keep
        self._ratios: dict[str, Array] = {}
        self._advantage: Array | None = None
        self._moving: Tokens | None = None
        self._once: dict[str, Any] = {}

    def still(self) -> "Tokens":
        """The same view without gradient; what is computed for one is not computed again."""
        view = Tokens(self.batch, gradient=False)
        view._moving, view._once = self, self._once
        return view

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """What `compute` returns, computed once for this batch whichever view asks first.

        For what all parts of an objective share and what is costly: a selection, a search. Its
        arrays must carry no gradient, because the view that asks first may.
        """
        if name not in self._once:
            self._once[name] = compute()
        found: T = self._once[name]
        return found

    def column(self, name: str) -> Array:
        """A column of the batch in float64, 0 where not valid."""
        return self.xp.where(self.valid, float64(getattr(self.batch, name)), self.zero)

    @property
    def zero(self) -> Array:
        """A 0-d float64 zero on the batch's device."""
        return self.xp.zeros((), dtype=self.xp.float64, device=self.valid.device)

    @property
    def advantage(self) -> Array:
        """A, per token."""
        if self._advantage is None:
            moving = self._moving
            self._advantage = moving.advantage if moving else self.column("advantage")
        return self._advantage

    @property
    def current(self) -> Array:
        """l, log-prob under the current policy; the one column with a gradient."""
        return self.column("current_logp")

    @property
    def behavior(self) -> Array:
        """mu, log-prob under the policy that sampled."""
        return self.column("behavior_logp")

    @property
    def log_ratio(self) -> Array:
        """Log-ratio d = l - mu."""
        return self.ratio("current/behavior")

    def ratio(self, name: str) -> Array:
        """Log-ratio by name (`RATIOS`): current/proximal is log rho, proximal/behavior is log b."""
        if name not in self._ratios:
            moving = self._moving
            self._ratios[name] = (
                detach(moving.ratio(name)) if moving else self.batch.log_ratio(name)
            )
        return self._ratios[name]

    def exp(self, d: Array, where: Array) -> Array:
        """e^d on `where`, 0 elsewhere, with a zero, finite gradient there.

        At most e^RATIO_LIMIT, with d(e^d) = e^d beyond the limit too.
        """
        xp = self.xp
        chosen = xp.where(where, d, self.zero)
        still = detach(chosen)
        limited = xp.minimum(still, self.zero + RATIO_LIMIT) + (chosen - still)
        return xp.where(where, xp.exp(limited), self.zero)

    def row_mean(self, values: Array) -> Array:
        """Mean over the valid tokens of each row, (B,); 0 for a row without any."""
        xp, counts = self.xp, self.row_counts
        some = counts > 0
        safe = xp.astype(xp.where(some, counts, xp.ones_like(counts)), xp.float64)
        return xp.where(some, self.batch.row_sum(values) / safe, self.zero)

    @property
    def row_counts(self) -> Array:
        """Valid tokens of each row L_i, (B,) int64."""
        return self.batch.row_sum(self.xp.astype(self.valid, self.xp.int64))

    def spread(self, per_row: Array) -> Array:
        """Give every token the value of its row."""
        return self.batch.spread(per_row)
