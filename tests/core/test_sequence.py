import math

import numpy as np
import pytest

from m2po_lab.core import TokenBatch, sequence_log_ratio, sums
from m2po_lab.core import moments as m


def test_product_is_the_sum_and_geometric_the_mean_over_kept_tokens(xp):
    batch = TokenBatch(
        behavior_logp=xp.asarray([[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]),
        current_logp=xp.asarray([[-0.5, -2.0, float("nan")], [-9.0, -9.0, -9.0]]),
        keep=xp.asarray([[1, 1, 0], [0, 0, 0]]),
    )
    d, keep = sequence_log_ratio(batch, kind="product")
    assert np.asarray(d).tolist() == [-0.5, 0.0]
    assert np.asarray(keep).tolist() == [True, False]
    d, _ = sequence_log_ratio(batch, kind="geometric")
    assert np.asarray(d).tolist() == [-0.25, 0.0]


def test_a_product_over_ten_thousand_tokens_stays_finite():
    length = 10_000
    batch = TokenBatch(
        behavior_logp=np.full((2, length), -1.0),
        current_logp=np.stack([np.full(length, -0.8), np.full(length, -1.2)]),
    )
    product, keep = sequence_log_ratio(batch, kind="product")
    np.testing.assert_allclose(product, [2000, -2000])
    assert float(m.ess_fraction(sums(product, keep))) == pytest.approx(0.5)
    geometric, _ = sequence_log_ratio(batch, kind="geometric")
    np.testing.assert_allclose(np.exp(geometric), [math.exp(0.2), math.exp(-0.2)])


def test_an_unknown_kind_is_named():
    batch = TokenBatch(behavior_logp=np.zeros((1, 1)), current_logp=np.zeros((1, 1)))
    with pytest.raises(ValueError, match="unknown kind 'mean'; one of product, geometric"):
        sequence_log_ratio(batch, kind="mean")
