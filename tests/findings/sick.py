"""Small logs with one fault each, made by tampering with a healthy one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from m2po_lab.logs.rows import UNKNOWN
from tests.findings.synthetic import Columns, log_softmax, make


def _copy(columns: Columns, name: str) -> np.ndarray:
    return np.array(getattr(columns, name))


def shifted(seed: int) -> Columns:
    """The trainer's columns belong to the token before."""
    c = make(seed)
    return c.with_(proximal=np.roll(c.proximal, 1), current=np.roll(c.current, 1))


def shifted_rows(seed: int) -> Columns:
    """One row in eight is off by one."""
    c = make(seed)
    off = c.row % 8 == 0
    return c.with_(proximal=np.where(off, np.roll(c.proximal, -1), c.proximal))


def mask_first(seed: int) -> Columns:
    """The mask includes the last prompt position, whose log-prob is 0.0."""
    c = make(seed)
    return c.with_(behavior=np.where(c.position == 0, 0.0, c.behavior))


def mask_all_columns(seed: int) -> Columns:
    """The same, with 0.0 in every column."""
    c = make(seed)
    blank = c.position == 0
    changed = {n: np.where(blank, 0.0, _copy(c, n)) for n in ("behavior", "proximal", "current")}
    return c.with_(**changed)


def mask_uniform(seed: int) -> Columns:
    """The trainer's first log-prob is log(1/V)."""
    c = make(seed)
    first = c.position == 0
    value = -np.log(151936.0)
    return c.with_(
        proximal=np.where(first, value, c.proximal), current=np.where(first, value, c.current)
    )


def one_too_many(seed: int) -> Columns:
    """A quarter of the rows have a log-prob for the token after the last."""
    c = make(seed)
    rows = np.arange(c.lengths.size) % 4 == 0
    behavior = np.where(rows[c.row], np.nan, c.behavior)
    facts = {"length_difference": {"behavior_logp": rows.astype(np.int64)}, "unaligned": rows}
    return c.with_(behavior=behavior, facts=facts)


def retokenised(seed: int) -> Columns:
    """Two id columns disagree in five rows."""
    c = make(seed)
    return c.with_(facts={"retokenised": np.arange(c.lengths.size) < 5})


def only_behavior(seed: int) -> Columns:
    """The trainer logged nothing."""
    return make(seed).with_(proximal=None, current=None)


def tool_runs(seed: int) -> Columns:
    """Six tokens of tool output in every row."""
    c = make(seed)
    return c.with_(behavior=np.where((c.position >= 10) & (c.position < 16), 0.0, c.behavior))


def whole_rows_zero(seed: int) -> Columns:
    """A missing column became 0.0 in a quarter of the rows."""
    c = make(seed, proximal=False)
    return c.with_(behavior=np.where(c.row % 4 == 0, 0.0, c.behavior))


def fill_one(seed: int) -> Columns:
    """INVALID_LOGPROB on the last token."""
    c = make(seed)
    last = c.position == c.lengths[c.row] - 1
    return c.with_(behavior=np.where(last, 1.0, c.behavior))


def fill_9999(seed: int) -> Columns:
    """Fill values on a few tokens."""
    c = make(seed)
    return c.with_(behavior=np.where(np.arange(c.row.size) % 97 == 0, -9999.0, c.behavior))


def some_nan(seed: int) -> Columns:
    """The engine lost a log-prob here and there."""
    c = make(seed)
    return c.with_(behavior=np.where(np.arange(c.row.size) % 211 == 5, np.nan, c.behavior))


def empty(seed: int) -> Columns:
    """Three padding rows."""
    c = make(seed)
    return c.with_(keep=c.keep & (c.row >= 3))


def rank_copies(seed: int) -> Columns:
    """Two ranks wrote the same rows."""
    c = make(seed)
    token = {n: np.tile(_copy(c, n), 2) for n in ("behavior", "proximal", "current", "keep")}
    rest = {n: np.tile(_copy(c, n), 2) for n in ("advantage", "entropy", "version")}
    row = {n: np.tile(_copy(c, n), 2) for n in ("lengths", "step", "train_version", "prompt_key")}
    assert c.row_id is not None
    assert c.group_id is not None
    return c.with_(**token, **rest, **row, row_id=c.row_id * 2, group_id=c.group_id * 2)


