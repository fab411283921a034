"""The additive evidence against plain loops."""

import pickle

import numpy as np
import pytest

from m2po_lab.integrity import check
from m2po_lab.integrity.columns import grid
from m2po_lab.integrity.pairs import LEVELS, MAGNITUDES, QUADRANTS, STEPS, TAIL
from m2po_lab.integrity.shifts import Limits, best_shift
from m2po_lab.integrity.steps import CELL_SUMS
from m2po_lab.logs.rows import UNKNOWN
from tests.findings.synthetic import Columns, make
from tests.integrity.logs import batch

RATIO = "current/behavior"


@pytest.fixture(scope="module")
def log() -> Columns:
    return make(5, lags=(0, 1, 3), walk=0.3, rows=48, masked=0.2)


def d_of(log: Columns) -> np.ndarray:
    return (log.current - log.behavior)[log.keep]


def test_correlations_at_shifts_are_those_of_numpy(log: Columns) -> None:
    shift = check(log.batch())[1].shifts[RATIO]
    a, b = np.maximum(log.current, -20), np.maximum(log.behavior, -20)
    pairs = [
        (i, i + s)
        for s in (1,)
        for i in range(a.size - s)
        if log.row[i] == log.row[i + s] and log.keep[i] and log.keep[i + s]
    ]
    here, there = np.array(pairs).T
    right = (
        np.corrcoef(a[there], b[here])[0, 1],
        np.corrcoef(a[log.keep], b[log.keep])[0, 1],
        np.corrcoef(a[here], b[there])[0, 1],
    )
    assert shift.correlations == pytest.approx(right, abs=1e-9)
    assert best_shift(shift, Limits()) == 0


def test_histogram_and_squares_hold_every_kept_token(log: Columns) -> None:
    pair, d = check(log.batch())[1].pairs[RATIO], d_of(log)
    assert pair.histogram.sum() == pair.n.sum() == d.size
    assert pair.squares.sum() == pytest.approx((d**2).sum())
    assert pair.squares[:, 1].sum() == pytest.approx((d[d > 0] ** 2).sum())
    edges = np.concatenate([[0], MAGNITUDES, [np.inf]])
    np.testing.assert_array_equal(
        pair.histogram.sum(axis=(0, 1)), np.histogram(np.abs(d), edges)[0]
    )


def test_strata_split_known_lag_0_from_the_rest(log: Columns) -> None:
    pair = check(log.batch())[1].pairs[RATIO]
    assert log.version is not None
    assert log.train_version is not None
    fresh = (log.train_version[log.row] == log.version)[log.keep]
    np.testing.assert_array_equal(pair.n, [fresh.sum(), (~fresh).sum()])


def test_levels_count_d_by_log_prob(log: Columns) -> None:
    pair, b = check(log.batch())[1].pairs[RATIO], log.behavior[log.keep]
    edges = np.concatenate([-LEVELS, [np.inf]])
    np.testing.assert_array_equal(pair.levels.sum(axis=(0, 2)), np.histogram(-b, edges)[0])
    columns = np.concatenate([[-np.inf], STEPS, [np.inf]])
    np.testing.assert_array_equal(pair.levels.sum(axis=(0, 1)), np.histogram(d_of(log), columns)[0])


def test_quadrants_add_up_to_the_tokens_with_known_advantage(log: Columns) -> None:
    pair, d = check(log.batch())[1].pairs[RATIO], d_of(log)
    assert log.advantage is not None
    a = log.advantage[log.keep]
    hit = (a < 0) & (d < 0)
    row = log.row[log.keep]
    tail = hit & (np.abs(d) > TAIL)
    right = [hit.sum(), (d[hit] ** 2).sum(), tail.sum(), np.unique(row[tail]).size]
    assert pair.quadrants[QUADRANTS.index("A<0,r<1")].tolist() == pytest.approx(right)
    assert pair.quadrants[:, 0].sum() == d.size


def test_cells_add_up_by_step_version_and_lag(log: Columns) -> None:
    cells, d = check(log.batch())[1].cells[RATIO], d_of(log)
    row = log.row[log.keep]
    assert log.version is not None
    assert log.train_version is not None
    lag = (log.train_version[log.row] - log.version)[log.keep]
    for (step, trained, g), sums in cells.items():
        hit = (log.step[row] == step) & (log.train_version[row] == trained) & (lag == g)
        by_row = [(d[hit & (row == r)] ** 2).sum() for r in np.unique(row[hit])]
        counts = [(hit & (row == r)).sum() for r in np.unique(row[hit])]
        found = dict(zip(CELL_SUMS, sums, strict=True))
        assert found["n"] == hit.sum()
        assert found["square"] == pytest.approx(sum(by_row))
        assert found["row_square"] == pytest.approx(np.dot(by_row, by_row))
        assert found["row_cross"] == pytest.approx(np.dot(by_row, counts))
        assert found["row_count"] == np.dot(counts, counts)
    assert sum(sums[0] for sums in cells.values()) == d.size


def test_halves_compare_early_with_late_tokens(log: Columns) -> None:
    halves = check(log.batch())[1].halves[RATIO]
    square = (log.current - log.behavior) ** 2
    up, sums = 0, np.zeros(2)
    for r in range(log.lengths.size):
        tokens = square[(log.row == r) & log.keep]
        n = tokens.size
        early, late = tokens[: -(-n // 2)], tokens[-(-n // 2) :]
        if late.size >= 8:
            up += late.mean() > early.mean()
            sums += early.mean(), late.mean()
    assert halves.rows[0] == up
    np.testing.assert_allclose(halves.squares, sums)


def test_lags_are_unknown_without_a_trainer_version(log: Columns) -> None:
    evidence = check(log.with_(train_version=None).batch())[1]
    assert evidence.versions is not None
    assert evidence.versions.known == 0
    assert {lag for _, _, lag in evidence.cells[RATIO]} == {UNKNOWN}
    negative = log.with_(version=np.full(log.row.size, -1))
    assert check(negative.batch())[1].versions.known == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "exact"), [("bfloat16", "bfloat16"), ("float16", "float16")])
def test_narrow_floats_are_recognised(kind: str, exact: str) -> None:
    found = grid(make(0, grid=kind).behavior)
    assert vars(found)[exact] == found.n
    wide = grid(make(0, grid="float32").behavior)
    assert max(wide.bfloat16, wide.float16) < 0.01 * wide.n


def test_evidence_of_a_worker_that_runs_other_code_is_refused_in_one_line() -> None:
    _, evidence = check(batch([{"behavior": [-1.0], "current": [-1.1]}]))
    older = pickle.loads(pickle.dumps(evidence))
    del vars(older)["reuse"]
    with pytest.raises(TypeError, match="every worker run the same version"):
        evidence + older
