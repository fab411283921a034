import json

import numpy as np

from m2po_lab.analysis import Options, scan
from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import Rows
from tests.analysis.batches import make_batch
from tests.analysis.compare import rows_of


def test_the_worst_tokens_are_the_largest_in_order():
    batches = [make_batch(seed) for seed in range(3)]
    sizes = np.concatenate([np.abs(b.log_ratio())[b.keep] for b in batches])
    found = scan(batches, Options(worst=15)).to_dict()["worst"]
    expected = np.sort(sizes)[::-1][:15]
    np.testing.assert_allclose([abs(t["log_ratio"]) for t in found], expected, rtol=0)


def test_a_worst_token_says_where_it_is_and_what_both_policies_gave():
    behavior = np.log([0.5, 0.5, 0.25])
    batch = TokenBatch(
        behavior_logp=behavior,
        current_logp=behavior + np.asarray([0.0, -3.0, 0.5]),
        advantage=np.asarray([1.0, -2.0]),
        version=np.asarray([3, 3, 1]),
        lengths=np.asarray([2, 1]),
        rows=Rows(
            row_id=["a", "b"],
            step=np.asarray([7, 8]),
            train_version=np.asarray([4, 4]),
            token_ids=np.asarray([10, 11, 12]),
            response=["one two", None],
        ),
    )
    first, second = scan([batch]).to_dict()["worst"]
    assert (first["row_id"], first["step"], first["lag"], first["position"]) == ("a", 7, 1, 1)
    assert (first["token_id"], first["advantage"], first["log_ratio"]) == (11, 1.0, -3.0)
    assert np.isclose(first["behavior_probability"], 0.5)
    assert np.isclose(first["current_probability"], 0.5 * np.exp(-3))
    assert first["proximal_probability"] is None
    assert (first["response"], second["response"]) == ("one two", None)
    assert [t["token_id"] for t in first["context"]] == [10, 11]
    assert [t["position"] for t in second["context"]] == [0]
    assert (second["row_id"], second["token_id"]) == ("b", 12)


def test_ties_do_not_depend_on_the_order_of_rows():
    batch = make_batch(4, rows=200)
    equal = batch.replace(current_logp=batch.behavior_logp - 0.25, proximal_logp=None)
    backwards = rows_of(equal, list(range(200))[::-1])
    first, second = (scan([b]).to_dict()["worst"] for b in (equal, backwards))
    assert len(first) == 20
    assert json.dumps(first) == json.dumps(second)


def test_equal_policies_have_no_worst_token():
    batch = make_batch(4)
    same = batch.replace(current_logp=batch.behavior_logp, proximal_logp=None)
    assert scan([same]).to_dict()["worst"] == []


def test_no_worst_tokens_can_be_asked_for():
    assert scan([make_batch(4)], Options(worst=0)).to_dict()["worst"] == []
