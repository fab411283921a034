"""Rules about the shape of the log-ratios: tails, outliers, populations, products."""

import math
from collections.abc import Iterator
from typing import Any

from m2po_lab.findings.finding import Hit
from m2po_lab.findings.view import View, share_beyond
from m2po_lab.integrity.pairs import QUADRANTS, TAIL, Pair


def _m2(pair: Pair) -> float:
    return float(pair.squares.sum() / pair.n.sum())


def _tail_tokens(pair: Pair, side: int) -> int:
    return round(share_beyond(pair.histogram[:, side].sum(axis=0), TAIL))


def _low_share(pair: Pair) -> float:
    total = float(pair.squares.sum())
    return float(pair.squares[:, 0].sum()) / total if total > 0 else math.nan


def _is_tail(view: View, pair: Pair, side: int) -> bool:
    limits = view.limits
    return (
        _m2(pair) > limits["drift_m2"]
        and _tail_tokens(pair, side) >= limits["tail_tokens"]
        and pair.tail_rows[side] >= limits["tail_rows"]
    )


def _numbers(view: View, ratio: str, pair: Pair, side: int) -> dict[str, Any]:
    stats = view.statistics(ratio)
    names = ("ess_fraction", "chi2", "k1", "pareto_k", "log_ratio_min", "log_ratio_max")
    return {
        "ratio": ratio,
        "m2": _m2(pair),
        "n": int(pair.n.sum()),
        "share": (_low_share(pair), 1 - _low_share(pair))[side],
        "tail_tokens": _tail_tokens(pair, side),
        "tail_rows": int(pair.tail_rows[side]),
        **{name: stats.get(name) for name in names},
    }


def low_tail(view: View) -> Iterator[Hit]:
    """Mass of d^2 at r < 1."""
    for ratio, pair in view.pairs.items():
        if _is_tail(view, pair, 0) and _low_share(pair) >= view.limits["tail_share"]:
            numbers = _numbers(view, ratio, pair, 0)
            blind = ""
            if numbers["ess_fraction"] is not None and numbers["chi2"] is not None:
                blind = (
                    f" ESS/n is {numbers['ess_fraction']:.2f} and chi2 {numbers['chi2']:.2g}: a "
                    "ratio near 0 adds nothing to sums of r and r^2."
                )
            yield Hit(
                f"M2 of {ratio} is {numbers['m2']:.3g}, {numbers['share']:.1%} of it at r < 1 "
                f"({numbers['tail_tokens']} tokens with d < -.5 in {numbers['tail_rows']} "
                f"rows).{blind}",
                numbers,
            )


def high_tail(view: View) -> Iterator[Hit]:
    """Mass of d^2 at r > 1, or weights without a variance."""
    for ratio, pair in view.pairs.items():
        if not _is_tail(view, pair, 1):
            continue
        numbers = _numbers(view, ratio, pair, 1)
        k = numbers["pareto_k"]
        heavy = k is not None and k > view.limits["pareto_k"] and not _is_cap(view)
        if (heavy and numbers["share"] >= view.limits["heavy_share"]) or numbers[
            "share"
        ] >= view.limits["tail_share"]:
            tail = f", Pareto k-hat {k:.2f}" if k is not None else ""
            yield Hit(
                f"M2 of {ratio} is {numbers['m2']:.3g}, {numbers['share']:.1%} of it at r > 1"
                f"{tail} ({numbers['tail_tokens']} tokens with d > .5 in {numbers['tail_rows']} "
                "rows).",
                numbers,
            )


def _is_cap(view: View) -> bool:
    """Behind clipped weights a tail index means nothing."""
    return view.evidence.weights is not None


def rare_outliers(view: View) -> Iterator[Hit]:
    """Share of M2 in the top 1 % of tokens."""
    limits = view.limits
    for ratio, pair in view.pairs.items():
        stats = view.statistics(ratio)
        share, median = stats.get("top1pct_m2_share"), stats.get("abs_median")
        if share is None or median is None or pair.n.sum() < limits["min_tokens"]:
            continue
        m2 = _m2(pair)
        far = sum(_tail_tokens(pair, side) for side in (0, 1))
        if (
            share >= limits["outlier_share"]
            and median <= limits["outlier_median"]
            and share * m2 >= limits["outlier_m2"]
            and far >= limits["tail_tokens"]
        ):
            yield Hit(
                f"The top 1 % of tokens hold {share:.1%} of M2 ({m2:.3g}) of {ratio}, while the "
                f"median |d| is {median:.2g}; {far} tokens are beyond .5 nats.",
                {
                    "ratio": ratio,
                    "share": share,
                    "median": median,
                    "m2": m2,
                    "n": int(pair.n.sum()),
                    "tail_tokens": far,
                },
            )


