"""One logged value -> numbers: what frameworks write for a list of floats, an integer or a text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from m2po_lab.logs.rows import UNKNOWN

IGNORED_LABEL = -100
_LOGP_KEYS = ("logprob", "log_prob", "lp")
_REWARD_KEYS = ("reward", "score", "total")
_FLAT = (int, float, bool, str, type(None))


class Numbers(NamedTuple):
    """A per-token value: float64 entries, and which of them the log gave as null (None: none)."""

    values: NDArray[np.float64]
    null: NDArray[np.bool_] | None


def is_sequence(value: Any) -> TypeGuard[Any]:
    """A list, tuple or array of at least one dimension; not a text."""
    if type(value) is list:  # nearly always; the other checks are slow
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def unwrapped(value: Any) -> Any:
    """Take off leading dimensions of size 1: `[[a, b]]` -> `[a, b]`; `[[lp, id, text]]` is kept."""
    if isinstance(value, np.ndarray):
        while value.ndim > 1 and value.shape[0] == 1:
            value = value[0]
        return value[:, 0] if value.ndim == 2 and value.shape[1] == 1 else value
    while len(value) == 1 and is_sequence(value[0]) and not _is_engine_triple(value[0]):
        value = value[0]
    return value


def _is_engine_triple(item: Any) -> bool:
    """SGLang's entry `[log-prob, token id, text or null]`."""
    return (
        is_sequence(item)
        and len(item) in (2, 3)
        and isinstance(item[1], int)
        and not isinstance(item[1], bool)
        and (len(item) == 2 or item[2] is None or isinstance(item[2], str))
        and isinstance(item[0], float | int | None)
        and (len(item) == 3 or isinstance(item[0], float))
    )


def is_column_of_rows(value: Any) -> bool:
    """Lists of numbers under one name, one list a row; not entries of engines, not a column."""
    return (
        is_sequence(value)
        and len(value) > 1
        and all(is_sequence(item) for item in value)
        and any(len(item) > 1 for item in value)
        and not any(_is_engine_triple(item) for item in value)
    )


def _scalar(item: Any) -> float:
    """One entry of a per-token list as a float; NaN if it is none."""
    if _is_engine_triple(item):
        item = item[0]
    elif isinstance(item, Mapping):
        item = _inner(item)
    elif is_sequence(item) and len(item) == 1:
        return _scalar(item[0])
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def _inner(item: Mapping[Any, Any]) -> Any:
    """The log-prob in an entry `{"logprob": lp}` or, as vLLM writes, `{id: {"logprob": lp}}`."""
    named = next((item[key] for key in _LOGP_KEYS if key in item), None)
    if named is None and len(item) == 1:
        (only,) = item.values()
        return _inner(only) if isinstance(only, Mapping) else None
    return named


def _is_null(item: Any) -> bool:
    """An entry that stands for "no value": null, or an engine's triple around null."""
    if _is_engine_triple(item):
        return item[0] is None
    if isinstance(item, Mapping):
        return _inner(item) is None
    return item is None


def numbers(value: Any) -> Numbers:
    """Convert a logged list to float64; null becomes NaN and is remembered, texts are parsed.

    A scalar gives one entry.
    """
    if not is_sequence(value):
        return Numbers(np.array([_scalar(value)]), None)
    value = unwrapped(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "fiub":
        with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
            return Numbers(value.astype(np.float64), None)
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim != 1:
        array = np.array([_scalar(item) for item in value], dtype=np.float64)
    if not np.isnan(array).any():
        return Numbers(array, None)
    null = np.array([_is_null(item) for item in value], dtype=np.bool_)
    return Numbers(array, null if null.any() else None)


def mask(value: Any) -> NDArray[np.bool_]:
    """Convert a logged mask: booleans, 0/1, or labels with -100 where the token does not count.

    A list of labels without any -100 keeps every token; null counts as masked.
    """
    values = numbers(value).values
    if (values == IGNORED_LABEL).any():
        return np.asarray(values != IGNORED_LABEL)
    if ((values != 0) & (values != 1) & ~np.isnan(values)).any() and (values > 1).any():
        return np.ones(values.shape, dtype=np.bool_)
    return np.asarray((values != 0) & ~np.isnan(values))


def integer(value: Any) -> int:
    """An integer logged as number, text or list of one; UNKNOWN if it is none of these."""
    number = real(value)
    return int(number) if math.isfinite(number) and abs(number) < 2**62 else UNKNOWN


def real(value: Any) -> float:
    """A number logged as number, text, list of one, or dict with one number; NaN if none."""
    if isinstance(value, Mapping):
        named = next((value[key] for key in _REWARD_KEYS if key in value), None)
        numeric = [v for v in value.values() if isinstance(v, int | float)]
        value = named if named is not None else numeric[0] if len(numeric) == 1 else None
    if is_sequence(value):
        value = unwrapped(value)
        value = value[0] if is_sequence(value) and len(value) == 1 else None
    return _scalar(value) if not is_sequence(value) else math.nan


def text(value: Any) -> str | None:
    """A text, or the texts of a list of chat messages joined; None if there is none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return text(value.get("content"))
    if is_sequence(value):
        parts = [part for item in value if (part := text(item)) is not None]
        return "\n".join(parts) if parts else None
    return None


def label(value: Any) -> str | None:
    """An identity or a category as text: numbers too."""
    if value is None or isinstance(value, Mapping):
        return None
    if is_sequence(value):
        value = unwrapped(value)
        value = value[0] if is_sequence(value) and len(value) == 1 else value
    return text(value) if isinstance(value, str) else str(value)


def flat_ids(value: Any) -> NDArray[np.int64] | None:
    """Token ids as int64; None unless the value is a flat list of integers."""
    if not is_sequence(value):
        return None
    value = unwrapped(value)
    if isinstance(value, np.ndarray):
        whole = value.ndim == 1 and value.dtype.kind in "iu"
        return value.astype(np.int64) if whole else None
    if not all(isinstance(item, _FLAT) for item in value[:8]):
        return None
    try:
        array = np.array(value)
    except (ValueError, OverflowError):
        return None
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        return None
    return array.astype(np.int64)
