"""The order of the report: five questions, the same in every medium."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from m2po_lab.report.drift import how_far
from m2po_lab.report.findings import by_severity, counted, what_to_look_at
from m2po_lab.report.format import number, percent, plain
from m2po_lab.report.items import Item, Report
from m2po_lab.report.sources import can_it_be_trusted, what_was_read
from m2po_lab.report.whatif import trust_regions

BREAKDOWNS = ("lag", "step", "quadrant", "position", "probability")
DEFAULT_BY = ("lag", "step", "quadrant")

SECTIONS: tuple[tuple[str, str, Callable[[Report, Sequence[str]], Iterator[Item]]], ...] = (
    ("read", "What was read", what_was_read),
    ("trust", "Can it be trusted", can_it_be_trusted),
    ("drift", "How far off-policy, and where", how_far),
    ("regions", "What each trust region would do to these tokens", trust_regions),
    ("look", "What to look at", what_to_look_at),
)
"""Anchor, question, and what answers it from the report and the breakdowns to show."""

HEADLINE = (
    ("M2", "m2", "mean of d², all tokens", number),
    ("ESS/n", "ess_fraction", "blind to r -> 0", number),
    ("k1", "k1", "KL estimate, -mean of d", number),
    ("min d", "log_ratio_min", "lower tail", number),
    ("max d", "log_ratio_max", "upper tail", number),
    ("top 1 %", "top1pct_m2_share", "share of M2 in the 1 % largest |d|", percent),
)
"""The numbers that must stand together."""


@dataclass(frozen=True)
class Part:
    """One question with its answer.

    Attributes:
        id: anchor.
        title: the question.
        content: the answer.
    """

    id: str
    title: str
    content: Sequence[Item]


@dataclass(frozen=True)
class Document:
    """All that a medium needs to know.

    Attributes:
        title: what it is about.
        version: of the program.
        partial: the reading was stopped early.
        counts: severity and how many findings, in words.
        headline: term, value, meaning.
        parts: the questions in order.
        last: what to do next.
    """

    title: str
    version: str
    partial: bool
    counts: Sequence[tuple[str, str]]
    headline: Sequence[tuple[str, str, str]]
    parts: Sequence[Part]
    last: str = ""


def document(report: Report, by: Sequence[str] = DEFAULT_BY) -> Document:
    """Lay a report out.

    Args:
        report: what `Analysis.to_dict()` gives.
        by: which breakdowns to show, out of BREAKDOWNS.
    """
    findings = by_severity(report["findings"])
    more = (f"More on one of them: m2po-lab analyze --explain {f['id']}" for f in findings)
    return Document(
        title=_title(report),
        version=report["version"],
        partial=report["partial"],
        counts=counted(findings),
        headline=_headline(report),
        parts=[Part(id, title, list(items(report, by))) for id, title, items in SECTIONS],
        last=next(more, ""),
    )


def _title(report: Report) -> str:
    paths = [plain(source["path"], limit=80) for source in report["inputs"]]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "Nothing was read"


def _headline(report: Report) -> list[tuple[str, str, str]]:
    """The headline of the primary ratio over all tokens."""
    if report["primary"] is None:
        return []
    stats = report["ratios"][report["primary"]]["all"]
    return [(head, write(stats[field]), words) for head, field, words, write in HEADLINE]
