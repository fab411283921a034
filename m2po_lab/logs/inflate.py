"""Decompression while reading: gzip and zstd, and what is left of files cut off in mid-write."""

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BROKEN = (EOFError, OSError, zlib.error)
"""What reading a broken compressed stream raises, after everything before the break."""

_PIECE = 1 << 16
_GZIP_WINDOW = 31


def is_compressed(magic: bytes) -> bool:
    """Whether a file with these first bytes is gzip or zstd."""
    return magic.startswith((GZIP, ZSTD))


def inflated(raw: IO[bytes], magic: bytes) -> IO[bytes]:
    """The decompressed content of an open file; closing it closes the file.

    Raises:
        EOFError, OSError, zlib.error: while reading, at the place where the content breaks.
    """
    pieces = _gunzip(raw) if magic.startswith(GZIP) else _unzstd(raw)
    return io.BufferedReader(_Pieces(pieces, raw), _PIECE)


def _gunzip(raw: IO[bytes]) -> Iterator[bytes]:
    """Pieces of a gzip file of one or more members."""
    engine = zlib.decompressobj(_GZIP_WINDOW)
    while piece := raw.read(_PIECE):
        while piece:
            yield engine.decompress(piece)
            piece = engine.unused_data.lstrip(b"\0") if engine.eof else b""
            if engine.eof and piece:
                engine = zlib.decompressobj(_GZIP_WINDOW)
    if not engine.eof:
        raise EOFError("gzip content ends early")


def _unzstd(raw: IO[bytes]) -> Iterator[bytes]:
    """Pieces of a zstd file; of one cut short also those of its last blocks.

    Where the file ends early a read gives nothing of what it had decompressed by then, so the last
    piece is read again, byte by byte.
    """
    whole = 0
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    try:
        while piece := stream.read(_PIECE):
            yield piece
            whole += 1
    except OSError as error:
        raw.seek(0)  # `stream` stays: with it pyarrow would close the file
        again = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        for _ in range(whole):
            again.read(_PIECE)
        yield from _until_it_breaks(again)
        raise EOFError("zstd content ends early") from error


def _until_it_breaks(stream: pa.CompressedInputStream) -> Iterator[bytes]:
    """What a stream gives before it raises."""
    rest = bytearray()
    try:
        while byte := stream.read(1):
            rest += byte
    except OSError:
        pass
    yield bytes(rest)


class _Pieces(io.RawIOBase):
    """An iterator of byte strings as a raw stream."""

    def __init__(self, pieces: Iterator[bytes], below: IO[bytes]) -> None:
        """Keep the iterator and the file below it."""
        self._pieces = pieces
        self._below = below
        self._left = b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the next piece."""
        while not self._left:
            try:
                self._left = next(self._pieces)
            except StopIteration:
                return 0
        n = min(len(buffer), len(self._left))
        buffer[:n] = self._left[:n]
        self._left = self._left[n:]
        return n

    def close(self) -> None:
        """Close the file below too."""
        self._below.close()
        super().close()


def read_up_to(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or as many as there are before the end or a break."""
    read = getattr(stream, "read1", stream.read)
    pieces: list[bytes] = []
    left = size
    try:
        while left > 0 and (piece := read(left)):
            pieces.append(piece)
            left -= len(piece)
    except BROKEN:
        if not pieces:
            return b""
    return b"".join(pieces)
