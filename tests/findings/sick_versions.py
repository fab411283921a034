"""Logs whose policies are not where they should be: stale, out of sync, another engine."""

import numpy as np

from m2po_lab.logs.rows import UNKNOWN
from tests.findings.synthetic import Columns, copied, make


def from_the_future(seed: int) -> Columns:
    """Versions count one ahead."""
    c = make(seed, lags=(0, 1, 2), walk=0.03)
    return c.with_(version=copied(c, "version") + 1)


def recovered(seed: int) -> Columns:
    """At step 5 of 10 the actors come back with old weights."""
    c = make(seed, steps=10, rows=80)
    old = (c.step[c.row] == 5) & (c.row % 2 == 0)
    return c.with_(version=copied(c, "version") - 20 * old)


def in_flight(seed: int) -> Columns:
    """Weights change in the middle of every row."""
    c = make(seed, lags=(1,), walk=0.03)
    return c.with_(version=copied(c, "version") + (c.position > 20))


def stale(seed: int) -> Columns:
    """Up to eight versions behind."""
    return make(seed, lags=(0, 2, 4, 8), walk=0.2)


def in_step(seed: int) -> Columns:
    """Much moves between the start of a step and the loss."""
    return make(seed, update=0.4)


def epochs(seed: int) -> Columns:
    """Three rollout batches of four updates: every row is scored by one of four versions."""
    c = make(seed, lags=(0, 1, 2, 3), walk=0.25, steps=3, rows=192, proximal=False)
    assert c.version is not None
    lag = (100 + c.step) - c.version[np.cumsum(c.lengths) - c.lengths]
    trained = 100 + 4 * c.step + lag
    return c.with_(version=(trained - lag)[c.row], train_version=trained, step=trained)


def mismatched(seed: int) -> Columns:
    """Another engine."""
    return make(seed, engine=0.25)


def unversioned(seed: int) -> Columns:
    """No versions."""
    return make(seed, versions=False)


def impossible(seed: int) -> Columns:
    """Half a percent of sure tokens get 5 nats less from the trainer."""
    c = make(seed, sharpness=4.0)
    hit = (c.behavior > np.log(0.5)) & (np.arange(c.row.size) % 199 < 2)
    return c.with_(proximal=c.proximal - 5.0 * hit, current=np.asarray(c.current - 5.0 * hit))


def unsynced(seed: int) -> Columns:
    """The engine's weights stay where they were while the counter moves on."""
    c = make(seed, steps=8, rows=128)
    rng = np.random.default_rng(seed)
    drift = 0.08 * c.step[c.row] * rng.normal(size=c.row.size)
    return c.with_(
        proximal=np.minimum(c.proximal + drift, 0), current=np.minimum(c.current + drift, 0)
    )


def partly_known(seed: int) -> Columns:
    """Half of the rows have no version."""
    c = make(seed, lags=(0, 2), walk=0.03)
    assert c.train_version is not None
    trained = np.where(np.arange(c.lengths.size) % 2 == 0, UNKNOWN, c.train_version)
    return c.with_(train_version=trained)
