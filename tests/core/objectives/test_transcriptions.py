"""Every objective against its formula written anew, on random batches and parameters."""

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import AGGREGATIONS, OBJECTIVES, Counts, objective
from tests.conftest import to_numpy
from tests.core.objectives.conftest import batch, ragged

torch = pytest.importorskip("torch")
transcriptions = pytest.importorskip("tests.core.objectives.transcriptions")

EPS = {"eps_low": (0.0, 0.6), "eps_high": (0.0, 0.8)}
PROXIMAL = {"proximal": [True, False], **EPS}
CAP = {"cap": (0.3, 4.0)}
BUDGET = {"budget": (0.01, 0.6)}
CHOICES = {
    "is": {},
    "reinforce": {},
    "ppo": EPS,
    "dapo": EPS,
    "dr_grpo": EPS,
    "dual_clip": {**EPS, "c": (1.0, 4.0)},
    "two_sided": {**EPS, "delta": (1.9, 4.0)},
    "gspo": EPS,
    "gspo_token": EPS,
    "gmpo": EPS,
    "vespo": dict.fromkeys(("k_pos", "lam_pos", "k_neg", "lam_neg"), (0.5, 4.0)),
    "minpro": {**EPS, "clip": ["weight", "product", "token"]},
    "cispo": EPS,
    "sapo": {"tau_pos": (0.2, 3.0), "tau_neg": (0.2, 3.0)},
    "maspo": {
        "sigma": (0.2, 2.0),
        "alpha": (0.0, 1.0),
        "beta": (0.0, 0.3),
        "sigma_max": [None, 0.1, 1.5],
    },
    "dro": {"beta": (0.0, 1.0)},
    "kimi": {"tau": (0.0, 1.0)},
    "r2vpo": {"lam": (0.0, 1.0)},
    "tis": {**CAP, **PROXIMAL},
    "tis_sequence": {**CAP, **PROXIMAL},
    "icepop": {"low": (0.2, 0.9), "high": (1.0, 3.0), **PROXIMAL},
    "mis": {
        "level": ["token", "sequence_product", "sequence_geometric", "sequence_max"],
        "metric": ["ratio", "k1", "k2", "k3"],
        "low": (0.1, 0.7),
        "high": (0.8, 3.0),
        "cap": [None, 0.7, 2.0],
        "denominator": ["valid", "kept"],
        **PROXIMAL,
    },
    "topr": {"level": ["token", "sequence"]},
    "decoupled_ppo": {**CAP, "action": ["mask", "clamp", "none"], **EPS},
    "opsm": {
        "delta": (0.0, 0.3),
        "anchor": ["behavior", "proximal"],
        "denominator": ["valid", "kept"],
        **EPS,
    },
    "minirl": {**EPS, **CAP},
    "dppo_tv": {**CAP, "delta": (0.0, 0.2), "delta_low": [None, 0.02, 0.1]},
    "dppo_kl": {**CAP, "delta": (0.0, 0.1), "delta_low": [None, 0.01, 0.05]},
    "stapo": {
        "tau_p": (0.1, 0.6),
        "entropy_quantile": (0.2, 0.9),
        "quantile_of": ["rare", "all"],
        **EPS,
    },
    "aspo": {
        "eps_low": [None, 0.1, 0.5],
        "eps_high": [None, 0.1, 0.5],
        "cap": (0.5, 3.0),
        "eps_low_entropy": (0.0, 0.3),
        "eps_high_entropy": (0.3, 0.8),
        "entropy_quantile": (0.1, 0.9),
    },
    "bapo": {
        "low_start": (0.3, 0.6),
        "low_max": (0.6, 1.0),
        "high_start": (1.0, 1.5),
        "high_max": (1.5, 4.0),
        "low_step": [0.0, 0.02, 0.1],
        "high_step": [0.0, 0.05, 0.4],
        "target_ratio": (0.3, 3.0),
        "c": (1.5, 5.0),
    },
    "vcpo": {**CAP, "base_ess": (0.1, 1.0)},
    "kl_cov": {"fraction": (0.01, 0.5), "coef": (0.0, 2.0)},
    "remix": {**EPS, "center": ["proximal", "one"], "kl_coef": [0.0, 0.3]},
    "m2po": BUDGET,
    "m2po_all_tokens": BUDGET,
    "m2po_areal": {
        **BUDGET,
        "eps_low": (0.0, 0.6),
        "eps_high": (0.0, 0.8),
        "cap": [None, 1.0, 2.0],
    },
    "m2po_released": {
        **BUDGET,
        "miniclip_low": [None, 0.1, 0.4],
        "miniclip_high": [None, 0.1, 0.6],
    },
}
"""Objective -> parameter -> values to choose among (a list) or a range to draw from (a pair)."""