def two_populations(view: View) -> Iterator[Hit]:
    """A valley between tokens that agree and tokens that do not."""
    limits = view.limits
    for ratio, pair in view.pairs.items():
        sides = pair.histogram[view.stratum(pair)].sum(axis=0)
        n = int(sides.sum())
        far = [share_beyond(sides[side], TAIL) for side in (0, 1)]
        mid = sum(share_beyond(sides[side], TAIL / 4) for side in (0, 1)) - sum(far)
        near = n - sum(share_beyond(sides[side], TAIL / 8) for side in (0, 1))
        if n < limits["min_tokens"] or sum(far) < 2 * limits["tail_tokens"]:
            continue
        share = sum(far) / n
        if (
            near / n >= limits["exact_share"]
            and limits["apart_low"] <= share <= limits["apart_high"]
            and min(far) >= limits["apart_side"] * sum(far)
            and mid < sum(far)
        ):
            yield Hit(
                f"{ratio}: {near / n:.1%} of the tokens agree within .06 nats, {share:.1%} are "
                f"more than .5 apart ({far[0]:.0f} lower, {far[1]:.0f} higher), few are between.",
                {
                    "ratio": ratio,
                    "n": n,
                    "near_share": near / n,
                    "far_share": share,
                    "lower": round(far[0]),
                    "higher": round(far[1]),
                    "between": round(mid),
                },
            )


def negative_side_drift(view: View) -> Iterator[Hit]:
    """Mass of d^2 by quadrant."""
    limits = view.limits
    at = QUADRANTS.index("A<0,r<1")
    for ratio, pair in view.pairs.items():
        table = pair.quadrants
        total = float(table[:4, 1].sum())
        n, square, tail, rows = table[at].tolist()
        if total <= 0 or n < 1:
            continue
        share, m2 = square / total, square / n
        if (
            share >= limits["negative_share"]
            and total / table[:4, 0].sum() > limits["drift_m2"]
            and tail >= limits["tail_tokens"]
            and rows >= limits["tail_rows"]
        ):
            yield Hit(
                f"{share:.1%} of the drift of {ratio} at A != 0 is in (A<0, r<1): M2 {m2:.3g} over "
                f"{n:.0f} tokens, {tail:.0f} of them beyond .5 nats in {rows:.0f} rows.",
                {
                    "ratio": ratio,
                    "share": share,
                    "m2": m2,
                    "n": int(n),
                    "tail_tokens": int(tail),
                    "tail_rows": int(rows),
                    "m2_by_quadrant": {
                        q: (s / k if k else None)
                        for q, (k, s, _, _) in zip(QUADRANTS, table.tolist(), strict=True)
                    },
                },
            )


def sequence_product(view: View) -> Iterator[Hit]:
    """Rows whose d add up beyond use."""
    limits = view.limits
    for ratio, pair in view.pairs.items():
        rows, over, under = pair.products.tolist()
        m2 = _m2(pair)
        if m2 > limits["drift_m2"] or over + under < limits["product_rows"]:
            continue
        if over + under >= limits["product_share"] * rows:
            product = (view.report["ratios"].get(ratio) or {}).get("sequence", {}).get(
                "product"
            ) or {}
            yield Hit(
                f"{ratio}: M2 of tokens is {m2:.2g}, but the product over the sequence is beyond "
                f"e^8 in {over} rows and below e^-8 in {under}, of {rows}.",
                {
                    "ratio": ratio,
                    "m2": m2,
                    "rows": rows,
                    "over": over,
                    "under": under,
                    "sequence_ess_fraction": product.get("ess_fraction"),
                    "log_product_min": product.get("log_ratio_min"),
                    "log_product_max": product.get("log_ratio_max"),
                },
            )


def over_budget(view: View) -> Iterator[Hit]:
    """M2 of active tokens against the budget."""
    budget = view.settings.budget
    for ratio in view.pairs:
        active = view.statistics(ratio, "active")
        m2 = active.get("m2")
        few = active.get("n", 0) < view.limits["min_tokens"]
        if m2 is None or m2 <= budget or few or active.get("rows", 0) < view.limits["min_rows"]:
            continue
        numbers = {"ratio": ratio, "m2": m2, "budget": budget, "n": active["n"]}
        tail = ""
        objectives = view.report.get("objectives") or {}
        if ratio == view.report.get("primary") and objectives.get("m2po") and objectives.get("ppo"):
            numbers["m2po_masked_fraction"] = masked = objectives["m2po"]["masked_fraction"]
            numbers["ppo_zero_gradient_fraction"] = cut = objectives["ppo"][
                "zero_gradient_fraction"
            ]
            if masked is not None and cut is not None:
                tail = f" M2PO would mask {masked:.2%} of the tokens, the clip {cut:.2%}."
        yield Hit(
            f"M2 of the {active['n']} active tokens of {ratio} is {m2:.3g}, above the budget of "
            f"{budget:g}.{tail}",
            numbers,
        )
