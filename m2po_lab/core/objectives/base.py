"""What an objective is: one literal `Spec` of small pure functions.

How to add an objective
-----------------------
1. In the file of its family write three pure functions of `(tokens, params)` or
   `(tokens, params, keep)`; `tokens` is a `Tokens` view, `params` the merged parameters:

   * `keep(tokens, params)` -> boolean, the tokens whose gradient the trust region leaves. Write the
     rule only (`~(too_high & positive)`); padding is removed for you. A token with A = 0 is kept:
     no bound binds on it.
   * `weight(tokens, params, keep)` -> w, the importance weight in -dLoss/dl_t = w_t A_t / D, read
     on `keep` only. Take exponentials with `tokens.exp(d, keep)`: selecting before exp is what
     makes a dropped token give a zero, finite gradient.
   * `loss(tokens, params, keep)` -> loss of each token before the division by D, differentiable in
     `tokens.current`. What stops the gradient goes through `detach`. A dropped token may contribute
     a constant (PPO does), built without exp. Read on valid tokens only.
   * optional `penalty(tokens, params, keep)` -> a part of the gradient that A does not multiply
     (DRO, Kimi): -dLoss/dl_t = (w_t A_t + penalty_t) / D.

2. Add one entry to the literal table of the family: `"name": Spec(summary=..., formula=..., ...)`,
   every default a `Parameter` with its source. `__init__.py` merges the tables of all families.
3. Nothing else. The tests run every entry of the merged table: gradient against weight, numpy
   against torch, padding, row order, micro-batches, extreme log-ratios, torch.compile.

Loss and gradient convention: loss = sum over tokens of token_loss / D with D from the aggregation.
Work in float64; `tokens.log_ratio` and everything derived from it already is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from m2po_lab.core.arrays import Array
from m2po_lab.core.objectives.parameters import Parameter
from m2po_lab.core.objectives.tokens import RATIO_LIMIT, Params, Tokens, detach

__all__ = ["RATIO_LIMIT", "SCOPES", "Parameter", "Params", "Spec", "Tokens", "detach"]

SCOPES = ("token", "sequence", "mini-batch", "step")
"""What one token's fate depends on: itself, its row, the optimizer mini-batch, the whole step."""


Keep: TypeAlias = Callable[[Tokens, Params], Array]
Function: TypeAlias = Callable[[Tokens, Params, Array], Array]


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that is known about one objective; entries of the literal table OBJECTIVES.

    Attributes:
        summary: one paragraph: what it does to a token and why.
        formula: loss of one token and its weight w, in METHODS notation (r, rho, b, A, sg).
        keep: rule that leaves a token its gradient (see the module's text).
        weight: w on kept tokens.
        loss: differentiable loss of each token.
        penalty: part of the gradient that the advantage does not multiply.
        counted: tokens that the denominator counts, where that is not all valid ones.
        keep_checks_finite: whether `keep` raises on non-finite values; not where the mask
            reproduces what a public implementation does with them (the loss still raises).
        check: raises ValueError for parameters that do not go together.
        report: further diagnostics, 0-d arrays, without gradient.
        reports: name -> meaning and unit of those.
        parameters: name -> Parameter (default, source, allowed values).
        scope: one of SCOPES.
        needs: TokenBatch columns, besides "probabilities" where the absolute log-probs matter.
        needs_for: columns that depend on the parameters, added to `needs`.
        ratio: the log-ratio that the rule looks at.
        denominator: D in words.
        aggregation: the one its paper uses.
        paper: citation.
        link: where to read it.
        compile_note: why torch.compile(fullgraph=True) is not possible; None where it is.
    """

    summary: str
    formula: str
    keep: Keep
    weight: Function
    loss: Function
    paper: str
    link: str
    penalty: Function | None = None
    counted: Function | None = None
    keep_checks_finite: bool = True
    check: Callable[[Params], None] | None = None
    report: Callable[[Tokens, Params, Array], dict[str, Array]] | None = None
    reports: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: MappingProxyType({}))
    scope: str = "token"
    needs: tuple[str, ...] = ("current_logp", "behavior_logp", "advantage")
    needs_for: Callable[[Params], tuple[str, ...]] | None = None
    ratio: str = "current/behavior"
    denominator: str = "N, all valid tokens"
    aggregation: str = "token_mean"
    compile_note: str | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """Parameter name -> default value."""
        return {name: parameter.default for name, parameter in self.parameters.items()}
