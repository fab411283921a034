from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2po_lab.core import TokenBatch

NAN = float("nan")


def padded_and_ragged(xp):
    """The same three rows (2, 0 and 1 tokens) in both layouts, the padding full of NaN."""
    padded = TokenBatch(
        behavior_logp=xp.asarray([[-1.0, -2.0], [NAN, NAN], [-3.0, NAN]]),
        current_logp=xp.asarray([[-1.5, -1.0], [NAN, NAN], [-2.0, NAN]]),
        advantage=xp.asarray([1.0, 7.0, -1.0]),
        keep=xp.asarray([[1, 1], [0, 0], [1, 0]]),
    )
    ragged = TokenBatch(
        behavior_logp=xp.asarray([-1.0, -2.0, -3.0]),
        current_logp=xp.asarray([-1.5, -1.0, -2.0]),
        advantage=xp.asarray([1.0, 1.0, -1.0]),
        lengths=xp.asarray([2, 0, 1]),
    )
    return padded, ragged


def test_both_layouts_give_the_same_rows(xp):
    for batch in padded_and_ragged(xp):
        d = batch.log_ratio()
        assert np.asarray(batch.row_sum(d)).tolist() == [0.5, 0.0, 1.0]
        assert np.asarray(batch.row_counts).tolist() == [2, 0, 1]
        assert batch.n_rows == 3


def test_rows_and_positions_follow_the_layout(xp):
    padded, ragged = padded_and_ragged(xp)
    row, position = (np.asarray(a).tolist() for a in ragged.row_and_position)
    assert row == [0, 0, 2]
    assert position == [0, 1, 0]
    row, position = (np.asarray(a).tolist() for a in padded.row_and_position)
    assert row == [[0, 0], [1, 1], [2, 2]]
    assert position == [[0, 1]] * 3


def test_what_is_not_kept_is_never_read(xp):
    padded, _ = padded_and_ragged(xp)
    assert np.asarray(padded.log_ratio()).tolist() == [[-0.5, 1.0], [0.0, 0.0], [1.0, 0.0]]


def test_a_row_advantage_reaches_every_token_of_its_row(xp):
    padded, _ = padded_and_ragged(xp)
    assert np.asarray(padded.advantage).tolist() == [[1.0, 1.0], [7.0, 7.0], [-1.0, -1.0]]
    one = xp.asarray([-1.0, -2.0, -3.0])
    ragged = TokenBatch(
        behavior_logp=one, advantage=xp.asarray([4.0, 5.0]), lengths=xp.asarray([1, 2])
    )
    assert np.asarray(ragged.advantage).tolist() == [4.0, 5.0, 5.0]


def test_the_log_ratio_is_taken_in_float64(xp):
    low = xp.asarray([[-1.0, -16777217.0]], dtype=xp.float32)
    batch = TokenBatch(behavior_logp=low, current_logp=xp.asarray([[-0.9, -1.0]], dtype=xp.float64))
    d = batch.log_ratio()
    assert d.dtype == xp.float64
    assert np.asarray(d)[0, 0] == -0.9 - -1.0


def test_bfloat16_is_accepted():
    torch = pytest.importorskip("torch")
    batch = TokenBatch(
        behavior_logp=torch.tensor([[-1.0, -2.0]], dtype=torch.bfloat16),
        current_logp=torch.tensor([[-1.5, -2.0]], dtype=torch.bfloat16),
    )
    assert batch.log_ratio().tolist() == [[-0.5, 0.0]]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    batch = TokenBatch(
        behavior_logp=np.asarray([[-1.0]], dtype=ml_dtypes.bfloat16),
        current_logp=np.asarray([[-1.5]], dtype=ml_dtypes.bfloat16),
    )
    assert batch.log_ratio().tolist() == [[-0.5]]


