"""Which M2PO does a loss function implement? Asks any framework's function on known batches.

    from m2po_lab.conformance import check

    def mine(current_logp, behavior_logp, advantage, keep, budget):
        return framework_loss(current_logp, behavior_logp, advantage, keep, m2_threshold=budget)

    print(check(mine))

The function gets torch tensors, (B, T) each: log-probs under the current policy (with gradient) and
under the one that sampled, advantages, the boolean loss mask, and the budget as a number. It gets
`proximal_logp` too if it has a parameter of that name. It returns the loss, alone or first in a
tuple, aggregated as it likes. Only its gradient is read: a token is kept if its gradient is not 0.

The batches are the 20 selection cases of the public implementations, which differ where ties,
harmless outliers, A = 0 and float32 decide, and random heavy-tailed ones. Each is one mini-batch:
a function that is right here still selects per micro-batch where its trainer hands it those.
"""

import inspect

import numpy as np

from m2po_lab.conformance.cases import Case, random_cases, reference_cases
from m2po_lab.conformance.divisor import misdivided, name_divisor
from m2po_lab.conformance.probe import Answer, Loss, ask, compare, expect
from m2po_lab.conformance.variants import VARIANTS, Variant
from m2po_lab.conformance.verdict import Conformance, Counterexample

__all__ = ["VARIANTS", "Case", "Conformance", "Counterexample", "Variant", "check"]


def check(loss: Loss, *, random_batches: int = 50, seed: int = 0) -> Conformance:
    """Say which variant of M2PO a loss function implements, or none, with counterexamples.

    Args:
        loss: see the module's text.
        random_batches: how many random batches to ask besides the 20 cases.
        seed: of the random batches; the same seed asks the same.

    Raises:
        ModuleNotFoundError: torch is not installed (extra `torch`).
        TypeError: the function does not return a tensor.
    """
    proximal = "proximal_logp" in inspect.signature(loss).parameters
    variants = {name: v for name, v in VARIANTS.items() if proximal or not v.proximal}
    matched = dict.fromkeys(variants, 0)
    first: dict[str, Counterexample] = {}
    exact = dict.fromkeys(variants, True)
    asked: list[tuple[Case, Answer]] = []
    non_finite: dict[str, str] = {}
    for case in (*reference_cases(), *random_cases(random_batches, seed)):
        answer = ask(loss, case, proximal=proximal)
        if not np.isfinite(case.log_ratio).all():
            non_finite[case.name] = answer.text
            continue
        asked.append((case, answer))
        for name, variant in variants.items():
            expected = expect(variant, case, proximal=proximal)
            agrees, same = compare(case, expected, answer)
            matched[name] += agrees
            exact[name] &= same or not agrees
            if not agrees and name not in first:
                texts = f"keeps {expected.text}", f"keeps {answer.text}"
                first[name] = Counterexample(name, case, *texts)
    masks = next((name for name in variants if name not in first), None)
    divisors = [answer.divisor for _, answer in asked if answer.divisor]
    denominator = name_divisor(divisors)
    if masks is not None and (example := _misdivided(masks, denominator, asked)):
        first[masks] = example
    return Conformance(
        variant=None if masks in first else masks,
        masks=masks,
        matched=matched,
        batches=len(asked),
        counterexamples=first,
        ties=masks is not None and exact[masks],
        importance_weighted=all(d.uniform for d in divisors),
        denominator=denominator,
        non_finite=non_finite,
    )


def _misdivided(
    name: str, denominator: str, asked: list[tuple[Case, Answer]]
) -> Counterexample | None:
    """The first batch on which kept tokens are weighted or divided otherwise than in a variant."""
    for case, answer in asked:
        found = answer.divisor and misdivided(VARIANTS[name], denominator, answer.divisor)
        if found:
            return Counterexample(name, case, *found)
    return None
