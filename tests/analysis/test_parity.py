"""The scan prints the numbers of the core: statistics of the tokens as the core computes them."""

import numpy as np
import pytest

from m2po_lab.analysis import scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.moments import sums
from m2po_lab.core.sequence import KINDS, sequence_log_ratio
from m2po_lab.core.statistics import STATISTICS


def agree(stats: dict, d: np.ndarray, keep: np.ndarray, rows: int) -> None:
    """Every statistic that is a function of sums equals the core's."""
    expected = sums(d, keep, rows=rows)
    assert (stats["n"], stats["rows"]) == (int(expected.n), rows)
    for name, spec in STATISTICS.items():
        if spec.finish is not None:
            assert stats[name] == pytest.approx(float(spec.finish(expected)), rel=1e-10), name


@pytest.mark.parametrize("ratio", ["current/behavior", "proximal/behavior", "current/proximal"])
def test_scan_and_core_give_the_same_numbers(batch: TokenBatch, ratio: str):
    found = scan([batch]).to_dict()["ratios"][ratio]
    d, keep, advantage = batch.log_ratio(ratio), batch.keep, batch.advantage
    active = keep & (((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0)))
    row = batch.row_and_position[0]
    for name, inside in (
        ("all", keep),
        ("active", active),
        ("nonzero_advantage", keep & (advantage != 0)),
    ):
        agree(found[name], d, inside, len(set(row[inside].tolist())))
    step = batch.spread(batch.rows.step)
    for cell in found["by_step"]:
        inside = keep & (step == cell["step"])
        agree(cell, d, inside, len(set(row[inside].tolist())))


@pytest.mark.parametrize("kind", KINDS)
def test_sequence_statistics_are_those_of_the_core(batch: TokenBatch, kind: str):
    d, keep = sequence_log_ratio(batch, "current/behavior", kind)
    found = scan([batch]).to_dict()["ratios"]["current/behavior"]["sequence"][kind]
    agree(found, d, keep, int(keep.sum()))
