"""Small batches for the laws of integrity."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import Rows

COLUMNS = ("behavior_logp", "proximal_logp", "current_logp")


def batch(rows: list[dict[str, Any]], **facts: Any) -> TokenBatch:
    """A batch of rows given as dicts: lists for the token columns, values for id, step, train."""
    lengths = np.array([len(row["behavior"]) for row in rows], dtype=np.int64)

    def flat(name: str, dtype: Any) -> np.ndarray | None:
        if not all(name in row for row in rows):
            return None
        return np.array([x for row in rows for x in row[name]], dtype=dtype)

    def fact(name: str) -> np.ndarray | None:
        return np.array([r[name] for r in rows]) if all(name in r for r in rows) else None

    source = [row.get("source", "log.jsonl") for row in rows]
    return TokenBatch(
        behavior_logp=flat("behavior", np.float64),
        proximal_logp=flat("proximal", np.float64),
        current_logp=flat("current", np.float64),
        keep=flat("keep", np.bool_),
        advantage=flat("advantage", np.float64),
        version=flat("version", np.int64),
        lengths=lengths,
        rows=Rows(
            source=source,
            line=np.arange(1, len(rows) + 1),
            row_id=[r["id"] for r in rows] if all("id" in r for r in rows) else None,
            group_id=[r["group"] for r in rows] if all("group" in r for r in rows) else None,
            step=fact("step"),
            train_version=fact("train"),
            **facts,
        ),
    )


ODD = st.sampled_from([0.0, -0.0, -9999.0, 1.0, 0.5, np.nan, np.inf, -np.inf, -100.0, -1e9, 1e-4])
LOGP = st.one_of(st.floats(-8, 0), ODD)


@st.composite
def any_row(draw: Any, number: int) -> dict[str, Any]:
    """A row in which anything may be wrong."""
    n = draw(st.integers(0, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    return {
        "behavior": column(LOGP),
        "proximal": column(LOGP),
        "current": column(LOGP),
        "keep": column(st.booleans()),
        "advantage": column(st.sampled_from([-1.0, 0.0, 1.0, np.nan])),
        "version": column(st.integers(-1, 5)),
        "id": draw(st.sampled_from([f"r{number}", "again"])),
        "group": draw(st.sampled_from(["a", "b"])),
        "step": draw(st.integers(0, 2)),
        "train": draw(st.integers(0, 5)),
    }


@st.composite
def any_rows(draw: Any, least: int = 1, most: int = 4) -> list[dict[str, Any]]:
    """Rows in which anything may be wrong."""
    return [draw(any_row(i)) for i in range(draw(st.integers(least, most)))]
