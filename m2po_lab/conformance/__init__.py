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
harmless outliers, A = 0 and float32 decide, and random heavy-tailed ones.
"""

import inspect

import numpy as np

from m2po_lab.conformance.cases import Case, random_cases, reference_cases
from m2po_lab.conformance.probe import Loss, ask, compare, expect, name_divisor
from m2po_lab.conformance.verdict import VARIANTS, Conformance, Counterexample

__all__ = ["VARIANTS", "Case", "Conformance", "Counterexample", "check"]


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
    matched = dict.fromkeys(VARIANTS, 0)
    first: dict[str, Counterexample] = {}
    exact = dict.fromkeys(VARIANTS, True)
    divisors = []
    non_finite: dict[str, str] = {}
    batches = 0
    for case in (*reference_cases(), *random_cases(random_batches, seed)):
        answer = ask(loss, case, proximal=proximal)
        if not np.isfinite(case.log_ratio).all():
            non_finite[case.name] = answer.text
            continue
        batches += 1
        divisors += [answer.divisor] if answer.divisor else []
        for name in VARIANTS:
            expected = expect(name, case, proximal=proximal)
            agrees, same = compare(case, expected, answer)
            matched[name] += agrees
            exact[name] &= same or not agrees
            if not agrees and name not in first:
                first[name] = Counterexample(name, case, expected.text, answer.text)
    variant = next((name for name in VARIANTS if name not in first), None)
    return Conformance(
        variant=variant,
        matched=matched,
        batches=batches,
        counterexamples=first,
        ties=variant is not None and exact[variant],
        importance_weighted=all(d.uniform for d in divisors),
        denominator=name_divisor(divisors),
        non_finite=non_finite,
    )
