"""Logs whose distributions say what went wrong: supports, tails, lengths, learning."""

from collections.abc import Callable

import numpy as np

from tests.findings.synthetic import Columns, log_softmax, make


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
