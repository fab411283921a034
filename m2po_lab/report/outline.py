"""The order of the report, the same in every medium: the verdict, the numbers, the evidence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from m2po_lab.report.drift import how_far
from m2po_lab.report.findings import (
    by_severity,
    counted,
    what_it_was_seen_by,
    what_to_look_at,
)
from m2po_lab.report.format import plain
from m2po_lab.report.items import Item, Report, View
from m2po_lab.report.sources import can_it_be_trusted, what_was_read
from m2po_lab.report.whatif import trust_regions

BREAKDOWNS = ("lag", "step", "quadrant", "position", "probability")
DEFAULT_BY = ("lag", "step", "quadrant")

SECTIONS: tuple[tuple[str, str, Callable[[Report, View], Iterator[Item]]], ...] = (
    ("look", "What to look at", what_to_look_at),
    ("read", "What was read", what_was_read),
    ("trust", "Can it be trusted", can_it_be_trusted),
    ("drift", "How far off-policy, and where", how_far),
    ("regions", "What each trust region would do to these tokens", trust_regions),
    ("seen", "What the findings were seen by", what_it_was_seen_by),
)
"""Anchor, title, and what answers it."""


@dataclass(frozen=True)
class Part:
    """One section.

    Attributes:
        id: anchor.
        title: the question it answers.
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
        parts: the sections in order.
        last: the verdict in a line, and what to do next.
    """

    title: str
    version: str
    partial: bool
    counts: Sequence[tuple[str, str]]
    parts: Sequence[Part]
    last: str = ""


def document(report: Report, view: View) -> Document:
    """Lay a report out.

    Args:
        report: what `Analysis.to_dict()` gives.
        view: how much of it to show.
    """
    findings = by_severity(report["findings"])
    counts = counted(findings)
    return Document(
        title=_title(report),
        version=report["version"],
        partial=report["partial"],
        counts=counts,
        parts=[Part(id, title, list(items(report, view))) for id, title, items in SECTIONS],
        last=_last([finding["id"] for finding in findings], [text for _, text in counts]),
    )


def _last(ids: list[str], counts: list[str]) -> str:
    """The verdict once more, for a terminal that shows the end."""
    if not ids:
        return f"{', '.join(counts)}."
    more = f"More on one of them: m2po-lab analyze --explain {ids[0]}"
    return f"{', '.join(counts)}: {', '.join(ids)}. {more}"


def _title(report: Report) -> str:
    """Name what was read: the input with most tokens, and how many more."""
    sources = sorted(report["inputs"], key=lambda source: -(source["tokens"] or 0))
    if not sources:
        return "Nothing was read"
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"{short_name(sources[0]['path'])}{more}"


def short_name(path: str) -> str:
    """Name a log by the end of its path: a file by its name, a directory with the one above.

    >>> short_name("/runs/seven/rollouts/"), short_name("s3://bucket/a/steps.jsonl")
    ('seven/rollouts', 'steps.jsonl')
    """
    parts = PurePosixPath(path.replace("\\", "/")).parts
    names = [part for part in parts if part != "/" and not part.endswith(":")]
    some = names[-1:] if names and "." in names[-1] else names[-2:]
    return plain("/".join(some) or path, limit=60)


def short_names(paths: Sequence[str]) -> list[str]:
    """Short names of several logs; in full where two would be called the same."""
    short = [short_name(path) for path in paths]
    return short if len(set(short)) == len(short) else [plain(path, limit=60) for path in paths]
