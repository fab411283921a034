"""Ask a loss function about a batch, and read what it keeps off its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from m2po_lab.conformance.cases import Case, Mask
from m2po_lab.core.objectives import objective

WEIGHT_TOLERANCE = 1e-3
"""Relative; float32 losses are good to about 1e-5, another weight is off by percents."""

Loss: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Divisor:
    """What kept tokens were divided by, against the two counts it may be.

    Attributes:
        value: D in -gradient = r A / D, the median over kept tokens; NaN for none.
        valid: valid tokens.
        kept: kept tokens.
        uniform: whether one D explains the gradient of every kept token.
        decides: whether the counts are known, which a token with A = 0 hides.
    """

    value: float
    valid: int
    kept: int
    uniform: bool
    decides: bool


@dataclass(frozen=True)
class Answer:
    """A mask over valid tokens with A not 0, or the error in its place.

    Attributes:
        mask: what is kept; None for an error.
        text: the same to read.
        divisor: None for an error, and for what a variant is expected to answer.
    """

    mask: Mask | None
    text: str
    divisor: Divisor | None = None


def expect(name: str, case: Case, *, proximal: bool) -> Answer:
    """What a variant keeps; an error where the code that it reproduces fails."""
    try:
        keep = objective(name, budget=case.budget).keep(case.batch(proximal=proximal))
    except ValueError:
        return Answer(None, "nothing: the code it reproduces fails")
    mask = np.asarray(keep) & case.countable
    return Answer(mask, rows_text(mask))


def ask(loss: Loss, case: Case, *, proximal: bool) -> Answer:
    """What a function keeps; whatever a foreign function raises is its answer.

    Raises:
        TypeError: the function does not return a tensor.
    """
    import torch

    current = torch.tensor(case.current_logp, requires_grad=True)
    given = {
        "current_logp": current,
        "behavior_logp": torch.tensor(case.behavior_logp),
        "advantage": torch.tensor(case.advantage),
        "keep": torch.tensor(case.keep),
        "budget": case.budget,
    }
    if proximal:
        given["proximal_logp"] = torch.tensor(case.proximal_logp)
    try:
        value = loss(**given)
    except Exception as error:
        return Answer(None, f"nothing: {type(error).__name__}: {error}")
    value = value[0] if isinstance(value, tuple) else value
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"the loss function returned {type(value).__name__}; return a tensor")
    gradient = np.zeros(case.keep.shape)
    if value.requires_grad:
        (slope,) = torch.autograd.grad(value.sum(), current, allow_unused=True)
        gradient = gradient if slope is None else slope.double().numpy()
    mask = (gradient != 0) & case.countable
    return Answer(mask, rows_text(mask), _divisor(case, gradient, mask))


def compare(case: Case, expected: Answer, answer: Answer) -> tuple[bool, bool]:
    """Whether two answers agree up to the choice among tied tokens, and whether exactly."""
    if expected.mask is None or answer.mask is None:
        same = expected.mask is None and answer.mask is None
        return same, same
    if np.array_equal(expected.mask, answer.mask):
        return True, True
    one, other = (np.sort(np.abs(case.log_ratio[a])) for a in (expected.mask, answer.mask))
    return np.array_equal(one, other), False


def name_divisor(divisors: list[Divisor]) -> str:
    """Name the count that explains every D: valid tokens, kept tokens, other."""
    known = [d for d in divisors if np.isfinite(d.value) and d.decides]
    for name, counts in (
        ("valid tokens", [d.valid for d in known]),
        ("kept tokens", [d.kept for d in known]),
    ):
        if np.allclose([d.value for d in known], counts, rtol=WEIGHT_TOLERANCE, atol=0):
            return name
    return "other"


def _divisor(case: Case, gradient: npt.NDArray[Any], mask: Mask) -> Divisor:
    """Estimate D from -gradient = r A / D on kept tokens, and whether one D explains all."""
    valid, kept = int(case.keep.sum()), int(mask.sum())
    decides = bool((case.countable == case.keep).all())
    if not mask.any():
        return Divisor(np.nan, valid, kept, uniform=True, decides=decides)
    with np.errstate(over="ignore", invalid="ignore"):
        each = -np.exp(case.log_ratio[mask]) * case.advantage[mask] / gradient[mask]
    middle = float(np.median(each))
    uniform = bool(np.all(np.abs(each - middle) <= WEIGHT_TOLERANCE * abs(middle)))
    return Divisor(middle, valid, kept, uniform, decides)


def rows_text(values: npt.NDArray[Any]) -> str:
    """Rows of numbers, or of 0 and 1 for a mask."""
    if values.dtype == bool:
        return "/".join("".join("1" if v else "0" for v in row) for row in values)
    return " / ".join(" ".join(f"{v:.4g}" for v in row) for row in values)
