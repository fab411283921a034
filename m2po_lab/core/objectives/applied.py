"""An objective with its parameters, applied to batches."""

import sys
from dataclasses import dataclass, field
from typing import Any

from m2po_lab.core.arrays import Array
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives.aggregation import Counts, divisor
from m2po_lab.core.objectives.base import Params, Spec, Tokens
from m2po_lab.core.objectives.diagnostics import diagnose


@dataclass(frozen=True, kw_only=True)
class Objective:
    """An objective with its parameters, ready to be applied to batches; made by `objective()`.

    Attributes:
        name: its name in OBJECTIVES.
        spec: what is known about it.
        params: all parameters, defaults included.
        aggregation: how token losses become one number.
        max_length: L_max of the "constant" aggregation, else None.
    """

    name: str
    spec: Spec = field(repr=False)
    params: Params
    aggregation: str
    max_length: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as name and parameters; the functions are there already."""
        length = {} if self.max_length is None else {"max_length": self.max_length}
        return _again, (self.name, self.aggregation, {**self.params, **length})

    @property
    def scope(self) -> str:
        """What one token's fate depends on, one of SCOPES."""
        return self.spec.scope

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns a batch must have, and "probabilities" where log-ratios alone do not do."""
        extra = self.spec.needs_for(self.params) if self.spec.needs_for else ()
        return tuple(dict.fromkeys((*self.spec.needs, *extra)))

    @property
    def denominator(self) -> str:
        """D in words."""
        return self.spec.denominator

    def missing(self, batch: TokenBatch) -> tuple[str, ...]:
        """Columns this objective needs and the batch lacks."""
        return tuple(n for n in self.needs if n != "probabilities" and getattr(batch, n) is None)

    def keep(self, batch: TokenBatch) -> Array:
        """Boolean mask of the tokens that keep a gradient.

        A valid token with A = 0 counts as kept (no bound binds on it), except in `m2po_released`.

        Raises:
            ValueError: a column is missing, or is not finite on a valid token.
        """
        check = self.spec.keep_checks_finite
        return self._keep(self._tokens(batch, gradient=False, check=check))

    def weight(self, batch: TokenBatch) -> Array:
        """Weight w of each token in -dLoss/dl_t = w_t A_t / D, 0 where dropped; no gradient.

        No ratio in it counts for more than e^40 (`RATIO_LIMIT`), in the loss and its gradient too.
        A penalty that A does not multiply (DRO, Kimi, R2VPO, KL-Cov) is included as penalty / A
        where A is not 0, so that the equation holds; where A is 0 see `gradient`.
        """
        tokens = self._tokens(batch, gradient=False)
        keep, xp = self._keep(tokens), tokens.xp
        weight = self._weight(tokens, keep)
        if self.spec.penalty is None:
            return weight
        some = keep & (tokens.advantage != 0)
        safe = xp.where(some, tokens.advantage, xp.ones_like(weight))
        return weight + xp.where(some, self._penalty(tokens, keep) / safe, tokens.zero)

    def judge(self, batch: TokenBatch) -> tuple[Array, Array]:
        """The keep mask and the weight of A on it, penalties left out: what diagnostics look at.

        Raises:
            ValueError: as `keep`.
        """
        tokens = self._tokens(batch, gradient=False, check=self.spec.keep_checks_finite)
        keep = self._keep(tokens)
        return keep, self._weight(tokens, keep)

    def gradient(self, batch: TokenBatch) -> Array:
        """-D dLoss/dl_t of each token: w_t A_t, and the penalty where there is one; no gradient."""
        tokens = self._tokens(batch, gradient=False)
        keep = self._keep(tokens)
        return self._weight(tokens, keep) * tokens.advantage + self._penalty(tokens, keep)

    def token_loss(self, batch: TokenBatch, keep: Array) -> Array:
        """Loss of each token before any division, 0 where not valid; the host divides.

        Args:
            batch: the tokens, of which this may be a micro-batch.
            keep: which keep their gradient: `.keep(batch)`, or a mask solved over a larger scope.
        """
        tokens = self._tokens(batch, gradient=True)
        return self._token_loss(tokens, keep & tokens.valid)

    def divisor(self, batch: TokenBatch, counts: Counts | None = None) -> Array:
        """D: what each token's loss is divided by, 0-d or (broadcastable to) one value a token."""
        tokens = self._tokens(batch, gradient=False)
        return self._divisor(tokens, self._keep(tokens), counts)

    def loss(
        self, batch: TokenBatch, counts: Counts | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """Loss to minimise and what to log beside it.

        Args:
            batch: one whole batch, or a micro-batch of whole rows together with `counts`.
            counts: tokens and rows of the batch that this is a part of; the losses of the parts
                then add up to the loss of the whole (token and sequence scope).

        Returns:
            The loss, 0-d float64 with the gradient of `current_logp`, and diagnostics, 0-d arrays
            whose names DIAGNOSTICS explains. A batch without a valid token has loss 0 and gradient
            0, the sum over nothing, because a NaN that is back-propagated ruins a model; every
            diagnostic that averages over its tokens is NaN.

        Raises:
            ValueError: a column is missing, or is not finite on a valid token.
        """
        tokens = self._tokens(batch, gradient=True)
        still = tokens.still()
        keep = self._keep(still)
        loss = self._token_loss(tokens, keep) / self._divisor(still, keep, counts)
        diagnostics = diagnose(still, keep, self._weight(still, keep))
        if self.spec.report is not None:
            diagnostics |= self.spec.report(still, self.params, keep)
        return tokens.xp.sum(loss), diagnostics

    def _tokens(self, batch: TokenBatch, *, gradient: bool, check: bool = True) -> Tokens:
        if lacking := self.missing(batch):
            has = ", ".join(batch.present()) or "none"
            raise ValueError(f"{self.name} needs {', '.join(lacking)}; this batch has {has}")
        if check and not _compiling():
            for name in self.needs:
                if name != "probabilities":
                    _check_finite(batch, name)
        return Tokens(batch, gradient=gradient)

    def _keep(self, tokens: Tokens) -> Array:
        return tokens.valid & self.spec.keep(tokens, self.params)

    def _weight(self, tokens: Tokens, keep: Array) -> Array:
        return tokens.xp.where(keep, self.spec.weight(tokens, self.params, keep), tokens.zero)

    def _penalty(self, tokens: Tokens, keep: Array) -> Array:
        if self.spec.penalty is None:
            return tokens.zero
        return tokens.xp.where(
            tokens.valid, self.spec.penalty(tokens, self.params, keep), tokens.zero
        )

    def _token_loss(self, tokens: Tokens, keep: Array) -> Array:
        return tokens.xp.where(tokens.valid, self.spec.loss(tokens, self.params, keep), tokens.zero)

    def _divisor(self, tokens: Tokens, keep: Array, counts: Counts | None) -> Array:
        counted = tokens.valid
        if self.spec.counted is not None:
            counted = counted & self.spec.counted(tokens, self.params, keep)
        return divisor(self.aggregation, tokens.batch, counted, counts, self.max_length)


def _again(name: str, aggregation: str, params: dict[str, Any]) -> Objective:
    """Make an objective anew, on unpickling."""
    from m2po_lab.core.objectives import objective

    return objective(name, aggregation, **params)


def _compiling() -> bool:
    """Whether torch.compile traces this call, whose graph a check of values would break."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def _check_finite(batch: TokenBatch, name: str) -> None:
    """Raise ValueError where a column is not finite on a valid token, naming the rows."""
    xp, column = batch.xp, getattr(batch, name)
    if not xp.isdtype(column.dtype, "real floating"):
        return
    bad = ~xp.isfinite(column) & batch.keep
    if not bool(xp.any(bad)):
        return
    per_row = batch.row_sum(xp.astype(bad, xp.int64))
    rows = [int(row) for row in xp.nonzero(per_row)[0]]
    shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
    rows_of = "row" if len(rows) == 1 else "rows"
    raise ValueError(
        f"{name} is not finite on {int(xp.sum(per_row))} valid token(s) of {rows_of} {shown}"
        f" ({len(rows)} of {batch.n_rows} rows); take them out of keep, or drop the rows"
    )
