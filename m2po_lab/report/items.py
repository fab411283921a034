"""What a report is made of, whatever the medium: words, tables, figures, findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from m2po_lab.report.grid import Column


@dataclass(frozen=True)
class View:
    """How much of a report to show.

    Attributes:
        by: breakdowns, out of BREAKDOWNS.
        whole: long tables to their end; otherwise their first lines, with a word where the rest is.
    """

    by: Sequence[str] = ()
    whole: bool = False


@dataclass(frozen=True)
class Words:
    """A sentence or a paragraph.

    Attributes:
        text: what it says; text from a log has been made `plain` before.
        lead: emphasised words in front of it.
        tone: "" or one of error, warning, aside.
    """

    text: str
    lead: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        columns: its columns.
        caption: what it is about: ratio, token set, unit.
    """

    columns: Sequence[Column]
    caption: str = ""


@dataclass(frozen=True)
class Plot:
    """The place of a figure; a medium without figures leaves it out."""

    name: str


@dataclass(frozen=True)
class Cards:
    """Numbers that must stand together: term, value, meaning; a terminal has them in a table."""

    entries: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Token:
    """One token of a context.

    Attributes:
        text: what to show.
        marks: any of worst, active, masked, unsure; "" for none.
        note: its numbers.
    """

    text: str
    marks: str
    note: str


@dataclass(frozen=True)
class Excerpt:
    """A part of a response around one token.

    Attributes:
        before, token, after: the part in three; all of it is `before` where the place is unknown.
        note: where it was cut.
    """

    before: str
    token: str
    after: str
    note: str


@dataclass(frozen=True)
class Context:
    """Neighbouring tokens of one response; a terminal leaves it out.

    Attributes:
        caption: which response.
        tokens: in order.
        excerpt: the response in words, if the log has it.
    """

    caption: str
    tokens: Sequence[Token] = ()
    excerpt: Excerpt | None = None


@dataclass(frozen=True)
class Judgement:
    """One finding; what it was seen by stands under `Proof`.

    Attributes:
        message, advice: "" where only the head is shown, and `Proof` has them.
    """

    severity: str
    id: str
    title: str
    message: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Proof:
    """What one finding was seen by, in numbers, and where such a thing was reported."""

    severity: str
    id: str
    message: str
    advice: str
    seen: str
    source: str


Item: TypeAlias = Words | Grid | Plot | Cards | Context | Judgement | Proof
Report: TypeAlias = dict[str, Any]
