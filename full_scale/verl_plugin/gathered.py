"""Objectives that look at the whole mini-batch: judged once, on the rows of all ranks."""

from dataclasses import dataclass

import torch
from torch import Tensor

from full_scale.verl_plugin.losses import share
from full_scale.verl_plugin.ranks import Ranks
from m2po_lab.core import TokenBatch
from m2po_lab.core.objectives import Objective

COLUMNS = ("behavior_logp", "proximal_logp", "current_logp", "advantage", "entropy")


@dataclass(frozen=True)
class Judgement:
    """What an objective makes of the rows of one rank; (B, T) each.

    The loss `value - slope (l - sg(l))` of a token has the objective's value and, in the log-prob
    l, its gradient, however the rows are split into micro-batches.

    Attributes:
        keep: mask of the tokens that keep a gradient.
        value: loss of each token before the division by the valid tokens.
        slope: -d loss / d log-prob of each token, likewise.
    """

    keep: Tensor
    value: Tensor
    slope: Tensor


def judge(batch: TokenBatch, objective: Objective, ranks: Ranks, *, start: int) -> Judgement:
    """Judge this rank's rows together with those of all others.

    Args:
        batch: (B, T) tokens of this rank with their current log-probs.
        objective: of any scope.
        ranks: data-parallel ranks, of which all call this.
        start: number of this rank's first row among all.
    """
    whole = gather(batch, ranks)
    keep = objective.keep(whole)
    factor = share(whole, objective)
    rows, width = batch.shape
    mine = (slice(start, start + rows), slice(0, width))
    value, slope = objective.token_loss(whole, keep) * factor, objective.gradient(whole) * factor
    return Judgement(keep[mine], value[mine].float(), slope[mine].float())


def gather(batch: TokenBatch, ranks: Ranks) -> TokenBatch:
    """Rows of all ranks, one rank after the other; float64, which holds every log-prob exactly."""
    names = [name for name in COLUMNS if getattr(batch, name) is not None]
    shape = batch.shape
    values = [getattr(batch, name).detach().double().expand(shape) for name in names]
    *columns, keep = ranks.rows(torch.stack([*values, batch.keep.double()])).unbind()
    return TokenBatch(**dict(zip(names, columns, strict=True)), keep=keep != 0)
