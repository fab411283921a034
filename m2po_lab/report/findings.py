"""The last question of the report: what to look at, most severe first."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from m2po_lab.report.format import evidence, plain
from m2po_lab.report.vocabulary import SEVERITIES

STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def by_severity(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort findings errors first; within one severity the order given stays."""
    return sorted(findings, key=lambda f: SEVERITIES.index(f["severity"]))


def finding_lines(findings: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """Write each finding: severity, id and title; what was seen; the evidence; what to do."""
    if not findings:
        yield Text("Nothing: no finding fired.")
    for index, finding in enumerate(by_severity(findings)):
        if index:
            yield Text()
        severity = finding["severity"]
        body: list[RenderableType] = [
            Text(plain(finding["message"])),
            Text(f"seen: {evidence(finding['evidence'])}", style="dim"),
        ]
        if finding["advice"]:
            body.append(Text(f"do: {plain(finding['advice'])}"))
        yield Group(
            Text.assemble(
                (severity, STYLES[severity]),
                f"  {finding['id']}: ",
                (plain(finding["title"]), "bold"),
            ),
            Padding(Group(*body), (0, 0, 0, 2)),
        )


def verdict(findings: list[dict[str, Any]]) -> Text:
    """Count the findings in one line and say how to read more about one."""
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    parts = [f"{n} {NOUNS[s]}{'' if n == 1 else 's'}" for s, n in counts.items()]
    line = Text.assemble((", ".join(parts) + ".", "bold"))
    if findings:
        first = by_severity(findings)[0]["id"]
        line.append(f" More on one of them: m2po-lab analyze --explain {first}")
    return line
