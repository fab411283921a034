"""Rules about the log itself: values, rows, alignment, precision."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from m2po_lab.core.batch import RATIOS
from m2po_lab.findings.finding import Hit, places
from m2po_lab.findings.flags import flag_for
from m2po_lab.findings.view import View
from m2po_lab.integrity.columns import Grid
from m2po_lab.integrity.faults import Examples, Fault
from m2po_lab.integrity.shifts import SHIFTS

NAMES = {"behavior_logp": "behavior", "proximal_logp": "proximal", "current_logp": "current"}
"""Column -> its name in the report."""
WHOSE = {name: f"a {name} log-prob" for name in NAMES.values()} | {"every": "every log-prob"}


def shift_by_one(view: View) -> Iterator[Hit]:
    """Alignment of every pair of columns."""
    for ratio, reason in view.shifted.items():
        shift = view.evidence.shifts[ratio]
        correlations = dict(
            zip((f"{s:+d}" if s else "0" for s in SHIFTS), shift.correlations, strict=True)
        )
        shown = ", ".join(f"{r:.2f} at {s}" for s, r in correlations.items())
        votes = {"rows": int(shift.votes[[0, 2]].sum()), "rows_asked": int(shift.votes[3])}
        yield Hit(
            f"{ratio} needs {reason}. Correlations: {shown}; {votes['rows']} of "
            f"{votes['rows_asked']} rows that can tell are shifted.",
            {"ratio": ratio, "correlation": correlations, "pairs": int(shift.sums[1, 0]), **votes},
        )


def mask_shifted(view: View) -> Iterator[Hit]:
    """First and last kept tokens against those between."""
    edges = view.evidence.edges
    if edges is None or edges.rows < view.limits["min_rows"]:
        return
    columns = {NAMES[name]: counts for name, counts in edges.impossible.items()}
    if len(columns) > 1:
        columns["every"] = edges.blank
    explained = {n for ratio in view.shifted for n in ratio.split("/")}
    for at, place in enumerate(("first", "last")):
        for name, counts in columns.items():
            if name not in explained and _at_edge(view, counts, at):
                yield Hit(
                    f"{counts[at]} of {edges.rows} rows have a {name} log-prob that is an exact "
                    f"0.0 or impossible at their {place} kept token; {counts[2]} of "
                    f"{edges.inside} tokens between do.",
                    {"ratio": None, "column": name, **_edge_numbers(view, counts, at, place)},
                )
                break
        else:
            yield from _edge_disagreement(view, at, place)


def _edge_disagreement(view: View, at: int, place: str) -> Iterator[Hit]:
    for ratio, counts in view.evidence.edges.disagree.items() if view.evidence.edges else ():
        if ratio not in view.shifted and _at_edge(view, counts, at):
            yield Hit(
                f"{ratio}: the columns differ by more than .5 nats at the {place} kept token of "
                f"{counts[at]} rows, but rarely between.",
                {"ratio": ratio, "column": None, **_edge_numbers(view, counts, at, place)},
            )
            return


def _at_edge(view: View, counts: np.ndarray[Any, Any], at: int) -> bool:
    edges, limits = view.evidence.edges, view.limits
    assert edges is not None
    few_inside = counts[2] <= limits["edge_inside_share"] * edges.inside
    return bool(counts[at] >= limits["edge_share"] * edges.rows and few_inside)


def _edge_numbers(view: View, counts: Any, at: int, place: str) -> dict[str, Any]:
    edges = view.evidence.edges
    assert edges is not None
    numbers = {"rows": int(counts[at]), "rows_asked": edges.rows, "inside": int(counts[2])}
    return {"position": place, **numbers, "inside_asked": edges.inside}


def length_mismatch(view: View) -> Iterator[Hit]:
    """Columns that do not fit their tokens, by side."""
    table = view.evidence.lengths
    if table:
        parts = [f"{NAMES.get(c, c)}: {n} rows {side}" for (c, side), n in sorted(table.items())]
        rows = view.evidence.rows.unaligned
        yield Hit(
            f"Columns do not fit the tokens of their rows ({'; '.join(parts)}). {rows} rows with "
            f"{view.evidence.tokens.unaligned} tokens are left out.",
            {
                "ratio": None,
                "rows": rows,
                "tokens": view.evidence.tokens.unaligned,
                "columns": {
                    f"{NAMES.get(c, c)} {side}": n for (c, side), n in sorted(table.items())
                },
            },
        )


def retokenised(view: View) -> Iterator[Hit]:
    """Id columns that disagree."""
    if view.evidence.retokenised:
        rows = view.evidence.retokenised
        yield Hit(
            f"In {rows} of {view.evidence.rows.read} rows two id columns hold other tokens.",
            {"ratio": None, "rows": rows, "rows_read": view.evidence.rows.read},
        )


def missing_log_probs(view: View) -> Iterator[Hit]:
    """Nothing to take a ratio of."""
    if view.evidence.pairs or not view.evidence.rows.read:
        return
    present = sorted(NAMES[name] for name in view.evidence.columns)
    formats = sorted({entry["format"] for entry in view.report["inputs"]})
    has = f"only {present[0]} log-probs" if present else "no log-probs"
    yield Hit(
        f"The log has {has}, so no ratio can be computed.",
        {"ratio": None, "present": present, "formats": formats},
        advice="; ".join(dict.fromkeys(flag_for(name) for name in formats)) or None,
    )


def _faults(kind: str, what: str) -> Callable[[View], Iterator[Hit]]:
    """Rule about one kind of excluded value."""

    def rule(view: View) -> Iterator[Hit]:
        found = {key[1:]: f for key, f in view.evidence.faults.items() if key[0] == kind}
        if not found:
            return
        tokens = vars(view.evidence.tokens)[kind]
        parts = [
            f"{NAMES.get(column, column)}{f' {sort}' if sort else ''} {fault.tokens}"
            for (column, sort), fault in sorted(found.items())
        ]
        yield Hit(
            f"{tokens} kept tokens {what} ({', '.join(parts)}); they are excluded.",
            {
                "ratio": None,
                "tokens": tokens,
                "share": tokens / max(view.evidence.tokens.kept + tokens, 1),
                "by_column": {
                    f"{NAMES.get(c, c)}{f' {sort}' if sort else ''}": f.tokens
                    for (c, sort), f in sorted(found.items())
                },
                "rows": view.evidence.fault_rows[kind],
                "positions": _positions(found),
                "examples": _examples(found),
            },
        )

    return rule


def _positions(found: Mapping[tuple[str, str], Fault]) -> dict[str, int]:
    """Counts by position bin, those that are not 0."""
    total = np.sum([fault.positions for fault in found.values()], axis=0)
    names = ["0", "1", *(f"{2**k}-{2 ** (k + 1) - 1}" for k in range(1, total.size - 1))]
    return {name: int(n) for name, n in zip(names, total, strict=True) if n}


def _examples(found: Mapping[tuple[str, str], Fault]) -> list[dict[str, Any]]:
    return places(sum((fault.examples for fault in found.values()), Examples()))


non_finite = _faults("non_finite", "hold no number")
sentinel_value = _faults("sentinel", "hold a fill value")
positive_log_probs = _faults("positive", "have a log-prob above 0")
zero_filled = _faults("zero_filled", "have a behavior log-prob of exactly 0.0 in runs")


def empty_rows(view: View) -> Iterator[Hit]:
    """Rows without a kept token."""
    rows = view.evidence.rows
    if rows.empty:
        yield Hit(
            f"{rows.empty} of {rows.read} rows keep no token; they are in no denominator.",
            {"ratio": None, "rows": rows.empty, "rows_read": rows.read},
        )


def duplicate_rows(view: View) -> Iterator[Hit]:
    """Rows that were read again."""
    rows, twice = view.evidence.rows, view.evidence.keys.repeated
    if rows.duplicate or twice:
        late = f" {twice} more were read by different workers and count twice." if twice else ""
        yield Hit(
            f"{rows.duplicate} of {rows.read} rows repeat a row before them and are counted once "
            f"({view.evidence.tokens.duplicate} tokens left out).{late}",
            {
                "ratio": None,
                "rows": rows.duplicate,
                "rows_read": rows.read,
                "tokens": view.evidence.tokens.duplicate,
                "counted_twice": twice,
            },
        )


def repeated_padding(view: View) -> Iterator[Hit]:
    """Ends of batches that repeat their beginning."""
    if view.evidence.repeated:
        rows = view.evidence.repeated
        yield Hit(
            f"{rows} rows at the end of a step repeat earlier ones of it under other ids.",
            {"ratio": None, "rows": rows, "rows_read": view.evidence.rows.read},
        )


def _identical(view: View, ratios: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for ratio in ratios:
        pair = view.pairs.get(ratio)
        if pair is None or pair.nonzero < view.limits["equal_tokens"]:
            continue
        if pair.equal >= view.limits["equal_share"] * pair.nonzero:
            yield ratio, {"ratio": ratio, "tokens": pair.nonzero, "equal": pair.equal}


def ratio_identically_one(view: View) -> Iterator[Hit]:
    """The current policy's column is a copy."""
    for ratio, numbers in _identical(view, ("current/behavior", "current/proximal")):
        yield Hit(
            f"{ratio} is 1 to the last bit on {numbers['equal']} of {numbers['tokens']} tokens: "
            "clip fractions are 0 by construction.",
            numbers,
        )


