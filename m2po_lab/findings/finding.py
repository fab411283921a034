"""Finding: one thing that a log says about itself or its run, with the numbers that say so."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from m2po_lab.integrity.faults import Examples
from m2po_lab.logs.rows import UNKNOWN

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Entry:
    """What is fixed about a finding, whatever the log.

    Args:
        severity: its default.
        title: what is wrong, in a few words.
        rule: what is tested, and against what.
        advice: what to do about it.
        source: where the fault, or the number it is held against, was reported.
    """

    severity: Severity
    title: str
    rule: str
    advice: str
    source: str


@dataclass(frozen=True)
class Hit:
    """What a rule found in one log.

    Args:
        message: what was seen, in one or two sentences with numbers.
        evidence: the numbers; `ratio` names the log-ratio where there is one.
        severity: where it differs from the default.
        advice: where it depends on the log.
    """

    message: str
    evidence: dict[str, Any]
    severity: Severity | None = None
    advice: str | None = None


@dataclass(frozen=True)
class Finding:
    """A finding as the report has it.

    Args:
        id: its name; ids never change meaning.
        severity: error (numbers cannot be trusted), warning (the run needs a look) or info.
        title, message, advice, source: for the reader.
        evidence: numbers, rows and positions, plain JSON values.
    """

    id: str
    severity: Severity
    title: str
    message: str
    evidence: dict[str, Any]
    advice: str
    source: str

    def to_dict(self) -> dict[str, Any]:
        """The entry of the report's `findings`: strict JSON, what is not finite becomes null."""
        return {**vars(self), "evidence": plain(self.evidence)}


def plain(value: Any) -> Any:
    """Turn evidence into JSON values; numpy scalars become Python's, non-finite numbers null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def places(examples: Examples) -> list[dict[str, Any]]:
    """Where to look: source, line, row id, step, position and the value that stands there."""
    return [
        {
            "source": place.source,
            "line": place.line,
            "row_id": place.row_id or None,
            "step": None if place.step == UNKNOWN else place.step,
            "position": place.position,
            "column": place.column,
            "value": None if math.isnan(place.value) else place.value,
        }
        for place in examples.places
    ]
