"""Raw bytes -> numpy arrays, bfloat16 by way of float32: what pickles, .pt and safetensors hold."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "U8": "u1",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "BOOL": "?",
}
"""Names of element types in torch and in safetensors -> numpy type strings."""

_BFLOAT16 = ("bfloat16", "BF16")


def from_bytes(data: Any, dtype: str, shape: Sequence[int] | None = None) -> Array:
    """An array of the given element type; bfloat16 is widened to float32, which is exact.

    Raises:
        ValueError: an element type that is not a plain number, or bytes that do not fit the shape.
    """
    dtype = dtype.removeprefix("torch.")
    if dtype in _BFLOAT16:
        halves = np.frombuffer(data, dtype="<u2").astype(np.uint32)
        array: Array = (halves << np.uint32(16)).view(np.float32)
    elif dtype in DTYPES:
        array = np.frombuffer(data, dtype=DTYPES[dtype])
    else:
        raise ValueError(f"element type {dtype!r}")
    return array if shape is None else array.reshape(tuple(shape))


def split_ragged(values: Array, offsets: Array, lengths: Array | None = None) -> list[Array]:
    """Pieces of a jagged tensor: values between offsets, cut to lengths where there are any."""
    bounds = np.asarray(offsets, dtype=np.int64)
    starts = bounds[:-1]
    ends = bounds[1:] if lengths is None else starts + np.asarray(lengths, dtype=np.int64)
    return [values[i:j] for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]
