"""Samplers that are not the trainer: what each does to log-probs, and how far from staleness."""

import numpy as np
import pytest

from m2po_lab.core.moments import m2, ratio_mean, sums
from toy_envs.bandit import BanditPolicy, WarmStart
from toy_envs.chain import Chain
from toy_envs.mismatch import (
    MISMATCHES,
    InTurn,
    LowPrecision,
    SamplerNoise,
    Temperature,
    TopP,
    mismatched,
)
from toy_envs.policy import draw

RNG = np.random.default_rng


def _kept(pair):
    return pair[0], pair[1].keep


def drift(engine, seed=0):
    """d at lag 0 and the batch it is of: the trainer scores what the engine has just sampled."""
    policy = BanditPolicy(Chain(), 0, warm=WarmStart(steps=150), engine=engine)
    rollout = policy.rollout(RNG(seed))
    return policy.logp(rollout) - rollout.behavior_logp.astype(np.float64), rollout


def test_without_an_engine_lag_0_has_no_drift():
    d, _ = drift(None)
    assert np.abs(d).max() < 1e-6


@pytest.mark.parametrize("name", MISMATCHES)
def test_every_engine_drifts_at_lag_0_and_reports_what_it_drew_from(name):
    d, rollout = drift(MISMATCHES[name]())
    assert m2(sums(d, rollout.keep)) > 1e-8
    # E[r] under the reported distribution is the trainer's mass on what the engine can draw.
    error = 5 * np.exp(d).std() / np.sqrt(d.size) + 1e-6
    mass = 0.95 if name == "top-p" else 1.0
    assert mass - error < ratio_mean(sums(d, rollout.keep)) < 1 + error


def test_noise_drifts_with_its_size():
    small, large = (m2(sums(*_kept(drift(SamplerNoise(scale))))) for scale in (0.05, 0.2))
    assert 8 < large / small < 32
    assert np.abs(drift(SamplerNoise(0.0))[0]).max() < 1e-6


def test_a_temperature_is_a_slope_of_the_log_prob():
    logits = RNG(0).normal(size=(500, 10)) * 2
    hot = Temperature(2.0).logits(logits, RNG(0))
    np.testing.assert_array_equal(hot, logits / 2)
    _, plain, entropy = draw(logits, RNG(1))
    _, flat, wider = draw(logits, RNG(1), Temperature(2.0))
    assert wider.mean() > entropy.mean()
    assert not np.array_equal(plain, flat)


def test_top_p_keeps_the_fewest_tokens_that_reach_p_and_renormalises():
    logits = np.log(
        np.array([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5], [0.97, 0.01, 0.01, 0.01]])
    )
    kept = np.isfinite(TopP(0.75).logits(logits, RNG(0)))
    np.testing.assert_array_equal(kept, [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    np.testing.assert_array_equal(TopP(1.0).logits(logits, RNG(0)), logits)
    d, _ = drift(TopP(0.9))
    assert d.min() >= np.log(0.9) - 1e-6
    assert d.max() <= 1e-6


def test_bfloat16_is_that_of_ml_dtypes_and_float16_that_of_numpy():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = RNG(0)
    values = np.concatenate(
        [rng.normal(size=2000) * 10 ** rng.uniform(-6, 6, 2000), [0.0, 1.00390625]]
    )
    logits = np.where(np.arange(len(values)) % 97 == 0, -np.inf, values)[:, None]
    ours = LowPrecision("bf16").logits(logits, rng)
    theirs = logits.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(ours, theirs)
    small = np.clip(logits, -60000, 60000)
    np.testing.assert_array_equal(
        LowPrecision("fp16").logits(small, rng), small.astype(np.float16).astype(np.float64)
    )


def test_bfloat16_is_coarser_than_float16():
    coarse, fine = (m2(sums(*_kept(drift(LowPrecision(kind))))) for kind in ("bf16", "fp16"))
    assert coarse > 10 * fine > 0


def test_engines_work_in_turn():
    logits = RNG(0).normal(size=(50, 6))
    both = InTurn((Temperature(0.5), TopP(0.8))).logits(logits, RNG(0))
    np.testing.assert_array_equal(both, TopP(0.8).logits(logits / 0.5, RNG(0)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SamplerNoise(-1.0), "noise scale -1.0 is not a number of at least 0; try 0.05"),
        (lambda: SamplerNoise(np.nan), "noise scale nan is not a number of at least 0; try 0.05"),
        (lambda: Temperature(0.0), "temperature 0.0 is not above 0; 1 is the trainer's"),
        (lambda: TopP(1.5), "top-p 1.5 is not in (0, 1]; 1 keeps every token"),
        (lambda: LowPrecision("fp8"), "unknown precision 'fp8'; one of bf16, fp16"),
    ],
)
def test_bad_settings_are_one_line(make, said):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert str(caught.value) == said


def test_mismatches_are_read_in_the_order_they_are_named():
    assert mismatched("") is None
    assert mismatched("noise") == SamplerNoise()
    assert mismatched("top-p=0.9") == TopP(0.9)
    assert mismatched("temperature=0.5, bf16") == InTurn((Temperature(0.5), LowPrecision("bf16")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fp8", "unknown mismatch 'fp8'; one of noise, bf16, fp16, temperature, top-p"),
        ("bf16=3", "mismatch bf16 takes no number; give bf16 alone"),
        ("noise=much", "mismatch 'noise=much': 'much' is no number; noise alone has one"),
        ("top-p=1.5", "top-p 1.5 is not in (0, 1]; 1 keeps every token"),
    ],
)
def test_a_mismatch_that_cannot_be_read_is_one_line(text, said):
    with pytest.raises(ValueError, match=r".") as caught:
        mismatched(text)
    assert str(caught.value) == said
