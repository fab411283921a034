"""One optimizer mini-batch of this rank, checked, with the number of each row among all ranks."""

from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu

from full_scale.verl_plugin.config import KEY, M2POLossConfig
from full_scale.verl_plugin.fields import like, padded, versions_of
from full_scale.verl_plugin.modes import MODES
from full_scale.verl_plugin.ranks import Ranks
from m2po_lab.core import TokenBatch

KEEP, ROW, VALUE, SLOPE = "m2po_keep", "m2po_row", "m2po_value", "m2po_slope"
"""Fields that the engine adds to verl's data; verl splits them with everything else."""
BYPASS = "algorithm.rollout_correction.bypass_mode"


@dataclass(frozen=True)
class MiniBatch:
    """What this rank holds of the mini-batch.

    Attributes:
        data: verl's fields; `attach` adds to them.
        batch: (B, T) behavior and, if recomputed, proximal log-probs, advantages and loss mask.
        rows: (B,) number of each row over all ranks, unique; ranks one after the other.
        decoupled: whether old_log_probs are a recompute of the trainer rather than the sampler's.
    """

    data: TensorDict
    batch: TokenBatch
    rows: Tensor
    decoupled: bool

    @classmethod
    def of(
        cls, data: TensorDict, settings: M2POLossConfig, ranks: Ranks, version: int = 0
    ) -> "MiniBatch":
        """Read and check the fields; every rank raises or none does.

        Args:
            data: fields of verl; only read.
            settings: of the plugin.
            ranks: data-parallel ranks.
            version: of the weights that the step started from.

        Raises:
            ValueError: a field is missing, or settings of verl would change the meaning.
        """
        _present(data, settings)
        fields = ("rollout_log_probs", "old_log_probs", "advantages", "response_mask")
        behavior, old, advantage, mask = (padded(data[name]).to(ranks.device) for name in fields)
        keep = mask != 0
        differ = int(((behavior != old) & keep).sum())
        age = max((version - first for first in versions_of(data)[0] if first >= 0), default=0)
        table = ranks.table([len(keep), differ, int(keep.sum()), age])
        if settings.staleness is not None and int(table[:, 3].max()) > settings.staleness:
            raise ValueError(
                f"{KEY}.staleness={settings.staleness}, and a row was sampled "
                f"{int(table[:, 3].max())} versions ago; take fewer warm-up batches, or raise it"
            )
        decoupled = bool(table[:, 1].sum() > 0)
        check_meaning(settings, decoupled=decoupled, any_token=bool(table[:, 2].sum() > 0))
        start = int(table[: ranks.index, 0].sum())
        batch = TokenBatch(
            behavior_logp=behavior,
            proximal_logp=old if decoupled else None,
            advantage=advantage,
            keep=keep,
        )
        return cls(data, batch, torch.arange(start, start + len(keep)), decoupled)

    def attach(
        self, keep: Tensor | None, value: Tensor | None = None, slope: Tensor | None = None
    ) -> None:
        """Put the row numbers and what there is of the (B, T) tensors into verl's data."""
        self.data[ROW] = self.rows
        example = self.data["response_mask"]
        if keep is not None:
            self.data[KEEP] = like(keep.to(example.dtype), example)
        for name, values in ((VALUE, value), (SLOPE, slope)):
            if values is not None:
                self.data[name] = like(values, example)

    def detach(self) -> None:
        """Take them out again: verl may train on the same data for another epoch."""
        for name in (ROW, KEEP, VALUE, SLOPE):
            if name in self.data.keys():  # noqa: SIM118 - a TensorDict iterates over rows
                del self.data[name]


def _present(data: TensorDict, settings: M2POLossConfig) -> None:
    names = set(data.keys())
    if "rollout_log_probs" not in names:
        raise ValueError(
            f"loss_mode={settings.loss_mode} needs the log-probs of the policy that sampled, and "
            "the mini-batch has no rollout_log_probs: set "
            "actor_rollout_ref.rollout.calculate_log_probs=true"
        )
    if missing := {"old_log_probs", "advantages", "response_mask"} - names:
        raise ValueError(f"loss_mode={settings.loss_mode}: no {sorted(missing)} in the mini-batch")
    top_k = tu.get_non_tensor_data(data, "distillation_use_topk", False)
    if top_k or tu.get_non_tensor_data(data, "distillation_only", False):
        raise ValueError(
            f"loss_mode={settings.loss_mode} with distillation: the loss then also scores a "
            "teacher's top-k tokens, for which there is no ratio; set distillation.enabled=false"
        )


def check_meaning(settings: M2POLossConfig, *, decoupled: bool, any_token: bool) -> None:
    """Refuse combinations that would run but mean something else.

    Args:
        settings: of the plugin.
        decoupled: whether old_log_probs are a recompute of the trainer; `bypass_mode=false`.
        any_token: whether the mini-batch has a token that counts.

    Raises:
        ValueError: such a combination, with the settings that go together.
    """
    if MODES[settings.loss_mode].objective == "decoupled_ppo" or not any_token:
        return
    if settings.scope == "proximal" and not decoupled:
        raise ValueError(
            f"{KEY}.scope=proximal takes the mask from log-probs recomputed at the start of the "
            "step, but old_log_probs equal rollout_log_probs bit for bit, so that every log-ratio "
            f"is 0: set {BYPASS}=false, or scope=exact"
        )
    solved = MODES[settings.loss_mode].selection == "mini-batch"
    if solved and decoupled and settings.scope != "proximal" and not settings.reuse_old_log_probs:
        raise ValueError(
            f"old_log_probs differ from rollout_log_probs ({BYPASS}=false), so verl may also "
            f"reweight or reject by them; the ratio of {settings.loss_mode} is current/behavior: "
            f"set {BYPASS}=true, or {KEY}.scope=proximal, or {KEY}.reuse_old_log_probs=true to "
            "have them spare the first extra pass of each step"
        )


def inferred(output: dict[str, Any], data: TensorDict, name: str) -> Tensor:
    """(B, T) "log_probs" or "entropy" of the response from what `infer_batch` returned."""
    from verl.workers.utils.padding import no_padding_2_padding

    return no_padding_2_padding(output["model_output"][name], data)
