"""STATISTICS: the literal table of every statistic, read by report, notebooks, docs and tests."""

from collections.abc import Callable
from dataclasses import dataclass

from m2po_lab.core import moments
from m2po_lab.core.arrays import Array
from m2po_lab.core.moments import Sums

SOURCE_M2PO = "M2PO, arXiv 2510.01161"
SOURCE_KL = "Schulman, Approximating KL divergence, 2020"
SOURCE_ESS = "Kong, A note on importance sampling using standardized weights, 1992"
SOURCE_PSIS = "Vehtari, Simpson, Gelman, Yao, Gabry, arXiv 1507.02646"


@dataclass(frozen=True)
class Statistic:
    """One statistic of a set of log-ratios d = log(numerator policy / denominator policy).

    Attributes:
        name: key in the JSON report.
        title: how a reader would call it.
        formula: in terms of d, over kept tokens (or sequences).
        unit: nats, nats^2, ratio, fraction or shape.
        low: smallest value it can take.
        high: largest value it can take.
        on_policy: the value when both policies agree; NaN where it has none then.
        blind_to: what it cannot see, so that it is never shown alone; empty if nothing.
        source: paper or text that defines it.
        finish: function of `Sums`; None where sums are not enough (tails, histogram, bootstrap).
    """

    name: str
    title: str
    formula: str
    unit: str
    low: float
    high: float
    on_policy: float
    blind_to: str
    source: str
    finish: Callable[[Sums], Array] | None


_INF = float("inf")
_NONE = ""
_LOW_TAIL = "ratios that fall to 0 (tokens the numerator policy gave up)"

STATISTICS: dict[str, Statistic] = {
    s.name: s
    for s in (
        Statistic(
            "mean",
            "mean log-ratio",
            "E[d]",
            "nats",
            -_INF,
            _INF,
            0,
            "cancellation of both signs",
            SOURCE_KL,
            moments.mean,
        ),
        Statistic(
            "m2",
            "second moment of the log-ratio",
            "E[d^2]",
            "nats^2",
            0,
            _INF,
            0,
            _NONE,
            SOURCE_M2PO,
            moments.m2,
        ),
        Statistic(
            "k1",
            "k1 estimate of KL(denominator || numerator)",
            "-E[d]",
            "nats",
            -_INF,
            _INF,
            0,
            "cancellation of both signs",
            SOURCE_KL,
            moments.k1,
        ),
        Statistic(
            "k2",
            "k2 estimate of KL",
            "E[d^2] / 2",
            "nats",
            0,
            _INF,
            0,
            _NONE,
            SOURCE_KL,
            moments.k2,
        ),
        Statistic(
            "k3",
            "k3 estimate of KL(denominator || numerator)",
            "E[e^d - 1 - d]",
            "nats",
            0,
            _INF,
            0,
            _NONE,
            SOURCE_KL,
            moments.k3,
        ),
        Statistic(
            "chi2",
            "chi-square divergence",
            "E[e^(2d)] - 1",
            "ratio",
            -1,
            _INF,
            0,
            _LOW_TAIL,
            SOURCE_M2PO,
            moments.chi2,
        ),
        Statistic(
            "ess_fraction",
            "effective sample size over n",
            "(sum e^d)^2 / (n sum e^(2d))",
            "fraction",
            0,
            1,
            1,
            _LOW_TAIL,
            SOURCE_ESS,
            moments.ess_fraction,
        ),
        Statistic(
            "ratio_mean",
            "mean importance weight",
            "E[e^d]",
            "ratio",
            0,
            _INF,
            1,
            _LOW_TAIL,
            SOURCE_ESS,
            moments.ratio_mean,
        ),
        Statistic(
            "ratio_max",
            "largest importance weight",
            "max e^d",
            "ratio",
            0,
            _INF,
            1,
            _LOW_TAIL,
            SOURCE_ESS,
            moments.ratio_max,
        ),
        Statistic(
            "log_ratio_min",
            "smallest log-ratio",
            "min d",
            "nats",
            -_INF,
            _INF,
            0,
            "how many tokens are that low",
            SOURCE_M2PO,
            moments.log_ratio_min,
        ),
        Statistic(
            "log_ratio_max",
            "largest log-ratio",
            "max d",
            "nats",
            -_INF,
            _INF,
            0,
            "how many tokens are that high",
            SOURCE_M2PO,
            moments.log_ratio_max,
        ),
        Statistic(
            "abs_mean",
            "mean absolute log-ratio",
            "E|d|",
            "nats",
            0,
            _INF,
            0,
            "which tokens carry it",
            SOURCE_M2PO,
            moments.abs_mean,
        ),
        Statistic(
            "abs_median",
            "median absolute log-ratio",
            "median |d|",
            "nats",
            0,
            _INF,
            0,
            "half of the tokens",
            SOURCE_M2PO,
            None,
        ),
        Statistic(
            "abs_p99",
            "99th percentile of the absolute log-ratio",
            "quantile(|d|, .99)",
            "nats",
            0,
            _INF,
            0,
            "the top 1 % of the tokens",
            SOURCE_M2PO,
            None,
        ),
        Statistic(
            "top1pct_m2_share",
            "share of M2 in the top 1 % of tokens",
            "sum of d^2 over the ceil(.01 n) largest |d| / sum d^2",
            "fraction",
            0,
            1,
            float("nan"),
            "how large M2 is",
            SOURCE_M2PO,
            None,
        ),
        Statistic(
            "pareto_k",
            "Pareto k-hat of the upper tail of the weights",
            "shape of a generalised Pareto fit to the floor(min(n/5, 3 sqrt n)) largest e^d",
            "shape",
            -_INF,
            _INF,
            float("nan"),
            _LOW_TAIL,
            SOURCE_PSIS,
            None,
        ),
    )
}
"""Name in the JSON report -> statistic, in the order of the report."""
