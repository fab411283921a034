"""Report dictionaries made by hand, in the shape CONTRACT fixes, for tests of the report layer."""

from typing import Any

STATS: dict[str, Any] = {
    "n": 502, "rows": 128, "mean": -0.152, "m2": 1.0265, "k1": 0.152, "k2": 0.51325, "k3": 0.126,
    "chi2": -0.000213, "ess_fraction": 0.949, "ratio_mean": 0.974, "ratio_max": 2.31,
    "log_ratio_min": -10.6796, "log_ratio_max": 0.8372, "abs_mean": 0.1801, "abs_median": 0.00041,
    "abs_p99": 7.31, "top1pct_m2_share": 0.9312, "pareto_k": -0.31, "m2_low": 0.41, "m2_high": 1.72,
    "ess_low": 0.91, "ess_high": 0.98,
}  # fmt: skip
QUADRANTS = ("A>0,r>1", "A>0,r<=1", "A<0,r<1", "A<0,r>=1", "A=0")


def stats(**changes: Any) -> dict[str, Any]:
    """STATS with some entries changed."""
    return {**STATS, **changes}


def nothing() -> dict[str, Any]:
    """STATS of an empty set of tokens: null everywhere but in the counts."""
    return {name: 0 if name in ("n", "rows") else None for name in STATS}


def ratio() -> dict[str, Any]:
    """One ratio with every breakdown filled."""
    return {
        "all": stats(),
        "active": stats(n=88, rows=31, m2=3.1, chi2=0.3),
        "nonzero_advantage": stats(n=214, rows=60, m2=2.2),
        "by_quadrant": {q: stats(n=100 + i, m2=0.1 * i) for i, q in enumerate(QUADRANTS)},
        "by_step": [{"step": i, **stats(n=60 + i, m2=0.01 * (i % 17))} for i in range(40)],
        "by_lag": [{"lag": i, **stats(m2=(2.782e-6, 0.1316, 0.4583, 0.8555)[i])} for i in range(4)],
        "by_position": [
            {"low": low, "high": high, **stats()} for low, high in ((0, 0), (1, 1), (2, 3), (4, 7))
        ],
        "by_probability": [
            {"low": low, "high": high, **stats()}
            for low, high in ((0, 1e-4), (1e-4, 1e-3), (0.99, 1))
        ],
        "sequence": {"product": stats(n=128), "geometric": stats(n=128, m2=0.04)},
    }


def finding(**changes: Any) -> dict[str, Any]:
    """One finding."""
    base = {
        "id": "low-tail",
        "severity": "warning",
        "title": "The lower tail dominates, and ESS cannot see it",
        "message": "M2 is 1.027 while ESS/n is .949: nearly all of the drift is r -> 0.",
        "evidence": {"ratio": "current/behavior", "m2": 1.0265, "steps": [1, 2, 3, 4, 5, 6]},
        "advice": "Watch M2 and min d beside ESS; lower the learning rate or shorten the queue.",
        "source": "arXiv 2510.01161",
    }
    return {**base, **changes}


def lost(fraction: float) -> dict[str, Any]:
    """Shares of two bins of probability and of entropy that an objective drops."""
    return {
        "lost_by_probability": [
            {"low": 0.0, "high": 0.5, "n": 40, "fraction": 3 * fraction},
            {"low": 0.5, "high": 1.0, "n": 462, "fraction": fraction},
        ],
        "lost_by_entropy": [
            {"low": 0.0, "high": 0.5, "n": 500, "fraction": fraction},
            {"low": 0.5, "high": None, "n": 2, "fraction": 0.5},
        ],
    }


def neighbour(position: int, **changes: Any) -> dict[str, Any]:
    """A token of the context of a worst one."""
    base = {
        "position": position, "token_id": 100 + position, "text": f" t{position}",
        "log_ratio": -0.1, "advantage": 1.0, "keep": True,
    }  # fmt: skip
    return {**base, **changes}


def worst() -> dict[str, Any]:
    """A worst token among its neighbours, one of each kind."""
    return {
        "row_id": "step0/row1",
        "step": 3,
        "mini_batch": None,
        "lag": 2,
        "position": 1,
        "log_ratio": -10.68,
        "behavior_probability": 0.98,
        "current_probability": 2e-5,
        "advantage": -1.0,
        "token_id": 101,
        "text": " t1",
        "response": "t0 t1 t2 t3",
        "response_start": 7,
        "response_characters": 40,
        "response_at": [2, 5],
        "context": [
            neighbour(0),
            neighbour(1, log_ratio=-10.68, advantage=-1.0, keep=False),
            neighbour(2, log_ratio=0.1, text=None),
            neighbour(3, keep=None),
        ],
    }