def padded_batch(seed: int) -> Columns:
    """The batch ends with its first four rows under new ids."""
    c = make(seed, steps=1)
    extra = 4
    tokens = int(c.lengths[:extra].sum())
    grown: dict[str, Any] = {
        n: np.concatenate([_copy(c, n), _copy(c, n)[:tokens]])
        for n in ("behavior", "proximal", "current", "keep", "advantage", "entropy", "version")
    }
    for n in ("lengths", "step", "train_version", "prompt_key"):
        grown[n] = np.concatenate([_copy(c, n), _copy(c, n)[:extra]])
    assert c.row_id is not None
    assert c.group_id is not None
    ids = [f"pad{i}" for i in range(extra)]
    return c.with_(**grown, row_id=c.row_id + ids, group_id=c.group_id + c.group_id[:extra])


def recomputed(seed: int) -> Columns:
    """The old log-probs are the current ones."""
    c = make(seed)
    return c.with_(current=_copy(c, "proximal"))


def bypass(seed: int) -> Columns:
    """The old log-probs are the sampler's."""
    c = make(seed)
    return c.with_(proximal=_copy(c, "behavior"))


def narrow(seed: int) -> Columns:
    """Logged in bfloat16."""
    return make(seed, grid="bfloat16")


def from_the_future(seed: int) -> Columns:
    """Versions count one ahead."""
    c = make(seed, lags=(0, 1, 2), walk=0.03)
    return c.with_(version=_copy(c, "version") + 1)


def recovered(seed: int) -> Columns:
    """At step 5 of 10 the actors come back with old weights."""
    c = make(seed, steps=10, rows=80)
    old = (c.step[c.row] == 5) & (c.row % 2 == 0)
    return c.with_(version=_copy(c, "version") - 20 * old)


def in_flight(seed: int) -> Columns:
    """Weights change in the middle of every row."""
    c = make(seed, lags=(1,), walk=0.03)
    return c.with_(version=_copy(c, "version") + (c.position > 20))


def stale(seed: int) -> Columns:
    """Up to eight versions behind."""
    return make(seed, lags=(0, 2, 4, 8), walk=0.2)


def in_step(seed: int) -> Columns:
    """Much moves between the start of a step and the loss."""
    return make(seed, update=0.4)


def epochs(seed: int) -> Columns:
    """One rollout batch, four updates: every row is scored by one of four trainer versions."""
    c = make(seed, lags=(0, 1, 2, 3), walk=0.25, steps=1, proximal=False)
    assert c.version is not None
    lag = 100 - c.version[np.cumsum(c.lengths) - c.lengths]
    return c.with_(version=np.full(c.row.size, 100), train_version=100 + lag, step=100 + lag)


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


def _temperature(seed: int, sampler: float, logged: float, trainer: float) -> Columns:
    c = make(seed)
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2.0, (c.row.size, 24))
    sampled = log_softmax(z / sampler)
    token = np.argmax(sampled + rng.gumbel(size=z.shape), axis=1)
    at = np.arange(token.size)
    noise = [log_softmax(z + rng.normal(size=z.shape) * 0.01) for _ in range(2)]
    return c.with_(
        behavior=log_softmax(z / logged)[at, token],
        proximal=log_softmax(noise[0] / trainer)[at, token],
        current=log_softmax(noise[1] / trainer)[at, token],
    )


def trainer_without_temperature(seed: int) -> Columns:
    """The trainer does not divide by .6."""
    return _temperature(seed, 0.6, 0.6, 1.0)


def raw_engine_log_probs(seed: int) -> Columns:
    """The engine returns raw log-probs though it samples at .6, and the trainer divides."""
    return _temperature(seed, 0.6, 1.0, 0.6)


def _truncated(
    seed: int, keep: Callable[[np.ndarray], np.ndarray], vocabulary: int = 24
) -> Columns:
    c = make(seed)
    rng = np.random.default_rng(seed)
    logp = log_softmax(rng.normal(0, 2.0, (c.row.size, vocabulary)))
    inside = np.where(keep(logp), logp, -np.inf)
    renormalised = inside - np.log(np.exp(inside).sum(axis=1, keepdims=True))
    token = np.argmax(renormalised + rng.gumbel(size=logp.shape), axis=1)
    at = np.arange(token.size)
    noise = rng.normal(size=(2, token.size)) * 0.003
    trainer = logp[at, token]
    return c.with_(
        behavior=renormalised[at, token],
        proximal=np.minimum(trainer + noise[0], 0),
        current=np.minimum(trainer + noise[1], 0),
    )


