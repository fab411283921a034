"""Wraps verl's loss for one mini-batch: hands over what it needs, keeps what it judged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from verl.workers.utils.padding import no_padding_2_padding

from full_scale.verl_plugin.config import M2POLossConfig
from full_scale.verl_plugin.fields import padded
from full_scale.verl_plugin.handoff import HANDOFF, Handoff
from full_scale.verl_plugin.mini_batch import KEEP, ROW, SLOPE, VALUE
from full_scale.verl_plugin.ranks import Ranks
from m2po_lab.core import TokenBatch
from m2po_lab.core.selection import Threshold, eligible

COUNTS = ("valid", "active", "active_kept", "kept")


@dataclass(frozen=True)
class Judged:
    """One micro-batch after its loss: all tensors detached, on the device of the loss.

    Attributes:
        rows: (b,) numbers of its rows in the mini-batch.
        batch: its tokens, the current log-probs those of this very update.
        keep: mask that the loss used.
    """

    rows: Tensor
    batch: TokenBatch
    keep: Tensor


@dataclass
class Tape:
    """The loss function that the engine passes on, and the record of its calls.

    Attributes:
        loss_function: of verl.
        settings: of the plugin.
        decoupled: whether old_log_probs are the trainer's own.
        threshold: for the lagged scope.
        judged: one entry for each micro-batch, in the order of the calls.
    """

    loss_function: Callable[..., Any]
    settings: M2POLossConfig
    decoupled: bool
    threshold: Threshold | None = None
    judged: list[Judged] = field(default_factory=list)

    def __call__(
        self, model_output: dict[str, Any], data: TensorDict, dp_group: Any = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Call verl's loss on one micro-batch with everything handed over."""
        handoff = self._handoff(model_output, data)
        token = HANDOFF.set(handoff)
        try:
            loss: tuple[Tensor, dict[str, Any]] = self.loss_function(
                model_output=model_output, data=data, dp_group=dp_group
            )
        finally:
            HANDOFF.reset(token)
        if len(handoff.judged) != 1:
            raise RuntimeError(
                f"loss_mode={self.settings.loss_mode}: verl called the policy loss "
                f"{len(handoff.judged)} times for one micro-batch instead of once; this plugin is "
                "made for verl 0.9.1"
            )
        self.judged.append(Judged(data[ROW], *handoff.judged[0]))
        return loss

    def _handoff(self, model_output: dict[str, Any], data: TensorDict) -> Handoff:
        entropy = model_output.get("entropy")
        names = set(data.keys())
        return Handoff(
            settings=self.settings,
            behavior_logp=padded(data["rollout_log_probs"]),
            proximal_logp=padded(data["old_log_probs"]) if self.decoupled else None,
            keep=padded(data[KEEP]) != 0 if KEEP in names else None,
            value=padded(data[VALUE]) if VALUE in names else None,
            slope=padded(data[SLOPE]) if SLOPE in names else None,
            threshold=self.threshold,
            entropy=None if entropy is None else no_padding_2_padding(entropy, data).detach(),
        )

    def totals(self, ranks: Ranks) -> dict[str, float]:
        """Counts and sums of squares over all micro-batches and ranks, from the update's log-probs.

        Returns:
            Tokens that are valid, in H, in H and kept, kept; `square` and `square_kept`: sums of
            d^2 (nats^2) over H and over what is kept of it.
        """
        sums = torch.zeros(len(COUNTS) + 2, dtype=torch.float64, device=ranks.device)
        for each in self.judged:
            active, valid = eligible(each.batch), each.batch.keep
            square = each.batch.log_ratio() ** 2
            masks = (valid, active, active & each.keep, each.keep)
            parts = [mask.sum().to(torch.float64) for mask in masks]
            parts += [torch.where(mask, square, 0.0).sum() for mask in masks[1:3]]
            sums += torch.stack(parts).to(sums.device)
        summed = ranks.sum(sums).tolist()
        return dict(zip((*COUNTS, "square", "square_kept"), summed, strict=True))
