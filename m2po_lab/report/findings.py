"""The last question of the report: what to look at, most severe first."""

from collections.abc import Iterator, Sequence
from typing import Any

from m2po_lab.report.format import evidence, plain
from m2po_lab.report.items import Item, Judgement, Report, Words
from m2po_lab.report.vocabulary import SEVERITIES

NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def by_severity(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort findings errors first; within one severity the order given stays."""
    return sorted(findings, key=lambda f: SEVERITIES.index(f["severity"]))


def what_to_look_at(report: Report, by: Sequence[str] = ()) -> Iterator[Item]:
    """Give each finding: severity, id and title; what was seen; the evidence; what to do."""
    if not report["findings"]:
        yield Words("Nothing: no finding fired.")
    for finding in by_severity(report["findings"]):
        yield Judgement(
            severity=finding["severity"],
            id=finding["id"],
            title=plain(finding["title"]),
            message=plain(finding["message"]),
            seen=evidence(finding["evidence"]),
            advice=plain(finding["advice"]),
            source=plain(finding["source"] or ""),
        )


def counted(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Severity and how many, in words: ("error", "2 errors")."""
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    return [(s, f"{n} {NOUNS[s]}{'' if n == 1 else 's'}") for s, n in counts.items()]