def top_p(seed: int) -> Columns:
    """The engine renormalises the nucleus of .9."""

    def nucleus(logp: np.ndarray) -> np.ndarray:
        order = np.argsort(-logp, axis=1)
        mass = np.cumsum(np.exp(np.take_along_axis(logp, order, axis=1)), axis=1)
        before = np.concatenate([np.zeros((len(mass), 1)), mass[:, :-1]], axis=1)
        inside = np.zeros(logp.shape, dtype=bool)
        np.put_along_axis(inside, order, before < 0.9, axis=1)
        return inside

    return _truncated(seed, nucleus)


def top_k(seed: int) -> Columns:
    """The engine renormalises the best 8 of 24."""
    return _truncated(seed, lambda logp: logp >= np.sort(logp, axis=1)[:, [-8]])


def top_few(seed: int) -> Columns:
    """The engine keeps the best 5 of 200: a third of the mass, more or less."""
    return _truncated(seed, lambda logp: logp >= np.sort(logp, axis=1)[:, [-5]], 200)


def capped_weights(seed: int) -> Columns:
    """Only weights were logged, after truncation at 2."""
    c = make(seed, engine=0.4)
    weights = np.minimum(np.exp(c.proximal - c.behavior), 2.0)
    return c.with_(behavior=c.proximal - np.log(weights), facts={"weights": weights})


def outliers(seed: int) -> Columns:
    """Half a percent of tokens is far off, both ways."""
    c = make(seed, rows=128)
    hit = np.arange(c.row.size) % 199 == 0
    move = 6.0 * np.where(c.row % 2 == 0, 1, -1) * hit
    return c.with_(behavior=c.behavior - 7.0 * hit, proximal=c.proximal - 7.0 * hit + move * hit)


def routed(seed: int) -> Columns:
    """Four percent of tokens take other experts."""
    c = make(seed, rows=128)
    rng = np.random.default_rng(seed)
    hit = rng.random(c.row.size) < 0.04
    other = rng.normal(0, 1.2, c.row.size) * hit
    return c.with_(
        proximal=np.minimum(c.proximal + other, 0), current=np.minimum(c.current + other, 0)
    )


def low_tail(seed: int) -> Columns:
    """Eight percent of tokens vanish."""
    c = make(seed)
    hit = np.random.default_rng(seed).random(c.row.size) < 0.08
    return c.with_(proximal=c.proximal - 5.0 * hit, current=np.asarray(c.current - 5.0 * hit))


def high_tail(seed: int) -> Columns:
    """Two percent of unlikely tokens became likely."""
    c = make(seed)
    hit = (np.random.default_rng(seed).random(c.row.size) < 0.1) & (c.behavior < -3)
    up = 2.5 * hit
    return c.with_(proximal=c.proximal + up, current=np.asarray(c.current + up))


def negative_side(seed: int) -> Columns:
    """Only what is pushed down moves."""
    c = make(seed)
    assert c.advantage is not None
    down = np.abs(np.random.default_rng(seed).normal(0, 0.7, c.row.size)) * (c.advantage < 0)
    return c.with_(current=np.asarray(c.current - down))


def products(seed: int) -> Columns:
    """A small bias a token over rows of 1200."""
    c = make(seed, rows=16, length=1200, vocabulary=8, steps=1)
    return c.with_(proximal=c.proximal - 0.02, current=np.asarray(c.current - 0.02))


def growing(seed: int) -> Columns:
    """Errors add up along the row."""
    c = make(seed, length=80)
    noise = np.random.default_rng(seed).normal(size=c.row.size) * 0.004 * c.position
    return c.with_(
        proximal=np.minimum(c.proximal + noise, 0), current=np.minimum(c.current + noise, 0)
    )