def full() -> dict[str, Any]:
    """A report in which everything is computable."""
    return {
        "schema": "m2po-lab/report/1",
        "version": "0.1.0",
        "partial": False,
        "inputs": [
            {
                "path": "trl_grpo_bf16.jsonl",
                "format": "jsonl",
                "files": 1,
                "rows": 128,
                "tokens": 502,
                "columns": {
                    "behavior": "rollout_log_probs",
                    "current": "trainer_log_probs",
                    "proximal": None,
                    "advantage": "advantage_or_reward",
                },
            }
        ],
        "tokens": {
            "logged": 510,
            "kept": 502,
            "excluded": {
                "masked": 0,
                "non_finite": 8,
                "sentinel": 0,
                "positive": 0,
                "zero_filled": 0,
                "unaligned": 0,
            },
        },
        "rows": {
            "read": 130,
            "kept": 128,
            "excluded": {"empty": 2, "duplicate": 0, "bad": 0, "unaligned": 0},
        },
        "primary": "current/behavior",
        "ratios": {"current/behavior": ratio(), "current/proximal": ratio()},
        "objectives": {
            "ppo": {
                "params": {"eps_low": 0.2, "eps_high": 0.2},
                "zero_gradient_fraction": 0.0179,
                "binding_fraction_positive": 0.002,
                "binding_fraction_negative": 0.041,
                "weight_mean": 0.98,
                "weight_ess_fraction": 0.96,
                "mass_kept": 0.93,
                "variance_ratio": 0.83,
                **lost(0.03),
            },
            "m2po": {
                "params": {"budget": 0.04},
                "masked_fraction": 0.0139,
                "masked": 7,
                "active": 88,
                "threshold": 1.74,
                "m2_before": 3.1,
                "m2_after": 0.0391,
                "scope": "step",
                "masked_low": 6,
                "masked_high": 8,
                **lost(0.02),
            },
            "clip_cov": None,
        },
        "overlap": {
            "objectives": ["ppo", "m2po"],
            "dropped": [9, 7],
            "jaccard": [[1.0, 0.6], [0.6, 1.0]],
        },
        "curves": {
            "log_ratio": {
                "ratio": "current/behavior",
                "edges": [-1.0, -0.1, 0.1, 1.0],
                "counts": {"A>0": [1, 9, 3], "A<0": [7, 8, 0], "A=0 or unknown": [0, 90, 2]},
            },
            "probability": {
                "ratio": "current/behavior",
                "edges": [0.0, 0.5, 1.0],
                "exact": True,
                "cells": [[0, 0, 4], [0, 1, 1], [1, 1, 90]],
            },
        },
        "sweeps": {
            "clip": [
                {"eps": e, "fraction": f} for e, f in ((0.05, 0.04), (0.2, 0.018), (0.5, 0.01))
            ],
            "budget": [
                {"budget": b, "masked_fraction": f} for b, f in ((0.01, 0.02), (0.04, 0.0139))
            ],
        },
        "reach": [
            {
                "objective": "ppo",
                "criterion": "drops 1 % of active tokens",
                "lag": 1.3,
                "low": 1.1,
                "high": 1.6,
            },
            {
                "objective": None,
                "criterion": "ESS below .5",
                "lag": None,
                "low": None,
                "high": None,
            },
        ],
        "attribution": {
            "floor_lag0": 0.0016,
            "staleness": 1.02,
            "in_step": None,
            "separable": True,
        },
        "reward": {
            "mean": 0.53,
            "n": 128,
            "by_step": [{"step": i, "n": 3, "mean": 0.9 - 0.02 * i} for i in range(40)],
        },
        "lengths": {"mean": 3.9},
        "groups": None,
        "entropy": None,
        "worst": [worst()],
        "metrics": [
            {
                "name": name,
                "framework": "trl-metrics",
                "source": "log_history.json",
                "n": 3,
                "first_step": 1,
                "last_step": 3,
                "first": 0.9,
                "last": 0.1,
                "mean": 0.5,
                "low": 0.1,
                "high": 0.9,
                "trend": -1.0,
                "non_finite": 0,
                "step_offset": 1,
                "shared_steps": 3,
                "points": [[1, 0.9], [2, None], [3, 0.1]],
            }
            for name in ("reward", "entropy", "entropy/$x_{^$<b>")
        ],
        "findings": [
            finding(severity="info", id="over-budget"),
            finding(),
            finding(severity="error", id="non-finite", title="8 tokens are NaN"),
        ],
        "not_computable": [{"what": "entropy by step", "needs": "an entropy column"}],
    }


def bare() -> dict[str, Any]:
    """A report of a log without log-probs: hardly anything is computable."""
    report = full()
    report.update(
        primary=None,
        ratios={},
        objectives={},
        sweeps=None,
        reach=None,
        attribution=None,
        overlap=None,
        curves=None,
        worst=None,
        findings=[],
        partial=True,
        not_computable=[
            {"what": "every ratio", "needs": "calculate_log_probs: true in verl's rollout"}
        ],
    )
    return report
