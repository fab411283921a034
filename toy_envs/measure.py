"""Numbers of one training step, all from the core; nothing is averaged over an empty set."""

import numpy as np
from numpy.typing import NDArray

from m2po_lab.core import moments
from m2po_lab.core.moments import Sums, sums
from m2po_lab.core.selection import eligible
from m2po_lab.core.tails import largest, pareto_k, tail_length, top_count, top_share
from toy_envs.policy import Rollout, Update

Metrics = dict[str, float]


def step_metrics(fresh: Rollout, trained: Rollout, updates: list[Update]) -> Metrics:
    """Describe one step: what the policy can do now, and what it was trained on.

    Args:
        fresh: answers of the policy as it stood at the start of the step.
        trained: the rollout it was trained on.
        updates: one entry a mini-batch, in order.

    Returns:
        `reward` of the fresh answers and `reward_trained`, means; `entropy` and `entropy_trained`
        of the sampling distributions, nats. Of d = log(current/behavior) over all mini-batches,
        each measured just before its update: `m2` of the active tokens, `m2_kept` of those of them
        that kept a gradient, `m2_all`, `k3`, `ess_fraction`, `ratio_max`, `top1pct_m2_share`,
        `pareto_k`. `masked_fraction`: tokens with A != 0 whose gradient was dropped, of all;
        `active_fraction`; `gradient_norm`: the largest of the step; `signal_fraction`: answers
        with A != 0. NaN where there is nothing to average.
    """
    batch = trained.batch(np.concatenate([update.current_logp for update in updates]))
    stays = np.concatenate([update.keep for update in updates])
    d, active = batch.log_ratio("current/behavior"), eligible(batch)
    everything = sums(d, trained.keep)
    n = int(everything.n)
    dropped = trained.keep & ~stays & (np.asarray(batch.advantage) != 0)
    return {
        "reward": float(fresh.reward.mean()),
        "reward_trained": float(trained.reward.mean()),
        "entropy": _mean(fresh.entropy, fresh.keep),
        "entropy_trained": _mean(trained.entropy, trained.keep),
        "m2": float(moments.m2(sums(d, active))),
        "m2_kept": float(moments.m2(sums(d, active & stays))),
        "m2_all": float(moments.m2(everything)),
        "k3": float(moments.k3(everything)),
        "ess_fraction": float(moments.ess_fraction(everything)),
        "ratio_max": float(moments.ratio_max(everything)),
        "masked_fraction": float(dropped.sum() / n),
        "active_fraction": float(active.sum() / n),
        "gradient_norm": max(update.gradient_norm for update in updates),
        "signal_fraction": float((trained.advantage != 0).mean()),
        **_tails(d, trained.keep, everything),
    }


def _tails(d: NDArray[np.float64], keep: NDArray[np.bool_], everything: Sums) -> Metrics:
    n = int(everything.n)
    top = largest(np.abs(d), keep, top_count(n)).values
    high = largest(d, keep, tail_length(n) + 1).values
    return {
        "top1pct_m2_share": float(top_share(top, everything.square, n)),
        "pareto_k": float(pareto_k(high, n)),
    }


def _mean(values: NDArray[np.float32], keep: NDArray[np.bool_]) -> float:
    return float(values[keep].mean(dtype=np.float64))