def long_rows_late(seed: int) -> Columns:
    """Long answers come late."""
    c = make(seed, lags=(0,), rows=96)
    lag = np.where(c.lengths > np.median(c.lengths), 8, 0)
    assert c.train_version is not None
    return c.with_(version=(c.train_version - lag)[c.row])


def collapsing(seed: int) -> Columns:
    """Entropy halves every step."""
    c = make(seed, steps=6, rows=96)
    return c.with_(entropy=c.entropy * 0.5 ** c.step[c.row])


def collapsing_unlogged(seed: int) -> Columns:
    """The same without an entropy column."""
    c = make(seed, steps=6, rows=96, entropy=False)
    scale = 0.5 ** c.step[c.row]
    return c.with_(
        behavior=c.behavior * scale,
        proximal=c.proximal * scale,
        current=np.asarray(c.current * scale),
    )


def no_signal(seed: int) -> Columns:
    """Nothing to learn."""
    return make(seed, advantage="zero")


def moving(seed: int) -> Columns:
    """Weights move though every advantage is 0: one rollout version, ten updates."""
    c = make(seed, advantage="zero", steps=10, rows=160)
    drift = np.random.default_rng(seed).normal(size=c.row.size) * 0.06 * c.step[c.row]
    return c.with_(
        version=np.full(c.row.size, 100),
        proximal=None,
        current=np.minimum(c.current + drift, 0),
    )


def lone_groups(seed: int) -> Columns:
    """Every row has a group of its own."""
    c = make(seed)
    return c.with_(group_id=[f"g{i}" for i in range(c.lengths.size)])


def mixed_groups(seed: int) -> Columns:
    """Two prompts share a group."""
    c = make(seed)
    prompts = _copy(c, "prompt_key")
    prompts[::4] += np.uint64(1000)
    return c.with_(prompt_key=prompts)


def partly_known(seed: int) -> Columns:
    """Half of the rows have no version."""
    c = make(seed, lags=(0, 2), walk=0.03)
    assert c.train_version is not None
    trained = np.where(np.arange(c.lengths.size) % 2 == 0, UNKNOWN, c.train_version)
    return c.with_(train_version=trained)


CASES: dict[str, tuple[Callable[[int], Columns], ...]] = {
    "shift-by-one": (shifted, shifted_rows),
    "mask-shifted": (mask_first, mask_all_columns, mask_uniform),
    "length-mismatch": (one_too_many,),
    "retokenised": (retokenised,),
    "missing-log-probs": (only_behavior,),
    "zero-filled-log-probs": (tool_runs, whole_rows_zero),
    "positive-log-probs": (fill_one,),
    "sentinel-value": (fill_9999,),
    "non-finite": (some_nan,),
    "empty-rows": (empty,),
    "duplicate-rows": (rank_copies,),
    "repeated-padding": (padded_batch,),
    "ratio-identically-one": (recomputed,),
    "bypass-mode": (bypass,),
    "low-precision-log": (narrow,),
    "negative-lag": (from_the_future,),
    "lag-jump": (recovered,),
    "mixed-versions": (in_flight,),
    "staleness-drift": (stale,),
    "in-step-drift": (in_step, epochs),
    "engine-mismatch": (mismatched,),
    "staleness-not-separable": (unversioned,),
    "confident-disagreement": (impossible,),
    "weights-not-synced": (unsynced,),
    "temperature-mismatch": (trainer_without_temperature, raw_engine_log_probs),
    "truncated-support": (top_p, top_k, top_few),
    "truncated-weights": (capped_weights,),
    "rare-outliers": (outliers,),
    "two-populations": (routed,),
    "low-tail": (low_tail,),
    "high-tail": (high_tail,),
    "negative-side-drift": (negative_side,),
    "clip-below-noise-floor": (mismatched,),
    "sequence-product": (products,),
    "position-growth": (growing,),
    "length-bias": (long_rows_late,),
    "entropy-collapse": (collapsing, collapsing_unlogged),
    "no-learning-signal": (no_signal,),
    "moving-without-signal": (moving,),
    "over-budget": (stale,),
    "groups-broken": (lone_groups, mixed_groups),
}
"""Finding -> logs that must yield it."""

QUIET: tuple[Callable[[int], Columns], ...] = (partly_known, narrow, unversioned, in_flight)
"""Logs with a peculiarity that is no fault."""
