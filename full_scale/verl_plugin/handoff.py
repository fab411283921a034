"""What the engine hands the loss beside verl's fixed set of fields, one micro-batch at a time."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from torch import Tensor

from full_scale.verl_plugin.config import M2POLossConfig
from m2po_lab.core import TokenBatch
from m2po_lab.core.selection import Threshold


@dataclass
class Handoff:
    """One micro-batch as the engine sees it; (B, T) tensors, padded as verl's loss pads.

    Attributes:
        settings: of the plugin.
        behavior_logp: log-probs of the policy that sampled.
        proximal_logp: log-probs of the start of the step; None in bypass mode, where verl's
            old_log_probs are the sampler's.
        keep: mask that was solved over the mini-batch; None where the loss decides.
        value: loss of each token, where all of it was judged over the mini-batch.
        slope: -d loss / d log-prob of each token, with `value`.
        threshold: threshold of the mini-batch before, for the lagged scope.
        entropy: of the current policy, if the model computed it.
        judged: what the loss made of it: its batch (detached) and the mask it used.
    """

    settings: M2POLossConfig
    behavior_logp: Tensor
    proximal_logp: Tensor | None = None
    keep: Tensor | None = None
    value: Tensor | None = None
    slope: Tensor | None = None
    threshold: Threshold | None = None
    entropy: Tensor | None = None
    judged: list[tuple[TokenBatch, Tensor]] = field(default_factory=list)


HANDOFF: ContextVar[Handoff | None] = ContextVar("m2po_handoff", default=None)
"""Set by the engine around each call of the loss, and by nothing else."""
