"""Questions of notebook 06, about the log that ships with the package."""

from functools import cache
from types import MappingProxyType
from typing import Any

from m2po_lab.api import Analysis, analyze
from m2po_lab.tutorials.answers import Exercise, choice, number
from m2po_lab.tutorials.lessons.reallog import LOG, METRICS

FINDINGS = (
    "in-step-drift",
    "staleness-drift",
    "engine-mismatch",
    "weights-not-synced",
    "low-tail",
    "entropy-collapse",
)


@cache
def _analysis() -> Analysis:
    return analyze([LOG, METRICS])


def _current() -> dict[str, Any]:
    found: dict[str, Any] = _analysis().to_dict()["ratios"]["current/behavior"]
    return found


def worst_step() -> dict[str, Any]:
    """Statistics of the step with the largest M2."""
    found: dict[str, Any] = max(_current()["by_step"], key=lambda row: row["m2"])
    return found


def heaviest_quadrant() -> str:
    """The quadrant with the largest sum of d^2."""
    found: dict[str, Any] = _current()["by_quadrant"]
    return max(found, key=lambda name: found[name]["n"] * (found[name]["m2"] or 0))


def cause() -> frozenset[str]:
    """The finding that says where the drift comes from."""
    fired = {finding.id for finding in _analysis().findings}
    return frozenset({"in-step-drift", "staleness-drift", "engine-mismatch"} & fired)


def _step_solution() -> str:
    row = worst_step()
    return (
        f"Step {row['step']}: M2 {row['m2']:.2f} nats². Its ESS/n is {row['ess_fraction']:.2f} and"
        f" its chi² {row['chi2']:.3f}, which would pass any check. In Python:\n\n"
        "```python\n"
        'rows = analysis.to_dict()["ratios"]["current/behavior"]["by_step"]\n'
        'max(rows, key=lambda row: row["m2"])["step"]\n'
        "```"
    )


def _quadrant_solution() -> str:
    found = _current()["by_quadrant"]
    name = heaviest_quadrant()
    total = sum(s["n"] * (s["m2"] or 0) for s in found.values())
    share = found[name]["n"] * found[name]["m2"] / total
    return (
        f"`{name}`: {found[name]['n']} tokens hold {share:.0%} of all d². Training pushes them"
        " down, and nothing but a lower clip or a mask ends that."
    )


def _cause_solution() -> str:
    finding = next(f for f in _analysis().findings if f.id in cause())
    return f"`{finding.id}`. {finding.message} {finding.advice}"


EXERCISES = MappingProxyType(
    {
        "step": Exercise(
            judge=number(lambda: float(worst_step()["step"]), within=1e-9),
            right=lambda: worst_step()["step"],
            solution=_step_solution,
        ),
        "quadrant": Exercise(
            judge=choice(
                lambda: frozenset([heaviest_quadrant()]),
                frozenset(("A>0,r>1", "A>0,r<=1", "A<0,r<1", "A<0,r>=1", "A=0")),
                {
                    "A=0": "Most tokens are there, but look at the share of d².",
                    "A>0,r>1": "That is where an upper clip acts. Look at the table once more.",
                },
            ),
            right=heaviest_quadrant,
            solution=_quadrant_solution,
        ),
        "cause": Exercise(
            judge=choice(
                cause,
                frozenset(FINDINGS),
                {
                    "staleness-drift": (
                        "Each batch is fresh when it arrives: all lags lie within the four updates"
                        " on it."
                    ),
                    "engine-mismatch": "At lag 0 the two engines agree to within rounding.",
                    "weights-not-synced": "Then lag 0 would drift from step to step.",
                    "low-tail": "That says which tokens drift, not why.",
                    "entropy-collapse": "That did not fire.",
                },
            ),
            right=lambda: next(iter(cause())),
            solution=_cause_solution,
        ),
    }
)
"""Name -> exercise."""
