"""Rules about values and rows that cannot be counted."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from m2po_lab.findings.finding import Hit, places
from m2po_lab.findings.names import NAMES
from m2po_lab.findings.view import View
from m2po_lab.integrity.faults import Examples, Fault


def missing_log_probs(view: View) -> Iterator[Hit]:
    """Nothing to take a ratio of."""
    if view.evidence.pairs or not view.evidence.rows.read:
        return
    present = sorted(NAMES[name] for name in view.evidence.columns)
    flags = {entry["format"]: entry.get("missing_flag") for entry in view.report["inputs"]}
    has = f"only {present[0]} log-probs" if present else "no log-probs"
    yield Hit(
        f"The log has {has}, so no ratio can be computed.",
        {"ratio": None, "present": present, "formats": sorted(flags)},
        advice="; ".join(f"{name}: {flag}" for name, flag in sorted(flags.items()) if flag) or None,
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
    """Rows without a kept token, by their mask or because every token was excluded."""
    rows = view.evidence.rows
    if count := rows.empty + rows.emptied:
        why = f" {rows.emptied} of them lost every token to other faults." if rows.emptied else ""
        yield Hit(
            f"{count} of {rows.read} rows keep no token; they are in no denominator.{why}",
            {"ratio": None, "rows": count, "rows_read": rows.read, "emptied": rows.emptied},
        )


def duplicate_rows(view: View) -> Iterator[Hit]:
    """Rows that were read again."""
    rows, twice = view.evidence.rows, view.evidence.keys.repeated
    files = view.evidence.files.repeated
    if rows.duplicate or twice or files:
        late = ""
        if twice or files:
            what = " and ".join(
                f"{n} {name}" for n, name in ((twice, "more rows"), (files, "whole files")) if n
            )
            late = (
                f" {what} are in parts that were analyzed apart and merged: THEY COUNT TWICE in "
                "every number. Analyze the parts together."
            )
        yield Hit(
            f"{rows.duplicate} of {rows.read} rows repeat a row before them and are counted once "
            f"({view.evidence.tokens.duplicate} tokens left out).{late}",
            {
                "ratio": None,
                "rows": rows.duplicate,
                "rows_read": rows.read,
                "tokens": view.evidence.tokens.duplicate,
                "counted_twice": twice,
                "files_counted_twice": files,
            },
        )


def repeated_padding(view: View) -> Iterator[Hit]:
    """Ends of steps that repeat rows, in a log that hardly does so elsewhere."""
    found = view.evidence.repeats
    if found.tail > found.elsewhere:
        yield Hit(
            f"{found.tail} rows at the end of {found.steps} steps repeat earlier ones of their "
            f"step under other ids; elsewhere {found.elsewhere} rows do.",
            {
                "ratio": None,
                "rows": found.tail,
                "steps": found.steps,
                "rows_elsewhere": found.elsewhere,
                "rows_read": view.evidence.rows.read,
            },
        )
