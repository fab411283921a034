"""Loss functions written elsewhere are recognised; ones that are nearly right are not."""

import json
import re
from importlib.resources import files

import numpy as np
import pytest

from m2po_lab.conformance import VARIANTS, check
from m2po_lab.conformance.cases import random_cases, reference_cases
from m2po_lab.core import TokenBatch
from m2po_lab.core.objectives import objective
from tests.core.objectives.conftest import DATA

torch = pytest.importorskip("torch")


def algorithm_1(current_logp, behavior_logp, advantage, keep, budget, *, strict=False, last=False):
    """The paper's Algorithm 1 as its pseudocode has it, a Python list and `remove`."""
    d = (current_logp - behavior_logp).detach().double()
    active = keep & (((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0)))
    left = sorted((float(d[i, j]) ** 2, (i, j)) for i, j in active.nonzero().tolist())
    if last:
        left.sort(key=lambda item: (item[0], [-k for k in item[1]]))
    mask = keep.clone()
    while left:
        mean = sum(square for square, _ in left) / len(left)
        if mean < budget or (mean == budget and not strict):
            break
        _, place = left.pop()
        mask[place] = False
    return mask


def masked_surrogate(mask, current_logp, behavior_logp, advantage, count):
    d = torch.where(mask, current_logp - behavior_logp, 0)
    return -(torch.where(mask, torch.exp(d) * advantage, 0)).sum() / max(int(count), 1)


def paper(current_logp, behavior_logp, advantage, keep, budget):
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget)
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, keep.sum())


def other_ties(current_logp, behavior_logp, advantage, keep, budget):
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget, last=True)
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, keep.sum())


def strict(current_logp, behavior_logp, advantage, keep, budget):
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget, strict=True)
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, keep.sum())


def kept_denominator(current_logp, behavior_logp, advantage, keep, budget):
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget)
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, mask.sum())


def by_response(current_logp, behavior_logp, advantage, keep, budget):
    """The paper's mask, but one weight a response, the mean log-ratio."""
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget)
    d = torch.where(keep, current_logp - behavior_logp, 0).detach()
    ratio = torch.exp(d.sum(1, keepdim=True) / keep.sum(1, keepdim=True).clamp(min=1))
    weight = torch.where(mask, ratio * advantage, 0)
    return -(weight * current_logp).sum() / max(int(keep.sum()), 1)


def surrogate(mask, current_logp, behavior_logp, advantage, keep):
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, keep.sum())


def smallest_first(current_logp, behavior_logp, advantage, keep, budget):
    """The mask inverted on H: the far tokens stay."""
    right = algorithm_1(current_logp, behavior_logp, advantage, keep, budget)
    d = (current_logp - behavior_logp).detach()
    active = keep & (((advantage > 0) & (d > 0)) | ((advantage < 0) & (d < 0)))
    mask = keep & (right ^ active)
    return surrogate(mask, current_logp, behavior_logp, advantage, keep)


def all_tokens(current_logp, behavior_logp, advantage, keep, budget):
    """Any token may go, whichever side it moved to."""
    moved = (current_logp - behavior_logp).detach().abs() * advantage.sign()
    mask = algorithm_1(moved, torch.zeros_like(moved), advantage, keep, budget)
    return surrogate(mask, current_logp, behavior_logp, advantage, keep)


def other_side(current_logp, behavior_logp, advantage, keep, budget):
    """The sign of the advantage turned over."""
    mask = algorithm_1(current_logp, behavior_logp, -advantage, keep, budget)
    return surrogate(mask, current_logp, behavior_logp, advantage, keep)


def by_micro_batch(current_logp, behavior_logp, advantage, keep, budget):
    """Right within each row, as if each were a mini-batch."""
    columns = current_logp, behavior_logp, advantage, keep
    rows = [algorithm_1(*(c[i : i + 1] for c in columns), budget) for i in range(len(keep))]
    return surrogate(torch.cat(rows), current_logp, behavior_logp, advantage, keep)


