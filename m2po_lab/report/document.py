"""The report as strict JSON, and the JSON Schema that ships with the package."""

import errno
import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

SCHEMA = "m2po-lab/report/1"


def dumps(report: dict[str, Any], indent: int | None = 2) -> str:
    """Write a report as strict JSON in ASCII, so that no log can smuggle a control character out.

    Raises:
        ValueError: a number is not finite; the report must hold null there.
    """
    return json.dumps(report, allow_nan=False, ensure_ascii=True, indent=indent) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `m2po-lab/report/1`."""
    text = files("m2po_lab.report").joinpath("schema/report-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str, report: dict[str, Any]) -> None:
    """Write a report as JSON, as `write_bytes` does."""
    write_text(Path(path), dumps(report))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file or nothing; the permissions are those of a file opened for writing.

    The content goes into a temporary file beside it, which is renamed over it; a link stays, and
    the file behind it is written. What exists and is no regular file (a device, a pipe) is written
    into: a rename would put a file in its place.

    Raises:
        OSError: it cannot be written; the error names `path`, not the temporary file.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                stream.write(content)
        else:
            _replace(path.resolve() if path.is_symlink() else path, content)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it over the path."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
