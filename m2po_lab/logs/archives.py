"""Looking into torch.save archives without loading them: which names their pickle holds."""

import zipfile

from m2po_lab.logs.source import Source

_ZIP = b"PK\x03\x04"
_LOOK_BYTES = 1 << 20
_HEADER_BYTES = 256


def pickle_names(source: Source, *names: str, within: int = _LOOK_BYTES) -> bool:
    """Whether the file is a torch archive whose pickle holds all these texts.

    Args:
        source: the file.
        names: texts to look for, such as keys of the dict that was saved; the first of them must
            stand near the start.
        within: how far from the start of the pickle; its last megabyte counts too if that is far.
    """
    if not source.head.startswith(_ZIP):
        return False
    try:
        with source.open_seekable() as stream, zipfile.ZipFile(stream) as archive:
            inside = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if inside is None:
                return False
            with archive.open(inside) as member:
                start = member.read(within)
                if names[0].encode() not in start:
                    return False
                rest = member.read() if within == _LOOK_BYTES else b""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        start, rest = source.head[: within + _HEADER_BYTES], b""  # cut short: the pickle is first
    text = start + rest[-_LOOK_BYTES:]
    return all(name.encode() in text for name in names)