def unweighted(current_logp, behavior_logp, advantage, keep, budget):
    mask = algorithm_1(current_logp, behavior_logp, advantage, keep, budget)
    return -(torch.where(mask, current_logp * advantage, 0)).sum() / max(int(keep.sum()), 1)


def areal(current_logp, behavior_logp, advantage, keep, budget, proximal_logp):
    """AReaL's selection (4aef98d, Apache-2.0, condensed) under a surrogate without clip."""
    square = torch.where(keep, (behavior_logp - proximal_logp) ** 2, 0)[keep]
    ordered, order = torch.sort(square, descending=True)
    n = len(ordered)
    mean = ordered.flip(0).cumsum(0).flip(0) / torch.arange(n, 0, -1)
    below = (mean < budget).nonzero()
    drop = int(below[0]) if len(below) else n - 1
    mask = keep.clone()
    mask[keep] = torch.isin(torch.arange(n), order[drop:])
    return masked_surrogate(mask, current_logp, behavior_logp, advantage, mask.sum())


def areal_by_valid_tokens(current_logp, behavior_logp, advantage, keep, budget, proximal_logp):
    kept_mean = areal(current_logp, behavior_logp, advantage, keep, budget, proximal_logp)
    square = torch.where(keep, (behavior_logp - proximal_logp) ** 2, 0)
    kept = objective("m2po_areal", budget=budget).keep(
        TokenBatch(
            current_logp=current_logp,
            behavior_logp=behavior_logp,
            proximal_logp=proximal_logp,
            advantage=advantage,
            keep=keep & torch.isfinite(square),
        )
    )
    return kept_mean * int(kept.sum()) / max(int(keep.sum()), 1)


def areal_whole(current_logp, behavior_logp, advantage, keep, budget, proximal_logp):
    """AReaL's actor loss with its selection: decoupled PPO, clip .2, rejection above 5."""
    square = torch.where(keep, (behavior_logp - proximal_logp) ** 2, 0)[keep]
    order = torch.argsort(square, descending=True, stable=True)
    mean = square[order].flip(0).cumsum(0).flip(0) / torch.arange(len(order), 0, -1)
    below = (mean < budget).nonzero()
    drop = int(below[0]) if len(below) else len(order) - 1
    mask = keep.clone()
    mask[keep] = torch.isin(torch.arange(len(order)), order[drop:])
    ratio = torch.where(mask, torch.exp(current_logp - proximal_logp), 0)
    loss = torch.maximum(-advantage * ratio, -advantage * torch.clamp(ratio, 0.8, 1.2))
    behavior = torch.where(mask, torch.exp(proximal_logp - behavior_logp), 0)
    weight = torch.where(behavior <= 5.0, behavior, 0)
    return torch.where(mask, loss * weight, 0).sum() / max(int(mask.sum()), 1)


def released(current_logp, behavior_logp, advantage, keep, budget):
    """The authors' clip (Infini-AI-Lab/M2PO af54a3e, Apache-2.0, condensed)."""
    delta = (behavior_logp - current_logp).detach()
    ratio, sign = torch.exp(-delta), advantage[:, :1]
    region = keep & (
        ((sign > 1e-12) & (ratio > 1.0 + 1e-12)) | ((sign < -1e-12) & (ratio < 1.0 - 1e-12))
    )
    v, _ = torch.sort((delta**2)[region])
    n = v.numel()
    low, high = 0.0, 100000.0
    if n and float(v.sum()) / n > budget + 1e-12:
        running, target = torch.cumsum(v, 0), budget * n
        if target <= 1e-12:
            raise TypeError("cannot unpack non-iterable float object")
        for k in range(n):
            if (v[k].item() - 1e-12) * (n - k - 1) + running[k].item() >= target - 1e-12:
                break
        cap = 0.0 if k == 0 else float((v[k - 1].item() - 1e-12) ** 0.5)
        low, high = (float(torch.exp(torch.tensor(c))) for c in (-cap, cap))
    r = torch.exp(current_logp - behavior_logp)
    loss = torch.maximum(-advantage * r, -advantage * torch.clamp(r, 1 - (1 - low), high))
    return torch.where(keep, loss, 0).sum() / max(int(keep.sum()), 1)


