"""Engines that see the whole optimizer mini-batch: a pass to solve the mask, then verl's update."""

from collections.abc import Callable
from typing import Any

from tensordict import TensorDict
from torch import Tensor
from verl.utils import tensordict_utils as tu
from verl.utils.device import get_device_id
from verl.utils.metric import Metric
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from full_scale.verl_plugin import metrics
from full_scale.verl_plugin.config import TARGET, M2POLossConfig
from full_scale.verl_plugin.fields import versions_of
from full_scale.verl_plugin.gathered import Judgement, judge
from full_scale.verl_plugin.mini_batch import MiniBatch, inferred
from full_scale.verl_plugin.modes import MODES
from full_scale.verl_plugin.ranks import Ranks
from full_scale.verl_plugin.tape import Tape
from full_scale.verl_plugin.token_log import TokenLog
from m2po_lab.core import TokenBatch
from m2po_lab.core.selection import Threshold, apply, solve_threshold

VENDOR = "m2po"


class M2POEngineMixin:
    """Over any engine of verl whose `train_batch` gets one optimizer mini-batch.

    Everything but the plugin's own loss modes goes straight to the engine below.
    """

    _m2po_lagged: Threshold | None = None
    _m2po_mini_batch = 0
    _m2po_inferred = False
    _m2po_log: TokenLog | None = None

    def infer_batch(self, data: TensorDict, loss_function: Callable[..., Any] | None = None) -> Any:
        """Infer as verl does, and remember that log-probs of these weights are known."""
        self._m2po_inferred = True
        return super().infer_batch(data, loss_function=loss_function)  # type: ignore[misc]

    def train_batch(self, data: TensorDict, loss_function: Callable[..., Any]) -> Any:
        """Update on one mini-batch with a mask that was solved over all of it.

        Raises:
            ValueError: data or settings that cannot give the objective its meaning, on all ranks.
        """
        settings = settings_of(loss_function)
        if settings is None:
            return super().train_batch(data, loss_function)  # type: ignore[misc]
        ranks = Ranks(self.get_data_parallel_group(), get_device_id())  # type: ignore[attr-defined]
        mini = MiniBatch.of(data, settings, ranks, self._m2po_version(settings))
        judgement = self._m2po_judge(mini, settings, ranks)
        threshold, keep = self._m2po_solve(mini, settings, ranks)
        lagged = threshold if settings.scope == "lagged" and keep is None else None
        tape = Tape(loss_function, settings, mini.decoupled, lagged)
        if judgement is None:
            mini.attach(keep)
        else:
            mini.attach(judgement.keep, judgement.value, judgement.slope)
        try:
            outputs = super().train_batch(data, tape)  # type: ignore[misc]
        finally:
            mini.detach()
            self._m2po_inferred = False
        if settings.scope == "lagged":
            self._m2po_lagged = _solve_tape(tape, settings, ranks)
        self._m2po_finish(outputs, mini, tape, threshold, ranks)
        return outputs

    def _m2po_solve(
        self, mini: MiniBatch, settings: M2POLossConfig, ranks: Ranks
    ) -> tuple[Threshold | None, Tensor | None]:
        """Threshold and mask of this rank's rows; no mask where the loss is to decide."""
        if MODES[settings.loss_mode].selection != "mini-batch":
            return None, None
        if settings.scope == "lagged" and self._m2po_lagged is not None:
            return self._m2po_lagged, None
        batch, ratio = mini.batch, "current/behavior"
        if settings.scope == "proximal":
            ratio = "proximal/behavior"
        elif self._m2po_may_reuse(mini, settings):
            batch = batch.replace(current_logp=batch.proximal_logp)
        else:
            batch = self._m2po_current(mini)
        threshold = solve_threshold(
            batch, settings.budget, ratio, None if ranks.alone else ranks.sum, rows=mini.rows
        )
        keep: Tensor = apply(batch, threshold)
        return threshold, keep

    def _m2po_may_reuse(self, mini: MiniBatch, settings: M2POLossConfig) -> bool:
        first = self._m2po_mini_batch == 0
        return settings.reuse_old_log_probs and mini.decoupled and first and self._m2po_inferred

    def _m2po_judge(
        self, mini: MiniBatch, settings: M2POLossConfig, ranks: Ranks
    ) -> Judgement | None:
        """Judge the rows of all ranks, for an objective that looks at all of them."""
        if MODES[settings.loss_mode].selection != "gathered":
            return None
        objective = settings.made()
        batch = self._m2po_current(mini, entropy="entropy" in objective.needs)
        return judge(batch, objective, ranks, start=int(mini.rows[0]))

    def _m2po_current(self, mini: MiniBatch, *, entropy: bool = False) -> TokenBatch:
        """Score this rank's rows under the weights as they are, in the update's micro-batches."""
        view = mini.data.copy()
        tu.assign_non_tensor(view, calculate_entropy=entropy, calculate_sum_pi_squared=False)
        output = super().infer_batch(view, loss_function=None)  # type: ignore[misc]
        names = {"current_logp": "log_probs"} | ({"entropy": "entropy"} if entropy else {})
        device = mini.batch.keep.device
        return mini.batch.replace(
            **{column: inferred(output, view, name).to(device) for column, name in names.items()}
        )

    def _m2po_finish(
        self,
        outputs: dict[str, Any],
        mini: MiniBatch,
        tape: Tape,
        threshold: Threshold | None,
        ranks: Ranks,
    ) -> None:
        """Put finished numbers into verl's metrics and count the mini-batch."""
        numbers = metrics.finished(tape.totals(ranks), threshold, tape.settings)
        numbers |= metrics.staleness(*versions_of(mini.data), self._m2po_version(tape.settings))
        if self.is_mp_src_rank_with_outputs():  # type: ignore[attr-defined]
            outputs["metrics"] |= {
                name: Metric(aggregation="mean", value=value) for name, value in numbers.items()
            }
            self._m2po_write(mini, tape, ranks)
        last = tu.get_non_tensor_data(mini.data, "update_lr_scheduler", False)
        self._m2po_mini_batch = 0 if last else self._m2po_mini_batch + 1

    def _m2po_write(self, mini: MiniBatch, tape: Tape, ranks: Ranks) -> None:
        """Hand the mini-batch to the token log, where one is asked for."""
        settings = tape.settings
        if settings.log_dir is None:
            return
        if self._m2po_log is None:
            self._m2po_log = TokenLog(settings, ranks.index)
        step = self._m2po_calls() + 1
        if self._m2po_log.due(step):
            version = self._m2po_version(settings)
            self._m2po_log.write(
                mini, tape, step=step, mini_batch=self._m2po_mini_batch, version=version
            )

    def save_checkpoint(self, *args: Any, **settings: Any) -> Any:
        """Save as verl does, with the token log up to here on the disk as well."""
        if self._m2po_log is not None:
            self._m2po_log.flush()
        return super().save_checkpoint(*args, **settings)  # type: ignore[misc]

    def _m2po_calls(self) -> int:
        """Calls of the update so far, over restarts too: verl's learning rate counts them."""
        return int(self.lr_scheduler.last_epoch)  # type: ignore[attr-defined]

    def _m2po_version(self, settings: M2POLossConfig) -> int:
        """Version of the weights that this step started from."""
        return self._m2po_calls() // settings.steps_per_sync


