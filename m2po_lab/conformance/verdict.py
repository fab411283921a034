"""What was found out about a loss function, readable."""

from dataclasses import dataclass, field

from m2po_lab.conformance.cases import Case
from m2po_lab.conformance.probe import rows_text


@dataclass(frozen=True)
class Counterexample:
    """The first batch on which a function and a variant part; `str()` shows it token by token."""

    variant: str
    case: Case
    expected: str
    got: str

    def __str__(self) -> str:
        """Batch, what the variant does and what the function does."""
        return "\n".join(
            (
                f"not {self.variant}: {self.case.name}, budget {self.case.budget:g}",
                f"  log-ratio {rows_text(self.case.log_ratio)}",
                f"  advantage {rows_text(self.case.advantage)}",
                f"  {self.variant} {self.expected}",
                f"  this function {self.got}",
            )
        )


@dataclass(frozen=True)
class Conformance:
    """What was found out about a loss function; `str()` is the readable verdict.

    Attributes:
        variant: what it implements: same masks on every batch, same weight, and a denominator that
            counts the same tokens (however it averages); None for none.
        masks: the variant whose masks it has on every batch, whatever it does with them, or None.
        matched: variant -> on how many batches the mask agrees.
        batches: how many batches were asked.
        counterexamples: variant -> the first batch on which it does not agree.
        ties: whether of tied tokens always the same ones stay as in the variant.
        importance_weighted: whether every kept token is weighted by r = exp(l - mu) times A.
        denominator: what a kept token is divided by, one of `probe.DENOMINATORS` or "other".
        non_finite: case name -> what it did with a NaN or inf on a valid token.
    """

    variant: str | None
    masks: str | None
    matched: dict[str, int]
    batches: int
    counterexamples: dict[str, Counterexample] = field(repr=False)
    ties: bool
    importance_weighted: bool
    denominator: str
    non_finite: dict[str, str]

    def __str__(self) -> str:
        """Verdict, what differs, and the first counterexample of the closest variant."""
        closest = self.masks or max(self.matched, key=lambda name: self.matched[name])
        counts = ", ".join(f"{name} {n}" for name, n in self.matched.items())
        lines = [
            self._headline(closest),
            f"  masks that agree, of {self.batches}: {counts}",
            f"  weight r A on kept tokens: {'yes' if self.importance_weighted else 'no'}",
            f"  divided by: {self.denominator}",
        ]
        if self.masks and not self.ties:
            lines.append("  of tied tokens others stay")
        lines += [f"  {name}: {what}" for name, what in self.non_finite.items()]
        if self.variant is None:
            lines.append(str(self.counterexamples[closest]))
        return "\n".join(lines)

    def _headline(self, closest: str) -> str:
        if self.variant:
            return f"implements {self.variant}"
        if self.masks:
            return f"implements no variant of M2PO; only its masks are those of {closest}"
        return f"implements no variant of M2PO; closest is {closest}"
