"""The words of the report: one line of explanation for each statistic, token set and check."""

from typing import Any

Stats = dict[str, Any]

STATISTIC_LINES: tuple[tuple[str, str, str], ...] = (
    ("n", "n", "tokens; responses under row"),
    ("m2", "M2", "mean of d²"),
    ("m2_low", "  low", "95 % interval of M2,"),
    ("m2_high", "  high", "bootstrap over rows"),
    ("k1", "k1", "KL estimate: -mean of d"),
    ("k3", "k3", "KL estimate: mean e^d - 1 - d"),
    ("ess_fraction", "ESS/n", "weights' worth; blind to r->0"),
    ("chi2", "chi2", "mean r² - 1; blind to r->0 too"),
    ("ratio_mean", "mean r", "1 where the supports agree"),
    ("log_ratio_min", "min d", "lower tail: r -> 0"),
    ("log_ratio_max", "max d", "upper tail: the largest weight"),
    ("abs_median", "median |d|", "the typical token"),
    ("top1pct_m2_share", "top 1 %", "share of M2 in 1 % of tokens"),
    ("pareto_k", "Pareto k", "tail of r; unsafe above .7"),
)
"""Field of STATS, its short name, and what it says."""

SUBSETS: tuple[tuple[str, str], ...] = (
    ("all", "all"),
    ("active", "active"),
    ("nonzero_advantage", "A != 0"),
)
"""Token sets of a ratio: field, column head."""

QUADRANTS: tuple[tuple[str, str], ...] = (
    ("A>0,r>1", "an upper clip acts here"),
    ("A>0,r<=1", "on the way back: no clip"),
    ("A<0,r<1", "a lower clip acts here"),
    ("A<0,r>=1", "on the way back: no clip"),
    ("A=0", "no gradient at any r"),
)

EXCLUDED_TOKENS: dict[str, str] = {
    "masked": "outside the loss mask",
    "non_finite": "NaN, infinity or null",
    "sentinel": "sentinel such as -9999",
    "positive": "log-prob above 0",
    "zero_filled": "filled with 0.0",
    "unaligned": "in rows whose columns differ in length",
}

EXCLUDED_ROWS: dict[str, str] = {
    "empty": "without a counted token",
    "duplicate": "duplicates",
    "bad": "unreadable",
    "unaligned": "columns of different length",
}

INTEGRITY_FINDINGS: frozenset[str] = frozenset(
    {
        "shift-by-one",
        "mask-shifted",
        "length-mismatch",
        "retokenised",
        "missing-log-probs",
        "zero-filled-log-probs",
        "positive-log-probs",
        "sentinel-value",
        "non-finite",
        "duplicate-rows",
        "repeated-padding",
        "ratio-identically-one",
        "bypass-mode",
        "low-precision-log",
        "negative-lag",
        "temperature-mismatch",
        "truncated-support",
        "truncated-weights",
        "confident-disagreement",
        "groups-broken",
    }
)
"""Finding ids that speak about the log itself, not about the run."""

SEVERITIES = ("error", "warning", "info")