def verl_shaped(current_logp, behavior_logp, advantage, keep, budget):
    """A policy loss as verl calls it: float mask, aggregation by name, metrics beside the loss."""

    def policy_loss(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, m2_budget):
        valid = response_mask.bool()
        stay = algorithm_1(log_prob, old_log_prob, advantages, valid, m2_budget).float()
        ratio = torch.exp(torch.where(stay.bool(), log_prob - old_log_prob, 0))
        losses = -advantages * ratio * stay
        assert loss_agg_mode == "seq-mean-token-mean"
        lengths = response_mask.sum(-1)
        rows = torch.where(lengths > 0, (losses * response_mask).sum(-1) / lengths.clamp(min=1), 0)
        loss = rows.sum() / (lengths > 0).sum().clamp(min=1)
        return loss, {"actor/pg_clipfrac": float((response_mask - stay).mean())}

    aggregation = "seq-mean-token-mean"
    return policy_loss(
        behavior_logp, current_logp, advantage, keep.float(), aggregation, m2_budget=budget
    )


def trl_shaped(current_logp, behavior_logp, advantage, keep, budget):
    """A trainer's method that reads a dictionary of inputs, advantages a row; TRL's token mean."""
    inputs = {
        "old_per_token_logps": behavior_logp,
        "completion_mask": keep.long(),
        "advantages": advantage,
    }
    mask = inputs["completion_mask"]
    stay = algorithm_1(
        current_logp, inputs["old_per_token_logps"], inputs["advantages"], mask.bool(), budget
    )
    gap = torch.where(stay, current_logp - inputs["old_per_token_logps"], 0)
    per_token_loss = torch.where(stay, -torch.exp(gap) * inputs["advantages"], 0)
    return (per_token_loss * mask).sum() / mask.sum().clamp(min=1.0)


def ppo(current_logp, behavior_logp, advantage, keep, budget):
    tokens = TokenBatch(
        current_logp=current_logp, behavior_logp=behavior_logp, advantage=advantage, keep=keep
    )
    return objective("ppo").loss(tokens)


def importance_sampling(current_logp, behavior_logp, advantage, keep, budget):
    return masked_surrogate(keep, current_logp, behavior_logp, advantage, keep.sum())


@pytest.mark.parametrize(
    ("loss", "variant", "denominator"),
    [
        (paper, "m2po", "valid tokens"),
        (released, "m2po_released", "valid tokens"),
        (areal, "m2po_areal", "kept tokens"),
        (areal_whole, "m2po_areal, clipped", "other"),
        (verl_shaped, "m2po", "valid tokens of each row"),
        (trl_shaped, "m2po", "valid tokens"),
    ],
)
def test_a_loss_written_elsewhere_is_recognised(loss, variant, denominator):
    found = check(loss)
    assert found.variant == variant, str(found)
    assert found.matched[variant] == found.batches
    assert found.denominator == denominator
    assert found.importance_weighted
    assert str(found).startswith(f"implements {variant}\n")


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_is_itself_and_no_other(variant):
    chosen = VARIANTS[variant]

    def loss(current_logp, behavior_logp, advantage, keep, budget, proximal_logp):
        tokens = TokenBatch(
            current_logp=current_logp,
            behavior_logp=behavior_logp,
            proximal_logp=proximal_logp,
            advantage=advantage,
            keep=keep,
        )
        return objective(chosen.objective, budget=budget, **chosen.params).loss(tokens)

    found = check(loss, random_batches=10)
    assert found.variant == variant
    assert found.ties
    assert set(found.counterexamples) == set(VARIANTS) - {variant}


@pytest.mark.parametrize("loss", [ppo, importance_sampling, strict])
def test_a_loss_that_is_no_variant_gets_a_counterexample(loss):
    found = check(loss, random_batches=10)
    assert found.variant is None
    assert set(found.counterexamples) == {n for n, v in VARIANTS.items() if not v.proximal}
    text = str(found)
    assert text.startswith("implements no variant of M2PO")
    assert "this function keeps" in text