def test_torch_keeps_the_gradient_and_padding_gives_none():
    torch = pytest.importorskip("torch")
    current = torch.tensor([[-1.0, NAN]], dtype=torch.float64, requires_grad=True)
    batch = TokenBatch(
        behavior_logp=torch.tensor([[-2.0, -float("inf")]], dtype=torch.float64),
        current_logp=current,
        keep=torch.tensor([[True, False]]),
    )
    torch.sum(batch.log_ratio() ** 2).backward()
    assert current.grad.tolist() == [[2.0, 0.0]]


def test_the_primary_ratio_comes_first():
    one = np.asarray([[-1.0]])
    assert TokenBatch(behavior_logp=one).available_ratios() == ()
    assert TokenBatch(behavior_logp=one, proximal_logp=one).available_ratios() == (
        "proximal/behavior",
    )
    every = TokenBatch(behavior_logp=one, proximal_logp=one, current_logp=one)
    assert every.available_ratios()[0] == "current/behavior"
    assert len(every.available_ratios()) == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "needs lengths or one of behavior_logp"),
        ({"behavior_logp": np.zeros(3)}, r"log-probs have shape \(3,\)"),
        ({"behavior_logp": np.zeros((2, 3)), "entropy": np.zeros((3, 2))}, r"entropy has shape"),
        (
            {"behavior_logp": np.zeros(3), "lengths": np.asarray([1, 1])},
            r"behavior_logp has shape \(3,\), lengths add up to \(2,\)",
        ),
        (
            {"behavior_logp": np.zeros((2, 3)), "advantage": np.zeros(3)},
            r"advantage has shape \(3,\), but the batch has 2 rows",
        ),
    ],
)
def test_a_shape_that_does_not_fit_is_named(columns, message):
    with pytest.raises(ValueError, match=message):
        TokenBatch(**columns)


def test_a_missing_column_or_unknown_ratio_is_named():
    batch = TokenBatch(behavior_logp=np.asarray([[-1.0]]))
    with pytest.raises(ValueError, match="current/behavior needs current_logp"):
        batch.log_ratio()
    with pytest.raises(ValueError, match="unknown ratio 'old/new'"):
        batch.log_ratio("old/new")


@given(st.lists(st.integers(0, 5), max_size=6), st.randoms(use_true_random=False))
def test_row_sums_do_not_depend_on_the_layout(lengths, random):
    n = sum(lengths)
    values = np.asarray([random.uniform(-3, 3) for _ in range(n)])
    keep = np.asarray([random.random() < 0.7 for _ in range(n)], dtype=bool)
    batch = TokenBatch(behavior_logp=values, keep=keep, lengths=np.asarray(lengths, dtype=int))
    ends = np.cumsum([0, *lengths])
    expected = [values[a:b][keep[a:b]].sum() for a, b in pairwise(ends)]
    np.testing.assert_allclose(batch.row_sum(values), expected, rtol=1e-14, atol=1e-15)
    assert batch.to_padded(values, NAN).shape == (len(lengths), max(lengths, default=0))


def test_a_log_of_text_only_still_has_rows():
    batch = TokenBatch(lengths=np.asarray([2, 3]))
    assert batch.n_rows == 2
    assert batch.row_counts.tolist() == [2, 3]
    assert batch.present() == ("keep",)


def test_masked_infinities_never_meet_and_warn_of_nothing():
    masked = np.asarray([[-1.0, -np.inf, NAN, np.inf]])
    batch = TokenBatch(
        behavior_logp=masked - [[1.0, 0.0, 0.0, 0.0]],
        current_logp=masked,
        keep=np.asarray([[True, False, False, False]]),
    )
    with np.errstate(all="raise"):
        assert batch.log_ratio().tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_masked_infinities_give_no_gradient():
    torch = pytest.importorskip("torch")
    columns = [
        torch.tensor([[-1.0, low, NAN]], dtype=torch.float64, requires_grad=True)
        for low in (-float("inf"), float("inf"))
    ]
    batch = TokenBatch(
        behavior_logp=columns[0],
        current_logp=columns[1],
        keep=torch.tensor([[True, False, False]]),
    )
    torch.sum(torch.exp(batch.log_ratio())).backward()
    assert [column.grad.tolist() for column in columns] == [[[-1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]]
