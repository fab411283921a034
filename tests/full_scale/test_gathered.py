"""The loss that stands in for an objective judged over the whole mini-batch."""

import pytest
import torch

from full_scale.verl_plugin.gathered import gather, judge
from full_scale.verl_plugin.ranks import Ranks
from m2po_lab.core import OBJECTIVES, TokenBatch, objective

ALONE = Ranks(None, torch.device("cpu"))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    shape = (6, 9)
    behavior = -torch.rand(shape, generator=generator) * 3
    return TokenBatch(
        behavior_logp=behavior,
        proximal_logp=behavior + 0.1 * torch.randn(shape, generator=generator),
        current_logp=behavior + 0.4 * torch.randn(shape, generator=generator),
        advantage=torch.randn(6, 1, generator=generator).expand(shape).contiguous(),
        keep=torch.rand(shape, generator=generator) < 0.8,
        entropy=torch.rand(shape, generator=generator),
    )


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_it_has_the_value_and_the_gradient_of_the_objective(batch, name):
    rule = objective(name)
    current = batch.current_logp.double().requires_grad_()
    judged = judge(batch, rule, ALONE, start=0)
    stand_in = judged.value - judged.slope * (current - current.detach())
    (stand_in.sum() / batch.keep.sum()).backward()
    ours = current.grad.clone()
    current.grad = None
    whole = gather(batch, ALONE)
    keep = rule.keep(whole)
    losses = rule.token_loss(whole.replace(current_logp=current), keep) / rule.divisor(whole)
    losses.sum().backward()
    assert torch.allclose(ours, current.grad, rtol=1e-5, atol=1e-8)
    value = judged.value.double().sum() / batch.keep.sum()
    assert torch.allclose(value, losses.sum().detach(), rtol=1e-5)