def test_a_counterexample_is_one():
    example = check(strict, random_batches=0).counterexamples["m2po"]
    assert example.case.name == "case 08_tie_at_threshold_value"
    assert example.expected == "keeps 1111"
    assert example.got == "keeps 0000"


def test_ties_may_be_broken_otherwise_and_it_is_said():
    found = check(other_ties, random_batches=5)
    assert found.variant == "m2po"
    assert not found.ties
    assert "of tied tokens others stay" in str(found)
    assert check(paper, random_batches=5).ties


@pytest.mark.parametrize(
    ("loss", "variant", "theirs", "own"),
    [
        (kept_denominator, "m2po", "valid", "kept"),
        (areal_by_valid_tokens, "m2po_areal", "kept", "valid"),
    ],
)
def test_the_right_masks_over_the_wrong_count_are_no_variant(loss, variant, theirs, own):
    found = check(loss, random_batches=5)
    assert (found.variant, found.masks) == (None, variant)
    assert found.importance_weighted
    assert found.denominator == f"{own} tokens"
    text = str(found)
    assert text.startswith(f"implements no variant of M2PO; only its masks are those of {variant}")
    assert re.search(rf"{variant} divides by its \d+ {theirs} tokens", text)
    assert re.search(rf"this function divides by its \d+ {own} tokens", text)


@pytest.mark.parametrize("loss", [unweighted, by_response])
def test_the_right_masks_under_another_weight_are_no_variant(loss):
    found = check(loss, random_batches=5)
    assert (found.variant, found.masks) == (None, "m2po")
    assert not found.importance_weighted
    assert "m2po weighs each kept token by r A" in str(found)


@pytest.mark.parametrize(
    ("aggregation", "denominator"),
    [
        ("token_mean", "valid tokens"),
        ("sequence_mean_token_mean", "valid tokens of each row"),
        ("sequence_sum", "rows"),
        ("constant", "other"),
    ],
)
def test_how_a_loss_averages_is_said_and_does_not_decide(aggregation, denominator):
    length = {"max_length": 100} if aggregation == "constant" else {}

    def loss(current_logp, behavior_logp, advantage, keep, budget):
        tokens = TokenBatch(
            current_logp=current_logp, behavior_logp=behavior_logp, advantage=advantage, keep=keep
        )
        return objective("m2po", aggregation, budget=budget, **length).loss(tokens)

    found = check(loss, random_batches=10)
    assert (found.variant, found.denominator) == ("m2po", denominator)


@pytest.mark.parametrize("loss", [smallest_first, all_tokens, other_side, by_micro_batch])
def test_a_wrong_selection_gets_a_counterexample_from_every_variant(loss):
    found = check(loss, random_batches=20)
    assert (found.variant, found.masks) == (None, None)
    for variant, example in found.counterexamples.items():
        assert example.expected != example.got
        assert f"not {variant}: {example.case.name}" in str(example)


def test_what_it_does_with_non_finite_tokens_is_reported_but_does_not_decide():
    found = check(paper, random_batches=0)
    assert set(found.non_finite) == {"case 14_nan", "case 15_inf"}
    assert found.batches == 18


def test_a_loss_that_returns_no_tensor_is_a_type_error():
    with pytest.raises(TypeError, match="returned float; return a tensor"):
        check(lambda current_logp, behavior_logp, advantage, keep, budget: 0.5)


def test_a_constant_loss_keeps_nothing():
    found = check(lambda current_logp, **_: torch.tensor(0.0), random_batches=2)
    assert found.variant is None


def test_the_same_seed_asks_the_same_batches():
    one, two = (list(random_cases(4, seed)) for seed in (3, 3))
    other = list(random_cases(4, 4))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.current_logp, b.current_logp)
    assert any(
        a.current_logp.shape != b.current_logp.shape for a, b in zip(one, other, strict=True)
    )


def test_the_cases_that_ship_are_the_reference_cases():
    shipped = json.loads((files("m2po_lab.data") / "m2po_cases.json").read_text())
    assert shipped == json.loads((DATA / "m2po_cases.json").read_text())
    assert len(list(reference_cases())) == 20
