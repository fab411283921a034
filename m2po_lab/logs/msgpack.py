"""A reader for msgpack: numbers, texts, bytes, lists and maps; nothing is ever constructed."""

import struct
from typing import Any

import numpy as np

_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_SIZED = {0xC4: (1, "bin"), 0xC5: (2, "bin"), 0xC6: (4, "bin"), 0xD9: (1, "str"), 0xDA: (2, "str")}
_SIZED |= {0xDB: (4, "str"), 0xDC: (2, "list"), 0xDD: (4, "list"), 0xDE: (2, "map")}
_SIZED |= {0xDF: (4, "map"), 0xC7: (1, "ext"), 0xC8: (2, "ext"), 0xC9: (4, "ext")}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_DEPTH = 64


def unpack(data: bytes) -> Any:
    """Decode one value; long lists of doubles or booleans come as numpy arrays.

    Raises:
        ValueError: not msgpack, or cut short.
    """
    decoder = _Decoder(data)
    value = decoder.value(0)
    if decoder.position != len(data):
        raise ValueError(f"{len(data) - decoder.position} bytes behind the value")
    return value


class _Decoder:
    """Walks over the bytes once."""

    def __init__(self, data: bytes) -> None:
        """Start at the first byte."""
        self.data = data
        self.position = 0
        self._bytes = np.frombuffer(data, dtype=np.uint8)

    def _take(self, count: int) -> bytes:
        """The next bytes."""
        piece = self.data[self.position : self.position + count]
        if len(piece) < count:
            raise ValueError("msgpack content ends early")
        self.position += count
        return piece

    def value(self, depth: int) -> Any:
        """The value at the current position."""
        if depth > _DEPTH:
            raise ValueError("msgpack nested too deeply")
        tag = self._take(1)[0]
        if tag < 0x80:
            return tag
        if tag >= 0xE0:
            return tag - 0x100
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _FIXED:
            layout = _FIXED[tag]
            return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]
        if tag <= 0xBF:
            kind, size = _short(tag)
            return self._sized(kind, size, depth)
        if tag in _SIZED:
            width, kind = _SIZED[tag]
            return self._sized(kind, int.from_bytes(self._take(width), "big"), depth)
        if 0xD4 <= tag <= 0xD8:
            return self._sized("ext", 1 << (tag - 0xD4), depth)
        raise ValueError(f"byte {tag:#x} starts no msgpack value")

    def _sized(self, kind: str, size: int, depth: int) -> Any:
        """A value of stated size."""
        if kind == "str":
            return self._take(size).decode("utf-8", "replace")
        if kind == "bin":
            return self._take(size)
        if kind == "ext":
            return self._take(size + 1)
        if kind == "map":
            return {_key(self.value(depth + 1)): self.value(depth + 1) for _ in range(size)}
        return self._list(size, depth)

    def _list(self, size: int, depth: int) -> Any:
        """A list; one of doubles or booleans only is taken in one step."""
        start, rest = self.position, len(self.data) - self.position
        if size > rest:
            raise ValueError("msgpack content ends early")
        flags = self._bytes[start : start + size]
        if size and ((flags == 0xC2) | (flags == 0xC3)).all():
            self.position += size
            return flags == 0xC3
        if size and 9 * size <= rest:
            cells = self._bytes[start : start + 9 * size].reshape(size, 9)
            if (cells[:, 0] == 0xCB).all():
                self.position += 9 * size
                return np.ascontiguousarray(cells[:, 1:]).view(">f8")[:, 0].astype(np.float64)
        return [self.value(depth + 1) for _ in range(size)]


def _short(tag: int) -> tuple[str, int]:
    """Kind and size of a value whose size stands in its first byte."""
    if tag <= 0x8F:
        return "map", tag & 0x0F
    return ("list", tag & 0x0F) if tag <= 0x9F else ("str", tag & 0x1F)


def _key(value: Any) -> Any:
    """A map key that can be looked up."""
    return value if isinstance(value, str | int | float | bytes | bool | None) else repr(value)