class M2POFSDPEngine(M2POEngineMixin, FSDPEngineWithLMHead):  # type: ignore[misc]
    """FSDP and FSDP2."""


def settings_of(loss_function: Callable[..., Any]) -> M2POLossConfig | None:
    """Find the plugin's settings in verl's loss function; None if its mode is not ours.

    Raises:
        TypeError: one of our modes, with settings of another class.
    """
    config = getattr(loss_function, "keywords", {}).get("config")
    policy = getattr(config, "policy_loss", None)
    if policy is None or policy.get("loss_mode") not in MODES:
        return None
    if not isinstance(policy, M2POLossConfig):
        raise TypeError(
            f"loss_mode={policy.get('loss_mode')} with settings of {type(policy).__name__}, which "
            f"hold no budget: set {TARGET}"
        )
    return policy


def _solve_tape(tape: Tape, settings: M2POLossConfig, ranks: Ranks) -> Threshold:
    """Threshold of a mini-batch from the log-probs of its own update, for the next one."""
    solved = solve_threshold(
        [each.batch for each in tape.judged],
        settings.budget,
        reduce=None if ranks.alone else ranks.sum,
        rows=[each.rows for each in tape.judged],
    )
    # Which of the tied tokens stay is a matter of that mini-batch; for the next the value is all.
    return Threshold(
        value=solved.value,
        budget=solved.budget,
        active=solved.active,
        masked=solved.masked,
        m2_before=solved.m2_before,
        m2_after=solved.m2_after,
        scope="mini-batch before",
    )


def register() -> None:
    """Register the engines for the vendor `m2po`, which VERL_ENGINE_VENDOR chooses."""
    EngineRegistry.register(
        model_type="language_model",
        backend=["fsdp", "fsdp2"],
        device=["cuda", "cpu"],
        vendor=VENDOR,
    )(M2POFSDPEngine)


__all__ = ["VENDOR", "M2POEngineMixin", "M2POFSDPEngine", "register", "settings_of"]
