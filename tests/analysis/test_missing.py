"""Whatever is null in a report has an entry that says what it needs, and intervals are not null."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.analysis.bootstrap import bucket, hash_texts
from m2po_lab.analysis.scan import scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs import open_log
from m2po_lab.logs.rows import Rows

DATA = Path(__file__).parent.parent / "data"
LOGS = [
    "real/trl_grpo_bf16.jsonl",
    "real/rlloggingboard_token_level.jsonl",
    "pathologies/00_healthy.jsonl",
    "pathologies/13_bypass_mode.jsonl",
    "pathologies/33_only_truncated_weights.jsonl",
    "pathologies/36_all_advantage_zero.jsonl",
    "frameworks/slime/rollout_data",
    "frameworks/skyrl",
    "frameworks/ms-swift",
]
PARTS = ("ratios", "reward", "lengths", "groups", "entropy", "signal", "attribution", "sweeps")


def nulls(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Paths of what is null; lists are passed through."""
    if value is None:
        yield "/".join(path)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from nulls(entry, (*path, str(key)))
    elif isinstance(value, list):
        for entry in value:
            yield from nulls(entry, path)


@pytest.mark.parametrize("name", LOGS)
def test_every_null_is_explained(name: str) -> None:
    report = scan(open_log(DATA / name)).to_dict()
    listed = [entry["what"] for entry in report["not_computable"]]
    assert len(set(listed)) == len(listed)
    unexplained = {
        path
        for part in PARTS
        for path in nulls(report[part], (part,))
        if not path.endswith("_high")
        and not any(f"{path}/".startswith(f"{what}/") for what in _shown(listed))
    }
    assert unexplained == set()


def _shown(listed: list[str]) -> list[str]:
    """A quadrant stands for all quadrants, a sequence ratio for both."""
    names = ("by_quadrant", "sequence")
    cells = ("A>0,r>1", "A>0,r<=1", "A<0,r<1", "A<0,r>=1", "A=0", "product", "geometric")
    more = [
        what.replace(f"{name}/", f"{name}/{cell}/")
        for what in listed
        for name in names
        for cell in cells
        if f"/{name}/" in what
    ]
    return listed + more


def step_of(ids: list[str]) -> dict[str, Any]:
    """The first step of a log with one row an id."""
    rng = np.random.default_rng(0)
    behavior = -rng.exponential(size=4 * len(ids))
    batch = TokenBatch(
        behavior_logp=behavior,
        current_logp=np.minimum(behavior + 0.1 * rng.normal(size=behavior.size), 0.0),
        lengths=np.full(len(ids), 4),
        rows=Rows(row_id=list(ids), step=np.zeros(len(ids), np.int64)),
    )
    ratio = scan([batch]).to_dict()["ratios"]["current/behavior"]
    return dict(ratio["by_step"][0])


def test_eight_rows_have_an_interval_even_if_two_share_a_bucket() -> None:
    names = [f"row{i}" for i in range(400)]
    of = bucket(hash_texts(names))
    first, second = next((i, j) for i in range(400) for j in range(i) if of[i] == of[j])
    rest = [names[i] for i in range(400) if of[i] != of[first]][:6]
    found = step_of([names[first], names[second], *rest])
    assert found["m2_low"] < found["m2"] < found["m2_high"]
    assert found["ess_low"] <= found["ess_high"]


def test_one_response_scored_eight_times_has_none() -> None:
    assert step_of(["row"] * 8)["m2_low"] is None
    assert step_of([f"row{i}" for i in range(7)])["m2_low"] is None
