"""What the report could not compute, and what that would have needed."""

from typing import Any

from m2po_lab.core.batch import RATIOS

TABLE_NEEDS = {
    "active": "advantage",
    "nonzero_advantage": "advantage",
    "by_quadrant": "advantage",
    "by_step": "step, or train_version",
    "by_lag": "version of each token and train_version",
    "by_position": "tokens",
    "by_probability": "behavior_logp",
}
PART_NEEDS = {
    "reach": "version of each token and train_version",
    "attribution": "two log-prob columns of the same tokens",
    "reward": "reward",
    "lengths": "rows with tokens or a response",
    "groups": "group_id, or prompts",
    "entropy": "entropy",
    "signal": "advantage",
    "worst": "two log-prob columns of the same tokens",
}
STATISTIC_NEEDS = {
    "top1pct_m2_share": "a log-ratio other than 0",
    "pareto_k": "25 log-ratios, and different ones among the largest",
    **dict.fromkeys(("m2_low", "ess_low"), "kept tokens in 8 rows"),
}
STATISTICS_OF_NOTHING = "a token in the cell"
FACT_NEEDS = {
    ("lengths", "by_finish_reason"): "finish_reason",
    ("lengths", "by_lag"): "version of each token and train_version",
    ("lengths", "lag_correlation"): "rows of different length and different known lag",
    ("reward", "by_step"): "step, or train_version",
    ("entropy", "by_step"): "step, or train_version",
    ("signal", "by_step"): "step, or train_version",
    ("groups", "constant_reward"): "reward, of two rows of a group",
    ("attribution", "floor_lag0"): "tokens whose version is the trainer's",
    ("attribution", "staleness"): "tokens whose version is the trainer's",
    ("attribution", "in_step"): "proximal and current log-probs, no copies of another column",
}


def not_computable(
    report: dict[str, Any], asked: tuple[str, ...], extra: dict[str, str]
) -> list[dict[str, str]]:
    """List what is null in a report and what it needs.

    Paths are those of the report; a path through a list stands for all of its entries, and the
    need is that of the largest one that lacks the number. An interval is named by its lower end.

    Args:
        report: complete but for this list.
        asked: tables that were asked for ("step", "lag", "position"); others are null by choice.
        extra: further entries, what -> needs.
    """
    found: dict[str, str] = {}
    for name in RATIOS:
        if name not in report["ratios"]:
            found[f"ratios/{name}"] = " and ".join(f"{part}_logp" for part in name.split("/"))
        elif not report["ratios"][name]["all"]["n"]:
            found[f"ratios/{name}"] = "kept tokens on which both log-probs are known"
        else:
            found |= _within(f"ratios/{name}", report["ratios"][name], asked)
    found |= {name: needs for name, needs in PART_NEEDS.items() if report[name] is None}
    for name in ("clip", "budget"):
        if report["sweeps"][name] is None:
            found[f"sweeps/{name}"] = "advantage" if report["ratios"] else "two log-prob columns"
    for (part, name), needs in FACT_NEEDS.items():
        if report[part] is not None and report[part][name] is None:
            found[f"{part}/{name}"] = needs
    judged = [entry for entry in report["objectives"].values() if entry is not None]
    if judged and all(entry["weight_mean"] is None for entry in judged):
        found["objectives weights"] = "an advantage other than 0"
    found |= extra
    return [{"what": what, "needs": needs} for what, needs in found.items()]


def _within(path: str, ratio: dict[str, Any], asked: tuple[str, ...]) -> dict[str, str]:
    """Null tables of one ratio, and null statistics in the others, once a table."""
    optional = {f"by_{name}" for name in ("step", "lag", "position") if name not in asked}
    found = {
        f"{path}/{name}": needs
        for name, needs in TABLE_NEEDS.items()
        if ratio[name] is None and name not in optional
    }
    for name, table in ratio.items():
        for cell in sorted(_cells(table), key=lambda cell: -cell["n"]):
            for statistic, value in cell.items():
                if value is None and not statistic.endswith("_high"):
                    found.setdefault(f"{path}/{name}/{statistic}", _needs(statistic, cell["n"]))
    return found


def _cells(table: Any) -> list[dict[str, Any]]:
    """The STATS in one entry of a ratio: itself, a list of them, or some by name."""
    if table is None:
        return []
    if isinstance(table, list):
        return table
    return [table] if "n" in table else list(table.values())


def _needs(statistic: str, n: int) -> str:
    if not n:
        return STATISTICS_OF_NOTHING
    return STATISTIC_NEEDS.get(statistic, "finite sums: a log-ratio is too large for float64")
