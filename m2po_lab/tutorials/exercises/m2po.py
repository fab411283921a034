"""Questions of notebook 04."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from m2po_lab.core import TokenBatch, eligible, keep_m2po, objective
from m2po_lab.tutorials.answers import Exercise, choice
from m2po_lab.tutorials.lessons.m2po import TOKENS, Mask, eight_tokens

QUESTION = ((0.10, -0.20, 0.50, -0.90), (0.3, 0.3, -0.3, -0.1))
"""Log-ratios of tokens a to d (A = 2) and e to h (A = -0.5)."""
LETTERS = tuple("abcdefgh")
BUDGET = 0.04
VARIANTS = ("m2po", "m2po_released", "m2po_areal", "m2po_all_tokens")
SHOWN = "m2po_areal"
"""The variant whose mask the last question shows."""
BATCHES = 300


def batch_of(log_ratio: Any, advantage: Any) -> TokenBatch:
    """Tokens of behavior log-prob 0 with the given log-ratios."""
    d = np.asarray(log_ratio, dtype=np.float64)
    return TokenBatch(
        behavior_logp=np.zeros_like(d), current_logp=d, advantage=np.asarray(advantage, np.float64)
    )


def named(mask: Mask, names: tuple[str, ...]) -> frozenset[str]:
    """Names of the tokens that a mask marks."""
    return frozenset(name for name, marked in zip(names, mask.ravel(), strict=True) if marked)


def question() -> TokenBatch:
    """The batch of the first two questions."""
    return batch_of(QUESTION, (2.0, -0.5))


def inside() -> frozenset[str]:
    """Tokens of H."""
    return named(eligible(question()), LETTERS)


def masked() -> frozenset[str]:
    """Tokens that Algorithm 1 masks."""
    return named(~keep_m2po(question(), BUDGET), LETTERS)


def shown_mask() -> dict[str, bool]:
    """Token -> whether the variant to be named keeps it."""
    keep = objective(SHOWN).keep(eight_tokens()).ravel()
    return {name: bool(k) for name, k in zip(TOKENS, keep, strict=True)}


def algorithm(log_ratio: Any, advantage: Any, budget: float) -> list[bool]:
    """What a right answer to the programming question gives; the core's mask."""
    keep = keep_m2po(batch_of([log_ratio], [advantage]), budget)
    return [bool(k) for k in keep[0]]


def judge_mask(answer: Any) -> str | None:
    """Call a function on random batches and compare its masks with those of the core."""
    if not callable(answer):
        return "This asks for a function of (d, A, budget) that returns a list of booleans."
    rng = np.random.default_rng(4)
    agreed = dict.fromkeys(VARIANTS[2:], True)
    problem = None
    for _ in range(BATCHES):
        n = int(rng.integers(1, 9))
        d = (rng.standard_t(3, n) * 0.3).round(2).tolist()
        a = rng.choice([-1.0, 0.0, 1.0], n, p=[0.45, 0.1, 0.45]).tolist()
        # Only masks without a choice among equals: the paper leaves ties open.
        if len({abs(x) for x in d}) < n:
            continue
        got = _called(answer, d, a)
        if isinstance(got, str):
            return got
        right = algorithm(d, a, BUDGET)
        for name in agreed:
            agreed[name] &= got == objective(name).keep(batch_of([d], [a]))[0].tolist()
        if got != right and problem is None:
            problem = f"For d = {d}, A = {a} it keeps {_digits(got)}; Algorithm 1 {_digits(right)}."
    hints = [HINTS[name] for name, all_agree in agreed.items() if all_agree]
    return problem and " ".join((*hints, problem))


def _called(answer: Callable[..., Any], d: list[float], a: list[float]) -> list[bool] | str:
    """The mask a function gives, or what is wrong with it."""
    try:
        mask = np.asarray(answer(np.array(d), np.array(a), BUDGET)).ravel()
    except Exception as error:
        return f"For d = {d}, A = {a} it raises {type(error).__name__}: {error}."
    if mask.shape != (len(d),) or mask.dtype.kind not in "bi":
        return f"For {len(d)} tokens it returns {mask.shape} of {mask.dtype}; {len(d)} booleans?"
    return [bool(k) for k in mask]


def _digits(mask: list[bool]) -> str:
    return "".join(str(int(k)) for k in mask)


HINTS = MappingProxyType(
    {
        "m2po_areal": "This is AReaL's rule: it looks at all tokens, whatever their advantage.",
        "m2po_all_tokens": "This is a fork's rule: the mean has to run over H only.",
    }
)


def _inside_solution() -> str:
    return (
        f"{', '.join(sorted(inside()))}: A > 0 with d > 0 (a, c), A < 0 with d < 0 (g, h). How"
        " large the advantage is does not matter."
    )


def _masked_solution() -> str:
    d = np.array(QUESTION)[eligible(question())]
    rest = np.sort(d**2)[: -len(masked())]
    return (
        f"The d² of H are {', '.join(f'{x:g}' for x in np.sort(d**2).round(4))}, their mean"
        f" {np.mean(d**2):.4f}. Without {', '.join(sorted(masked()))} it is {rest.mean():.4f},"
        f" within {BUDGET}. Token d with d² = 0.81 is not in H and stays."
    )


def _function_solution() -> str:
    return """```python
def answer(d, A, budget):
    left = ((A > 0) & (d > 0)) | ((A < 0) & (d < 0))
    inside = left.copy()
    while left.any() and (d[left] ** 2).mean() > budget:
        left &= d**2 < (d[left] ** 2).max()
    return ~inside | left
```
The core does the same without a loop: it looks for the threshold on d² in a histogram."""


def _variant_solution() -> str:
    kept = sum(shown_mask().values())
    return (
        f"`{SHOWN}`. It looks at all tokens whatever A is, so it may drop one outside H, and it"
        f" divides the loss by the {kept} tokens that stay."
    )


EXERCISES = MappingProxyType(
    {
        "region": Exercise(
            judge=choice(
                inside,
                frozenset(LETTERS),
                {
                    "b": "A > 0 and d < 0: the policy has moved away from a good token.",
                    "d": "A > 0 and d < 0: however large |d| is, no bound acts on this side.",
                    "e": "A < 0 and d > 0: this token still has to come down; nothing holds it.",
                    "f": "A < 0 and d > 0: this token still has to come down; nothing holds it.",
                    "g": "A < 0 and d < 0 is in H, as A > 0 and d > 0 is.",
                },
            ),
            right=inside,
            solution=_inside_solution,
        ),
        "mask": Exercise(
            judge=choice(
                masked,
                frozenset(LETTERS),
                {
                    "d": "d is not in H: Algorithm 1 never looks at it.",
                    "c": "The mean over H is over the budget, and c has the largest d² of H.",
                    "g": "Take the mean of what is left of H once more, and compare with 0.04.",
                },
            ),
            right=masked,
            solution=_masked_solution,
        ),
        "function": Exercise(
            judge=judge_mask,
            right=lambda: lambda d, a, budget: algorithm(d, a, budget),
            solution=_function_solution,
        ),
        "variant": Exercise(
            judge=choice(
                lambda: frozenset([SHOWN]),
                frozenset(VARIANTS),
                dict.fromkeys(VARIANTS, "Compare with the picture, token by token."),
            ),
            right=lambda: SHOWN,
            solution=_variant_solution,
        ),
    }
)
"""Name -> exercise."""
