"""Settings of the plugin: `actor_rollout_ref.actor.policy_loss` with a `_target_` of our own."""

import math
from dataclasses import dataclass, field
from typing import Any

from verl.workers.config import PolicyLossConfig

from full_scale.verl_plugin.modes import MODES, Mode
from m2po_lab.core.objectives import Objective, objective

SCOPES = ("exact", "proximal", "lagged")
TARGET = "actor_rollout_ref.actor.policy_loss._target_=full_scale.verl_plugin.M2POLossConfig"
KEY = "actor_rollout_ref.actor.policy_loss"
WHERE = {"rows": "its rows", "micro-batch": "each micro-batch", "gathered": "the mini-batch"}


@dataclass
class M2POLossConfig(PolicyLossConfig):
    """Policy loss settings of verl with those of M2PO.

    Attributes:
        loss_mode: one of `MODES`, or any mode of verl, which then runs as without the plugin.
        budget: bound on the mean squared log-ratio of the trust-region tokens, nats^2.
        scope: where the mask of m2po comes from. "exact": a pass without gradient over the
            mini-batch, then the threshold over all micro-batches and data-parallel ranks.
            "proximal": log-probs of the start of the step, no extra pass; needs
            `algorithm.rollout_correction.bypass_mode=false`. "lagged": threshold of the mini-batch
            before; the first mini-batch of a process is solved exactly.
        reuse_old_log_probs: with scope "exact" and bypass_mode=false, the first mini-batch of a
            step takes the log-probs that were recomputed at its start instead of a pass of its own.
        objective: parameters of the objective by name, such as `eps_low`; see the core's registry.
        staleness: largest number of versions between the policy that sampled a token and the one
            that is trained; older rows stop the run. None: whatever comes.
        steps_per_sync: `trainer.parameter_sync_step`: calls of the update between two versions.
        log_dir: folder of the native token log; None writes none.
        log_every: every how many steps the log is written.
        log_rows: fraction of the responses that are written, chosen by a hash of their id.
    """

    loss_mode: str = "m2po"
    budget: float = 0.04
    scope: str = "exact"
    reuse_old_log_probs: bool = False
    objective: dict[str, Any] = field(default_factory=dict)
    staleness: int | None = None
    steps_per_sync: int = 1
    log_dir: str | None = None
    log_every: int = 1
    log_rows: float = 1.0

    def __post_init__(self) -> None:
        """Check what can be checked without data.

        Raises:
            ValueError: names the key, the value and what it may be.
        """
        if not (isinstance(self.budget, int | float) and self.budget >= 0):
            raise ValueError(f"{KEY}.budget={self.budget}: a number of nats^2, at least 0")
        if self.scope not in SCOPES:
            raise ValueError(f"{KEY}.scope={self.scope}: one of {', '.join(SCOPES)}")
        for name, least in (("log_every", 1), ("steps_per_sync", 1), ("staleness", 0)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= least):
                raise ValueError(f"{KEY}.{name}={value}: an integer of at least {least}")
        if not 0 < self.log_rows <= 1:
            raise ValueError(f"{KEY}.log_rows={self.log_rows}: a fraction above 0, at most 1")
        if self.loss_mode in MODES:
            self._check_mode(MODES[self.loss_mode])

    def _check_mode(self, mode: Mode) -> None:
        if mode.selection != "mini-batch" and self.scope != "exact":
            raise ValueError(
                f"{KEY}.scope={self.scope} is about m2po; {self.loss_mode} decides its mask in "
                f"{WHERE[mode.selection]}: leave it out"
            )
        if self.reuse_old_log_probs and (mode.selection, self.scope) != ("mini-batch", "exact"):
            raise ValueError(f"{KEY}.reuse_old_log_probs=true goes with m2po and scope=exact only")
        if self.reuse_old_log_probs and self.steps_per_sync > 1:
            raise ValueError(
                f"{KEY}.reuse_old_log_probs=true with steps_per_sync={self.steps_per_sync}: verl "
                "then takes old_log_probs from older weights; set it to false"
            )
        if mode.selection == "rows" and self.objective.get("denominator") == "kept":
            raise ValueError(
                f"{KEY}.objective.denominator=kept: a micro-batch does not know how many tokens "
                "the mini-batch keeps; use denominator=valid"
            )
        made = self.made()
        if math.isinf(self.budget) and mode.objective == "m2po_released":
            raise ValueError(f"{KEY}.budget={self.budget}: {made.name} needs a finite one")

    def made(self) -> Objective:
        """Make the objective that the loss mode names, with its parameters."""
        name = MODES[self.loss_mode].objective
        budget = {"budget": self.budget} if name.startswith("m2po") else {}
        return objective(name, **budget, **dict(self.objective))
