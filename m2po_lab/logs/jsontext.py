"""JSON as trainers write it: one object a line, bare NaN, files cut off in mid-write."""

import json
from collections.abc import Iterator
from typing import IO, Any, cast

import orjson

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.inflate import BROKEN
from m2po_lab.logs.reader import Notes, ReadOptions
from m2po_lab.logs.source import HEAD_BYTES, Source

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\0"
_FIRST_LINE_BYTES = 1 << 28
_TRIES = 8


def parse(line: bytes) -> Any:
    """Parse one JSON value; bare NaN, Infinity and -Infinity are accepted.

    Raises:
        ValueError: not JSON.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _lines(stream: IO[bytes], is_compressed: bool) -> Iterator[tuple[bytes, bool]]:
    """Lines and whether each is the last; what follows a cut in a compressed stream is one more."""
    previous: bytes | None = None
    is_cut = False
    try:
        for line in stream:
            if previous is not None:
                yield previous, False
            previous = line
    except BROKEN:
        if not is_compressed:
            raise
        is_cut = True
    if previous is not None:
        yield previous, not is_cut
    if is_cut:
        yield b"{", True


def objects(
    source: Source, options: ReadOptions, notes: Notes
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSON-lines file, blank lines left out.

    A last line that does not parse is a write cut short: counted as bad. Elsewhere such a line
    stops the reading, unless bad rows are to be skipped; then it is counted.

    Raises:
        UnreadableLogError: a malformed line in the middle.
    """
    with source.open() as stream:
        for number, (line, is_last) in enumerate(_lines(stream, source.is_compressed), 1):
            line = line.removeprefix(_BOM) if number == 1 else line
            if not line.strip(_BLANK):
                continue
            is_cut = False
            try:
                value = parse(line)
                problem = "" if isinstance(value, dict) else f"{_shown(line)} is no JSON object"
            except ValueError as error:
                problem, is_cut = f"{_shown(line)} is no JSON: {error}", True
            if not problem:
                yield number, value
                continue
            notes.bad_rows += 1
            place = f"{source.address}:{number}"
            if is_last:
                notes.remark(f"{place} {'is cut short' if is_cut else 'is no JSON object'}")
            elif not options.skip_bad_rows:
                raise UnreadableLogError(place, problem, "leave it out with --skip-bad-rows")


def _shown(line: bytes) -> str:
    """The start of a line for a message."""
    start = line[:40].decode("utf-8", "replace").strip()
    return repr(start + ("..." if len(line) > 40 else ""))


def whole(source: Source) -> Any:
    """Parse a file that is one JSON value; None if it is not."""
    with source.open() as stream:
        try:
            return parse(stream.read().removeprefix(_BOM))
        except (ValueError, *BROKEN):
            return None


def looks_like_json(source: Source) -> bytes:
    """First byte of the content if it can be JSON ("{" or "["), else nothing.

    Lines before it that are blank or hold no more than null, a number, a string do not matter: they
    are malformed rows of a file whose format its other rows tell.
    """
    head = source.head.removeprefix(_BOM)
    while head:
        line, _, rest = head.partition(b"\n")
        start = line.strip(_BLANK)[:1]
        if start in (b"{", b"["):
            return start
        if not is_void(line):
            return b""
        head = rest
    return b""


def is_void(line: bytes) -> bool:
    """Whether a line is blank or a JSON value without anything in it that could be a row."""
    if not line.strip(_BLANK):
        return True
    try:
        value = parse(line)
    except ValueError:
        return False
    return not value or not isinstance(value, dict | list)


def reason_without_rows(source: Source) -> str:
    """Why the content holds no row, whatever its format; nothing if it might hold one."""
    if not source.head:
        return "cut short before the first row" if source.is_cut else "it is empty"
    lines = source.head.removeprefix(_BOM).split(b"\n")
    is_all = len(source.head) < HEAD_BYTES
    if all(map(is_void, lines if is_all else lines[:-1])) and (is_all or len(lines) > 1):
        blank = not any(line.strip(_BLANK) for line in lines)
        return "every line is blank" if blank else "no line holds a row"
    full = [line for line in lines if not is_void(line)]
    if is_all and len(full) == 1 and full[0].lstrip().startswith(b"{") and not first_object(source):
        return "its only line is cut short"
    return ""


def first_object(source: Source) -> dict[str, Any]:
    """The first line of a JSON-lines file that holds an object; empty if there is none."""
    if "first_object" not in source.seen:
        source.seen["first_object"] = _first_object(source)
    return cast(dict[str, Any], source.seen["first_object"])


def _first_object(source: Source) -> dict[str, Any]:
    """Read and parse it."""
    if looks_like_json(source) != b"{":
        return {}
    with source.open() as stream:
        try:
            tries = 0
            while tries < _TRIES:
                line = stream.readline(_FIRST_LINE_BYTES).removeprefix(_BOM)
                if not line:
                    break
                if is_void(line):
                    continue
                tries += 1
                try:
                    value = parse(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    return value
        except BROKEN:
            pass
    return {}
