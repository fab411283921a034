"""The report as strict JSON, and the JSON Schema that ships with the package."""

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
    """Write a whole file or nothing: into a temporary file beside it, then renamed over it."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str, report: dict[str, Any]) -> None:
    """Write a report as a JSON file, whole or not at all."""
    write_text(Path(path), dumps(report))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file or nothing; the permissions are those of a file opened for writing.

    Raises:
        OSError: the file cannot be written; it names the file, not the temporary one.
    """
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
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
