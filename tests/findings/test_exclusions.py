"""What a fault has spoilt is left out with a count, so that it fires its own finding alone."""

import numpy as np
import pytest

from m2po_lab.findings import evaluate
from tests.findings import sick
from tests.findings.healthy import KINDS
from tests.findings.synthetic import Columns, analyzed, loud, make
from tests.findings.synthetic import found as findings_of


def second_moments(log: Columns) -> dict[str, float]:
    return {r: t["all"]["m2"] for r, t in analyzed(log).to_dict()["ratios"].items()}


@pytest.mark.parametrize("maker", sick.CASES["mask-shifted"], ids=lambda maker: maker.__name__)
def test_a_mask_one_token_off_spoils_no_number(maker) -> None:
    for seed in range(2):
        log = maker(seed)
        right = log.with_(keep=log.keep & (log.position > 0))
        assert list(loud(log)) == ["mask-shifted"]
        assert second_moments(log) == pytest.approx(second_moments(right), rel=1e-12)
        said = findings_of(log)["mask-shifted"]
        assert said.evidence["tokens_excluded"] == log.lengths.size
        assert analyzed(log).integrity.tokens.to_dict()["excluded"]["masked"] == log.lengths.size


def test_a_column_never_logged_leaves_no_stray_token() -> None:
    log = make(3, length=4, rows=96)
    log = log.with_(behavior=np.zeros(log.row.size))
    short = log.with_(keep=log.keep & ((log.row % 3 > 0) | (log.position == 0)))
    report = analyzed(short).to_dict()
    assert report["ratios"]["proximal/behavior"]["all"]["n"] == 0
    assert set(loud(short)) == {"zero-filled-log-probs"}


def test_rows_filled_in_whole_take_their_shortest_with_them() -> None:
    log = make(5, rows=96)
    keep = log.keep & ((log.row % 8 > 0) | (log.position == 0))
    filled = log.row % 4 == 0
    log = log.with_(keep=keep, behavior=np.where(filled, 0.0, log.behavior))
    doubted = filled & keep & (log.proximal < -0.05)
    left = analyzed(log).integrity.tokens
    assert left.zero_filled >= doubted.sum()
    assert set(loud(log)) == {"zero-filled-log-probs"}


def padded(log: Columns, width: int | None, more: int = 0, at_end: bool = True) -> Columns:
    """Rows filled up with 0.0 in every column to `width`, or by `more` tokens each; no mask."""
    extra = np.full(log.lengths.size, more) if width is None else width - log.lengths
    starts = np.cumsum(log.lengths) - log.lengths
    where = np.repeat(starts + log.lengths if at_end else starts, extra)
    fill = {n: np.insert(getattr(log, n), where, 0.0) for n in ("behavior", "proximal", "current")}
    last = np.repeat(log.advantage[starts], extra)
    return log.with_(
        **fill,
        lengths=log.lengths + extra,
        keep=np.insert(log.keep, where, True),
        advantage=np.insert(log.advantage, where, last),
        entropy=np.insert(log.entropy, where, 0.0),
        version=np.insert(log.version, where, np.repeat(log.version[starts], extra)),
    )


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(("width", "more"), [(64, 0), (None, 20)])
def test_padding_without_a_mask_dilutes_nothing(width: int | None, more: int, at_end: bool) -> None:
    for seed in range(2):
        log = make(seed, length=30)
        filled = padded(log, width, more, at_end)
        assert second_moments(filled) == pytest.approx(second_moments(log), rel=1e-12)
        found = {finding.id: finding for finding in evaluate(analyzed(filled))}
        said = found["zero-filled-log-probs"]
        assert said.evidence["tokens"] == filled.row.size - log.row.size
        assert "padding" in said.message


@pytest.mark.parametrize("kind", ["certain policy", "certain policy in float16", "few short rows"])
def test_certain_tokens_are_no_padding(kind: str) -> None:
    for seed in range(2):
        log = make(seed, KINDS[kind])
        last = log.position >= log.lengths[log.row] - 2
        columns = {n: np.where(last, 0.0, getattr(log, n)) for n in ("behavior", "proximal")}
        log = log.with_(**columns, current=np.where(last, 0.0, log.current))
        assert analyzed(log).integrity.tokens.zero_filled == 0
