"""What a report is made of, whatever the medium: words, tables, figures, findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from m2po_lab.report.grid import Column


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
class Token:
    """One token of a context.

    Attributes:
        text: what to show.
        marks: any of worst, active, masked; "" for none.
        note: its numbers.
    """

    text: str
    marks: str
    note: str


@dataclass(frozen=True)
class Context:
    """Neighbouring tokens of one response; a terminal leaves it out.

    Attributes:
        caption: which response.
        tokens: in order.
        text: the response in words, if the log has it.
    """

    caption: str
    tokens: Sequence[Token] = ()
    text: str = ""


@dataclass(frozen=True)
class Judgement:
    """One finding, with its evidence written out."""

    severity: str
    id: str
    title: str
    message: str
    seen: str
    advice: str
    source: str


Item: TypeAlias = Words | Grid | Plot | Context | Judgement
Report: TypeAlias = dict[str, Any]
