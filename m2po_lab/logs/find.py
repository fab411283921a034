"""Paths, globs, directories and fsspec addresses -> the files of a log, in natural order."""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec
from fsspec.core import url_to_fs

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.source import Source

_TEMPORARY = re.compile(
    r"^[._~]|\.(?:tmp|temp|part|partial|crdownload|swp|lock|inprogress)(?:[-.]|$)|~$"
)
_WILD = re.compile(r"[*?\[]")


def is_temporary(name: str) -> bool:
    """Hidden files, editors' and writers' temporary files, `_SUCCESS` and the like."""
    return bool(_TEMPORARY.search(name))


def natural(path: str) -> list[tuple[int, int | str]]:
    """Sort key in which `9.jsonl` comes before `10.jsonl`."""
    pieces = re.split(r"(\d+)", path)
    return [(0, int(p)) if p.isdecimal() else (1, p) for p in pieces if p]


def find(path: str | os.PathLike[str]) -> list[Source]:
    """Return every file a path, glob or address stands for.

    A directory stands for all files below it, hidden and temporary ones left out.

    Raises:
        UnreadableLogError: a path that does not exist, a glob that matches nothing.
    """
    return _expand(os.fspath(path))


def _expand(path: str) -> list[Source]:
    """Files of one path, glob or address."""
    try:
        system, inner = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise UnreadableLogError(path, f"cannot open this address ({error})") from error
    is_local = "file" in _protocols(system)
    prefix = "" if is_local else _prefix(path)
    try:
        if is_local and Path(path).is_symlink() and not Path(path).exists():
            raise UnreadableLogError(path, "is a link to nothing", "check the link")
        if system.isdir(inner):
            return _below(system, inner, prefix, path)
        if system.exists(inner):
            return [_source(system, inner, prefix, path if is_local else None)]
        matches = _glob(system, inner) if _WILD.search(path) else []
    except (OSError, PermissionError) as error:
        raise UnreadableLogError(path, f"cannot be read ({error})") from error
    if not matches:
        what = "matches no file" if _WILD.search(path) else "no such file or directory"
        raise UnreadableLogError(path, what, "check the spelling")
    return [
        s
        for match in sorted(matches, key=natural)
        for s in (
            _below(system, match, prefix, match)
            if system.isdir(match)
            else [_source(system, match, prefix)]
        )
    ]


def _glob(system: Any, pattern: str) -> Iterable[str]:
    """Matches of a glob without hidden and temporary files."""
    return [str(m) for m in system.glob(pattern) if not is_temporary(PurePosixPath(m).name)]


def _below(system: Any, directory: str, prefix: str, shown: str) -> list[Source]:
    """Files below a directory."""
    base = len(PurePosixPath(directory).parts)
    inside = [
        p
        for p in map(str, system.find(directory))
        if not any(is_temporary(part) for part in PurePosixPath(p).parts[base:])
    ]
    if not inside:
        raise UnreadableLogError(shown, "holds no file", "has the run written anything yet?")
    return [_source(system, p, prefix, root=directory) for p in sorted(inside, key=natural)]


def _source(
    system: Any, inner: str, prefix: str, shown: str | None = None, root: str = ""
) -> Source:
    """Describe one file; local addresses are relative to the working directory if they can be."""
    protocol = "file" if "file" in _protocols(system) else _protocols(system)[0]
    address = shown or (prefix + inner if prefix else _short(inner))
    options = {} if protocol == "file" else dict(system.storage_options)
    return Source(inner, address, protocol, root, options)


def _short(path: str) -> str:
    """A local path relative to the working directory where it lies below."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _prefix(address: str) -> str:
    """Protocol part of an address."""
    return address.partition("://")[0] + "://" if "://" in address else ""


def _protocols(system: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    """Names of a file system."""
    names = system.protocol
    return (names,) if isinstance(names, str) else tuple(names)