def bypass_mode(view: View) -> Iterator[Hit]:
    """The proximal policy's column is a copy of the behavior one."""
    for ratio, numbers in _identical(view, ("proximal/behavior",)):
        yield Hit(
            f"{ratio} is 1 to the last bit on {numbers['equal']} of {numbers['tokens']} tokens.",
            numbers,
        )


def low_precision_log(view: View) -> Iterator[Hit]:
    """Number grids of the columns."""
    for column, grid in view.evidence.columns.items():
        kind = _grid_kind(view, grid)
        if kind:
            name, used = NAMES[column], vars(grid)[kind]
            yield Hit(
                f"{used} of {grid.n} {name} log-probs are exact in {kind}.",
                {
                    "ratio": next((r for r, pair in RATIOS.items() if column in pair), None),
                    "column": name,
                    "grid": kind,
                    "tokens": grid.n,
                    "on_grid": used,
                },
            )


def _grid_kind(view: View, grid: Grid) -> str | None:
    if grid.n < view.limits["equal_tokens"]:
        return None
    wanted = view.limits["grid_share"] * grid.n
    return next((k for k in ("bfloat16", "float16") if vars(grid)[k] >= wanted), None)


def truncated_weights(view: View) -> Iterator[Hit]:
    """Pile-ups among logged weights."""
    weights = view.evidence.weights
    if weights is None:
        return
    least = max(view.limits["cap_tokens"], view.limits["cap_share"] * weights.n)
    for peak, sign, side in ((weights.top, 1, "largest"), (weights.bottom, -1, "smallest")):
        if peak is None or peak.count < least:
            continue
        cap = sign * peak.value
        if cap > 1 if sign > 0 else 0 <= cap < 1:
            yield Hit(
                f"{peak.count} of {weights.n} logged weights are exactly {cap:g}, the {side} "
                "there is: they were clipped before they were logged.",
                {
                    "ratio": next(iter(view.pairs), None),
                    "cap": cap,
                    "side": side,
                    "tokens": peak.count,
                    "n": weights.n,
                },
            )
