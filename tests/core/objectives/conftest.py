"""A batch with every column an objective can need, in any array library."""

from pathlib import Path

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES

DATA = Path(__file__).parents[2] / "data"
COLUMNS = ("current_logp", "behavior_logp", "proximal_logp", "entropy", "advantage", "keep")
LENGTHS = np.array([8, 5, 0, 7, 1, 6])


def columns(seed=0, lengths=LENGTHS, spread=0.5):
    """Padded numpy columns: both signs of A, a row with A = 0, an empty row, one of one token."""
    rng = np.random.default_rng(seed)
    shape = (len(lengths), int(max(lengths)))
    behavior = -0.2 - np.abs(rng.normal(1, 1, shape))
    d = rng.normal(0, spread, shape)
    advantage = np.resize([1.2, -0.8, 0.5, 0.0, -1.1, 0.6], len(lengths))
    keep = np.arange(shape[1])[None] < np.asarray(lengths)[:, None]
    return {
        "current_logp": behavior + d,
        "behavior_logp": behavior,
        "proximal_logp": behavior + 0.5 * d + rng.normal(0, 0.05, shape),
        "entropy": np.abs(rng.normal(0.5, 0.4, shape)),
        "advantage": np.where(keep, advantage[:, None], 0.0),
        "keep": keep,
    }


def batch(values, xp=None, *, gradient=False, **more):
    """A TokenBatch of numpy columns, converted to another array library if one is given."""
    if xp is None:
        return TokenBatch(**values, **more)
    arrays = {name: xp.asarray(value) for name, value in values.items()}
    if gradient:
        arrays["current_logp"].requires_grad_(True)
    return TokenBatch(**arrays, **{name: xp.asarray(value) for name, value in more.items()})


def ragged(values):
    """The same tokens laid out flat, row after row, without padding."""
    keep = values["keep"]
    flat = {name: value[keep] for name, value in values.items()}
    return TokenBatch(**flat, lengths=keep.sum(axis=1))


@pytest.fixture(params=sorted(OBJECTIVES))
def name(request):
    """The name of every objective in turn."""
    return request.param
