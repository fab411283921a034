"""Files -> units of reading: which format each file has, and which files belong together."""

from collections.abc import Sequence
from dataclasses import dataclass

from m2po_lab.logs.columns import parse_overrides
from m2po_lab.logs.errors import CONTENT_ERRORS, UnreadableLogError
from m2po_lab.logs.jsonlines import JsonLines
from m2po_lab.logs.jsontext import first_object, reason_without_rows
from m2po_lab.logs.reader import Notes, Reader, ReadOptions
from m2po_lab.logs.registry import READERS, by_name
from m2po_lab.logs.source import Source
from m2po_lab.logs.twins import twins


@dataclass(frozen=True)
class Unit:
    """Files that one reader reads together.

    Args:
        path: what the user named.
        format: reader's name.
        sources: the files.
        remarks: what arranging the files met.
    """

    path: str
    format: str
    sources: tuple[Source, ...]
    remarks: tuple[str, ...] = ()


def units_of(path: str, sources: Sequence[Source], options: ReadOptions) -> list[Unit]:
    """Detect every file's format and arrange the files of each format into units, in file order.

    Files of no known format are passed over as long as the path has one that is known.

    Raises:
        UnreadableLogError: nothing is of a known format, or `--format` or `--columns` is wrong.
    """
    parse_overrides(options.columns)
    groups: dict[str, list[Source]] = {}
    for source in sources:
        reader = by_name(options.format) if options.format != "auto" else choose(source, options)
        source.forget()
        if reader is not None:
            groups.setdefault(reader.name, []).append(source)
    if not groups:
        raise _unknown(path, sources)
    arranged, remarks = {}, {}
    for name, found in groups.items():
        notes, reader = Notes(), by_name(name)
        arranged[name] = reader, reader.arrange(found, notes) or [()]  # nothing ready: remarks stay
        remarks[name] = notes.remarks
    for name, sentence in twins(arranged, options).items():
        remarks[name].append(sentence)
    return [
        Unit(path, name, group, tuple(remarks[name]))
        for name, (_, found) in arranged.items()
        for group in found
    ]


def choose(source: Source, options: ReadOptions) -> Reader | None:
    """The first reader that recognises the content; generic JSON lines if it has a named column."""
    try:
        if not source.head:
            return None
        for reader in READERS:
            if reader.sniff(source):
                return reader
        if options.columns and not set(options.columns.values()).isdisjoint(first_object(source)):
            return by_name(JsonLines.name)
    except CONTENT_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise UnreadableLogError(source.address, f"cannot be read ({error})") from error
    return None


def _unknown(path: str, sources: Sequence[Source]) -> UnreadableLogError:
    """The error of a path with nothing in it that is known."""
    reasons = [reason_without_rows(source) for source in sources]
    if all(reasons):
        said = "; ".join(dict.fromkeys(reasons))
        return UnreadableLogError(path, f"no readable row, {said}", "is the run still writing it?")
    shown = [source for source in sources if source.head]
    columns = first_object(shown[0])
    if columns:
        names = ", ".join(list(columns)[:12])
        return UnreadableLogError(
            path,
            f"unknown format: JSON with {names}",
            "say which column is which with --columns behavior=NAME,old=NAME",
        )
    names = ", ".join(source.name for source in shown[:3])
    readers = ", ".join(reader.name for reader in READERS)
    return UnreadableLogError(path, f"unknown format ({names})", f"known formats: {readers}")
