"""safetensors bytes -> numpy: a length, a JSON header, raw data."""

import struct
from typing import Any

import orjson

from m2po_lab.logs.tensors import Array, from_bytes

_LENGTH = struct.Struct("<Q")


def unpack(data: bytes) -> dict[str, Array]:
    """Tensors by name; those of an element type that is no plain number are left out.

    Raises:
        ValueError: not safetensors, or cut short.
    """
    if len(data) < _LENGTH.size:
        raise ValueError("safetensors content ends early")
    (size,) = _LENGTH.unpack_from(data)
    header: Any = orjson.loads(data[_LENGTH.size : _LENGTH.size + size])
    body = memoryview(data)[_LENGTH.size + size :]
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, stop = entry["data_offsets"]
        if not 0 <= start <= stop <= len(body):
            raise ValueError(f"safetensors tensor {name!r} lies outside the data")
        try:
            arrays[name] = from_bytes(body[start:stop], entry["dtype"], entry["shape"])
        except ValueError:
            continue
    return arrays
