"""Cutting batches by rows, and comparing reports."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import Rows


def rows_of(batch: TokenBatch, chosen: list[int]) -> TokenBatch:
    """The batch that holds only some rows, in the given order."""
    starts = np.cumsum(batch.lengths) - batch.lengths
    at = [np.arange(starts[i], starts[i] + batch.lengths[i]) for i in chosen]
    index = np.concatenate([*at, np.zeros(0, dtype=int)]).astype(int)
    facts = {}
    for name, value in vars(batch.rows).items():
        if isinstance(value, np.ndarray) and value.shape == (batch.n_rows,):
            facts[name] = value[chosen]
        elif isinstance(value, list):
            facts[name] = [value[i] for i in chosen]
    fields = {name: getattr(batch, name)[index] for name in batch.present()}
    return TokenBatch(**fields, lengths=batch.lengths[chosen], rows=Rows(**facts))


def close(first: object, second: object, path: str = "") -> None:
    """Reports agree: integers and text exactly, floats to 1e-10 relative."""
    if isinstance(first, dict) and isinstance(second, dict):
        assert list(first) == list(second), path
        for key in first:
            close(first[key], second[key], f"{path}/{key}")
    elif isinstance(first, list) and isinstance(second, list):
        assert len(first) == len(second), path
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            close(a, b, f"{path}[{i}]")
    elif isinstance(first, float) and isinstance(second, float):
        assert first == pytest.approx(second, rel=1e-10, abs=1e-12), path
    else:
        assert first == second, path
