"""Looking into torch.save archives without loading them: which names their pickle holds."""

import zipfile

from m2po_lab.logs.source import Source

_ZIP = b"PK\x03\x04"
_LOOK_BYTES = 1 << 20


def pickle_names(source: Source, *names: str) -> bool:
    """Whether the file is a torch archive whose pickle holds all these texts near its start or end."""
    if not source.head.startswith(_ZIP):
        return False
    try:
        with source.open_seekable() as stream, zipfile.ZipFile(stream) as archive:
            inside = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if inside is None:
                return False
            with archive.open(inside) as member:
                start = member.read(_LOOK_BYTES)
                rest = member.read()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return _half_written(source, names)
    text = start + rest[-_LOOK_BYTES:]
    return all(name.encode() in text for name in names)


def _half_written(source: Source, names: tuple[str, ...]) -> bool:
    """An archive cut short still starts with its pickle."""
    return all(name.encode() in source.head for name in names)
