"""Ask a loss function about a batch, and read what it keeps off its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from m2po_lab.conformance.cases import Case, Mask
from m2po_lab.conformance.divisor import Divisor, divisor
from m2po_lab.conformance.variants import Variant
from m2po_lab.core.objectives import objective

Loss: TypeAlias = Callable[..., Any]


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


def expect(variant: Variant, case: Case, *, proximal: bool) -> Answer:
    """What a variant keeps; an error where the code that it reproduces fails."""
    chosen = objective(variant.objective, budget=case.budget, **variant.params)
    try:
        keep = chosen.keep(case.batch(proximal=proximal))
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
    return Answer(mask, rows_text(mask), divisor(case, gradient, mask))


def compare(case: Case, expected: Answer, answer: Answer) -> tuple[bool, bool]:
    """Whether two answers agree up to the choice among tied tokens, and whether exactly."""
    if expected.mask is None or answer.mask is None:
        same = expected.mask is None and answer.mask is None
        return same, same
    if np.array_equal(expected.mask, answer.mask):
        return True, True
    one, other = (np.sort(np.abs(case.log_ratio[a])) for a in (expected.mask, answer.mask))
    return np.array_equal(one, other), False


def rows_text(values: npt.NDArray[Any]) -> str:
    """Rows of numbers, or of 0 and 1 for a mask."""
    if values.dtype == bool:
        return "/".join("".join("1" if v else "0" for v in row) for row in values)
    return " / ".join(" ".join(f"{v:.4g}" for v in row) for row in values)
