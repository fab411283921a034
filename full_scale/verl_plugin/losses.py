"""Policy losses for verl: the token losses of the core's objectives, divided by verl's agg_loss."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from verl.trainer.ppo.core_algos import agg_loss, register_policy_loss

from full_scale.verl_plugin.handoff import HANDOFF, Handoff
from full_scale.verl_plugin.modes import MODES
from m2po_lab.core import TokenBatch
from m2po_lab.core.objectives import Objective
from m2po_lab.core.selection import apply

ENGINES = ("fsdp", "fsdp2")
"""Values of `actor.strategy` for which the plugin has an engine."""


def policy_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
    *,
    loss_mode: str,
) -> tuple[Tensor, dict[str, Any]]:
    """Loss of one micro-batch under one of `MODES`.

    The mask of m2po was solved over the whole mini-batch and arrives in the handoff. Divided by
    the counts of the mini-batch (`config.global_batch_info`), the gradients of micro-batches and
    ranks add up to that of the mini-batch.

    Args:
        old_log_prob: (B, T); shapes only, the engine hands over what was sampled under.
        log_prob: (B, T) current log-probs with their gradient.
        advantages: (B, T).
        response_mask: (B, T), which tokens count.
        loss_agg_mode: of verl.
        config: actor configuration of verl.
        rollout_is_weights: must be absent: the ratio runs to the behavior policy already.
        loss_mode: the name under which this was registered.

    Returns:
        The loss, and no metrics: the engine finishes those once per mini-batch.

    Raises:
        RuntimeError: the engine of the plugin is not the one that runs.
        ValueError: a correction is applied on top.
    """
    handoff = HANDOFF.get()
    if handoff is None:
        raise RuntimeError(_no_handoff(loss_mode, config))
    if rollout_is_weights is not None:
        raise ValueError(
            f"{loss_mode} already weights by current/behavior; verl's rollout_is_weights would "
            "count it twice: set algorithm.rollout_correction.rollout_is=null"
        )
    objective = handoff.settings.made()
    batch = TokenBatch(
        behavior_logp=handoff.behavior_logp,
        proximal_logp=handoff.proximal_logp,
        current_logp=log_prob,
        advantage=advantages,
        keep=response_mask,
        entropy=handoff.entropy,
    )
    still = batch.replace(current_logp=log_prob.detach())
    keep = keep_of(still, handoff, objective)
    handoff.judged.append((still, keep))
    if handoff.value is not None and handoff.slope is not None:
        losses = handoff.value - handoff.slope * (log_prob - still.current_logp)
    else:
        losses = objective.token_loss(batch, keep) * share(still, objective)
    loss = agg_loss(
        loss_mat=losses.to(torch.float32),
        loss_mask=response_mask,
        loss_agg_mode=loss_agg_mode,
        **config.global_batch_info,
    )
    return loss, {}


def keep_of(batch: TokenBatch, handoff: Handoff, objective: Objective) -> Tensor:
    """Mask of one micro-batch: what was handed over, a known threshold, or the objective's own.

    Raises:
        RuntimeError: the mask is one of the mini-batch, and the engine handed over neither.
    """
    keep: Tensor
    if handoff.keep is not None:
        keep = handoff.keep & batch.keep
    elif handoff.threshold is not None:
        keep = apply(batch, handoff.threshold)
    elif MODES[handoff.settings.loss_mode].selection in ("mini-batch", "gathered"):
        raise RuntimeError(f"no mask of the mini-batch reached the loss of {objective.name}")
    else:
        keep = objective.keep(batch)
    return keep


def share(batch: TokenBatch, objective: Objective) -> Tensor | float:
    """Valid over counted tokens, for objectives that divide by those they keep (AReaL).

    verl divides by the valid tokens of the mini-batch; AReaL takes the mean over the kept tokens
    of a micro-batch and weights it by the micro-batch's valid ones.
    """
    if objective.spec.counted is None:
        return 1.0
    valid_over_counted: Tensor = batch.keep.sum() / objective.divisor(batch)
    return valid_over_counted


def _no_handoff(loss_mode: str, config: Any) -> str:
    strategy = config.get("strategy", None) if config is not None else None
    if strategy is not None and strategy not in ENGINES:
        return (
            f"loss_mode={loss_mode} with actor.strategy={strategy}: the mask is solved over the "
            f"mini-batch by an engine that exists for {' and '.join(ENGINES)} only; set "
            "actor_rollout_ref.actor.strategy=fsdp2"
        )
    return (
        f"loss_mode={loss_mode}: nothing reached the loss from the engine, so it would select "
        "within one micro-batch or not at all. Set VERL_USE_EXTERNAL_MODULES="
        "full_scale.verl_plugin (or actor_rollout_ref.model.external_lib) in every process, and "
        "leave VERL_ENGINE_VENDOR unset or m2po"
    )


def register() -> None:
    """Register every mode with verl."""
    for name in MODES:
        loss = partial(policy_loss, loss_mode=name)
        register_policy_loss(name)(loss)
