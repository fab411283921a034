"""The first two questions of the report: what was read, and can it be trusted."""

import re
from collections.abc import Iterator, Sequence

from m2po_lab.report.format import count, number, percent, plain
from m2po_lab.report.items import Item, Report, Words
from m2po_lab.report.vocabulary import EXCLUDED_ROWS, EXCLUDED_TOKENS, INTEGRITY_FINDINGS

MOST_NAMES = 8
"""Of what lacks the same column, this many are named; the JSON names all."""
FACTS: dict[str, dict[str, str]] = {
    "reward": {"mean": "mean", "std": "standard deviation", "n": "rows"},
    "lengths": {"mean": "mean", "std": "standard deviation", "high": "longest"},
    "groups": {"n": "number", "rows": "rows", "constant_reward": "with one reward throughout"},
    "entropy": {"mean": "mean"},
}
UNITS = {"entropy": "nats"}
_PLACE = re.compile(r"^(?:objectives/|ratios/(?:[a-z]+/[a-z]+/(?=[a-z_]+$))?)")


def what_was_read(report: Report, by: Sequence[str] = ()) -> Iterator[Item]:
    """Name every input, its format, its size, and which column was taken for what."""
    for source in report["inputs"]:
        files = f", {count(source['files'])} files" if source["files"] != 1 else ""
        yield Words(
            f" ({plain(source['format'])}{files}): "
            f"{count(source['rows'])} rows, {count(source['tokens'])} tokens",
            lead=plain(source["path"]),
        )
        columns = {k: v for k, v in source["columns"].items() if v is not None}
        taken = [k if k == v else f"{k} = {plain(v)}" for k, v in columns.items()]
        if taken:
            yield Words("columns: " + ", ".join(taken), tone="aside")
        for remark in source.get("remarks", ()):
            yield Words(plain(remark), tone="aside")
    yield from _facts(report)


def _facts(report: Report) -> Iterator[Item]:
    """Rewards, lengths, groups and entropy in a line each, as far as the log has them."""
    for name, fields in FACTS.items():
        facts = report[name]
        if not isinstance(facts, dict):
            continue
        known = [(field, facts.get(field)) for field in fields]
        shown = [
            f"{words} {count(value) if isinstance(value, int) else number(value)}"
            for (field, value), words in zip(known, fields.values(), strict=True)
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        known_unit = facts.get("unit") or UNITS.get(name)
        unit = f" ({plain(known_unit)})" if known_unit else ""
        if shown:
            yield Words(f"{', '.join(shown)}{unit}.", lead=f"{name}: ")


def can_it_be_trusted(report: Report, by: Sequence[str] = ()) -> Iterator[Item]:
    """Say what was counted, what was left out and why, which checks fired, what is missing."""
    tokens, rows = report["tokens"], report["rows"]
    yield Words(
        f"Counted in every number: {count(tokens['kept'])} of {count(tokens['logged'])} tokens, "
        f"{count(rows['kept'])} of {count(rows['read'])} rows."
    )
    yield from _excluded("tokens", tokens["excluded"], tokens["logged"], EXCLUDED_TOKENS)
    yield from _excluded("rows", rows["excluded"], rows["read"], EXCLUDED_ROWS)
    fired = [f for f in report["findings"] if f["id"] in INTEGRITY_FINDINGS]
    loud = [f for f in fired if f["severity"] != "info"]
    if not loud:
        yield Words("No check of the log itself raised an error or a warning.")
    for finding in loud:
        lead = f"{finding['severity']} {finding['id']}"
        yield Words(f": {plain(finding['title'])}", lead=lead, tone=finding["severity"])
    yield from _missing(report["not_computable"])


def _missing(entries: list[dict[str, str]]) -> Iterator[Item]:
    """What cannot be computed, gathered by what it needs."""
    by_need: dict[str, list[str]] = {}
    for entry in entries:
        by_need.setdefault(entry["needs"], []).append(_PLACE.sub("", plain(entry["what"])))
    for needs, names in by_need.items():
        more = len(names) - MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        shown = ", ".join(names[:MOST_NAMES])
        yield Words(f"{shown}{rest}.", lead=f"Not computable without {plain(needs)}: ")


def _excluded(
    unit: str, excluded: dict[str, int], total: int, words: dict[str, str]
) -> Iterator[Item]:
    left_out = {name: n for name, n in excluded.items() if n}
    if left_out:
        parts = (
            f"{count(n)} {words.get(name, name)} ({percent(n / total if total else None)})"
            for name, n in left_out.items()
        )
        yield Words(f"Left out, {unit}: " + "; ".join(parts) + ".")