def draw(name, rng):
    params = {}
    for key, values in CHOICES[name].items():
        one_of = isinstance(values, list)
        params[key] = values[rng.integers(len(values))] if one_of else float(rng.uniform(*values))
    if name == "m2po_areal" and rng.random() < 0.5:
        params |= {"eps_low": None, "eps_high": None, "cap": None}
    return params


def random_columns(rng):
    """Ragged rows with holes, empty rows, single tokens; A by row or by token, some 0 or alike."""
    shape = int(rng.integers(1, 7)), int(rng.integers(1, 10))
    lengths = rng.integers(0, shape[1] + 1, shape[0])
    keep = (np.arange(shape[1])[None] < lengths[:, None]) & (rng.random(shape) < 0.9)
    behavior = -0.05 - rng.exponential(1.0, shape)
    d = rng.standard_t(4, shape) * rng.choice([0.1, 0.4])
    advantage = rng.normal(size=(shape[0], shape[1] if rng.random() < 0.3 else 1))
    advantage[rng.random(shape[0]) < 0.2] = 0.0
    return {
        "current_logp": np.minimum(behavior + d, -0.01),
        "behavior_logp": behavior,
        "proximal_logp": np.minimum(behavior + 0.6 * d + rng.normal(0, 0.1, shape), -0.01),
        "entropy": rng.exponential(0.5, shape),
        "advantage": advantage * np.ones(shape),
        "keep": keep,
    }


def ours(chosen, tokens, counts):
    loss, _ = chosen.loss(tokens, counts)
    (slope,) = torch.autograd.grad(loss, tokens.current_logp)
    return float(loss.detach()), to_numpy(slope)


def with_gradient(tokens):
    leaf = torch.as_tensor(np.asarray(tokens.current_logp)).clone().requires_grad_(True)
    fields = {n: torch.as_tensor(np.asarray(getattr(tokens, n))) for n in tokens.present()}
    lengths = None if tokens.lengths is None else torch.as_tensor(tokens.lengths)
    return TokenBatch(**{**fields, "current_logp": leaf}, lengths=lengths)


def test_every_objective_but_the_one_that_draws_is_transcribed_with_all_its_parameters():
    assert set(CHOICES) == set(transcriptions.FORMULAS) == set(OBJECTIVES) - {"clip_cov"}
    for name, choices in CHOICES.items():
        assert set(choices) == set(OBJECTIVES[name].parameters), name


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_loss_and_gradient_are_those_of_the_formula(name):
    rng = np.random.default_rng(sorted(CHOICES).index(name))
    for turn in range(30):
        values, params = random_columns(rng), draw(name, rng)
        how = list(AGGREGATIONS)[turn % len(AGGREGATIONS)]
        length = {"max_length": 16} if how == "constant" else {}
        counts = Counts(tokens=50, rows=7) if turn % 3 == 0 else Counts()
        chosen = objective(name, how, **params, **length)
        loss, slope = transcriptions.loss_and_gradient(
            name, values, how, params, counts, length.get("max_length")
        )
        said = f"{how} {params}"
        got, gradient = ours(chosen, with_gradient(batch(values)), counts)
        assert got == pytest.approx(loss, rel=1e-11, abs=1e-12), said
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-12, err_msg=said)
        assert float(chosen.loss(batch(values), counts)[0]) == pytest.approx(got, rel=1e-12), said
        flat, gradient = ours(chosen, with_gradient(ragged(values)), counts)
        if name != "m2po_released":  # its sign is that of position 0, which may be masked
            assert flat == pytest.approx(loss, rel=1e-11, abs=1e-12), said
            np.testing.assert_allclose(gradient, slope[values["keep"]], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(set(CHOICES) - {"m2po_released"}))
def test_narrow_floats_are_the_numbers_they_hold(name, dtype):
    rng = np.random.default_rng(7)
    for _ in range(3):
        values, params = random_columns(rng), draw(name, rng)
        narrow = {k: torch.as_tensor(v) for k, v in values.items()}
        narrow |= {k: v.to(getattr(torch, dtype)) for k, v in narrow.items() if k != "keep"}
        loss, slope = transcriptions.loss_and_gradient(name, narrow, "token_mean", params, Counts())
        narrow["current_logp"].requires_grad_(True)
        got, _ = objective(name, **params).loss(TokenBatch(**narrow))
        assert float(got.detach()) == pytest.approx(loss, rel=1e-11, abs=1e-12), params
        (gradient,) = torch.autograd.grad(got, narrow["current_logp"])
        rounded = slope.to(gradient.dtype)
        torch.testing.assert_close(gradient, rounded, rtol=1e-2, atol=1e-12)
