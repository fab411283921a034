"""The first section of the report, what to look at, and the last, what that was seen by."""

from collections.abc import Iterator
from typing import Any

from m2po_lab.report.format import count, evidence, plain
from m2po_lab.report.glossary import glossary
from m2po_lab.report.items import Item, Judgement, Proof, Report, View, Words
from m2po_lab.report.vocabulary import SEVERITIES

NOUNS = {"error": "error", "warning": "warning", "info": "note"}
MOST_IN_FULL = 4
"""Findings told in full, so that they fit a screen; of the others only the head."""


def by_severity(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort findings errors first; within one severity the order given stays."""
    return sorted(findings, key=lambda f: SEVERITIES.index(f["severity"]))


def counted(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Severity and how many, in words: ("error", "2 errors")."""
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    return [(s, f"{n} {NOUNS[s]}{'' if n == 1 else 's'}") for s, n in counts.items()]


def what_to_look_at(report: Report, view: View) -> Iterator[Item]:
    """Give each finding, most severe first: what it is, what was seen, what to do."""
    findings = by_severity(report["findings"])
    tokens, rows = report["tokens"], report["rows"]
    yield Words(
        f"{'Nothing: no finding fired.' if not findings else _sum(findings)} Counted: "
        f"{count(tokens['kept'])} of {count(tokens['logged'])} tokens, {count(rows['kept'])} of "
        f"{count(rows['read'])} rows."
    )
    full = findings[:MOST_IN_FULL]
    words = glossary(" ".join(f"{f['title']} {f['message']}" for f in full))
    if words:
        yield Words(words, tone="aside")
    for i, finding in enumerate(findings):
        told = i < MOST_IN_FULL
        yield Judgement(
            severity=finding["severity"],
            id=finding["id"],
            title=plain(finding["title"]),
            message=plain(finding["message"]) if told else "",
            advice=plain(finding["advice"]) if told else "",
        )


def _sum(findings: list[dict[str, Any]]) -> str:
    return f"{', '.join(text for _, text in counted(findings))}."


def what_it_was_seen_by(report: Report, view: View) -> Iterator[Item]:
    """Give the numbers behind each finding, and what its head above left out."""
    findings = by_severity(report["findings"])
    if not findings:
        yield Words("No finding fired.")
    for i, finding in enumerate(findings):
        told = i < MOST_IN_FULL
        yield Proof(
            severity=finding["severity"],
            id=finding["id"],
            message="" if told else plain(finding["message"]),
            advice="" if told else plain(finding["advice"]),
            seen=evidence(finding["evidence"]),
            source=plain(finding["source"] or ""),
        )
