"""What was read, and can it be trusted."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from m2po_lab.report.format import count, number, percent, plain
from m2po_lab.report.items import Item, Plot, Report, View, Words
from m2po_lab.report.vocabulary import EXCLUDED_ROWS, EXCLUDED_TOKENS, INTEGRITY_FINDINGS

MOST_REASONS = 4
MOST_NAMES = 8
"""Of what lacks the same column, this many are named; the JSON names all."""
NAMES = {
    "reward": "rewards of rows",
    "entropy": "entropy of tokens",
    "lengths/by_finish_reason": "lengths by finish reason",
    "groups/constant_reward": "groups with equal rewards",
}
"""What could not be computed, in words where its name in the JSON is none."""
_PLACE = re.compile(r"^(?:objectives/|ratios/(?:[a-z]+/[a-z]+/(?=[a-z_]+$))?)")
_CELL = re.compile(r"/by_[a-z]+/")
"""A statistic within a breakdown."""
Facts = dict[str, Any]


def what_was_read(report: Report, view: View) -> Iterator[Item]:
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
        yield from remarks_on(source)
    for name, say in FACTS.items():
        facts = report[name]
        sentence = say(facts) if isinstance(facts, dict) else ""
        if sentence:
            yield Words(sentence, lead=f"{name}: ")
    if report["primary"] is None:
        yield Plot("facts")


def remarks_on(source: dict[str, Any], about: str = "") -> Iterator[Item]:
    """Give what the reader had to say on an input, of it only what mentions `about`."""
    for remark in source.get("remarks", ()):
        if about in remark:
            yield Words(plain(remark) + ("" if remark.endswith(".") else "."), lead="Note: ")


def _reward(facts: Facts) -> str:
    spread = _known(facts, "std", "standard deviation")
    mean = f"mean {number(facts.get('mean'))}{spread}{_known(facts, 'n', 'of', ' rows')}"
    return f"{mean}{_course(facts)}."


def _lengths(facts: Facts) -> str:
    unit = f" {plain(facts['unit'])}" if facts.get("unit") else ""
    mean = f"mean {number(facts.get('mean'))}{unit}"
    spread = f"{_known(facts, 'std', 'standard deviation')}{_known(facts, 'high', 'longest')}"
    reasons = sorted((facts.get("by_finish_reason") or {}).items(), key=lambda pair: -pair[1]["n"])
    ends = ", ".join(
        f"{plain(reason, limit=24)} {count(ended['n'])} rows of mean {number(ended['mean'])}"
        for reason, ended in reasons[:MOST_REASONS]
    )
    return f"{mean}{spread}{'; by finish reason: ' if ends else ''}{ends}."


def _groups(facts: Facts) -> str:
    """How many groups of how many rows, and how many of them can teach nothing."""
    sizes = sorted(map(int, facts.get("sizes") or {}))
    text = count(facts["n"])
    if sizes:
        rows = count(sizes[0]) + (f" to {count(sizes[-1])}" if len(sizes) > 1 else "")
        text += f", each of {rows} row{'' if rows == '1' else 's'}"
    text += f" with the same {'prompt' if facts.get('by') == 'prompt' else 'group id'}"
    part = facts.get("sampled", 1.0)
    text += f" (a sample, {percent(part)} of the groups)" if part < 1 else ""
    constant = facts.get("constant_reward")
    if constant is None:
        return f"{text}."
    if constant == 0:
        return f"{text}; in none of them are all rewards equal."
    return f"{text}; in {count(constant)} of them all rewards are equal, which teaches nothing."


def _entropy(facts: Facts) -> str:
    return f"mean {number(facts.get('mean'))} nats{_course(facts)}."


def _course(facts: Facts) -> str:
    """Where a mean started, where it ended, and between which values."""
    steps = [line for line in facts.get("by_step") or [] if line["mean"] is not None]
    if len(steps) < 2:
        return ""
    first, last = (f"{number(s['mean'], 3)} at step {s['step']}" for s in (steps[0], steps[-1]))
    means = [line["mean"] for line in steps]
    return f"; {first}, {last}, between {number(min(means), 3)} and {number(max(means), 3)}"


def _known(facts: Facts, name: str, words: str, unit: str = "") -> str:
    value = facts.get(name)
    if value is None:
        return ""
    return f", {words} {count(value) if isinstance(value, int) else number(value)}{unit}"


FACTS: dict[str, Callable[[Facts], str]] = {
    "reward": _reward,
    "lengths": _lengths,
    "groups": _groups,
    "entropy": _entropy,
}
"""Part of the report -> a sentence on it."""


def can_it_be_trusted(report: Report, view: View) -> Iterator[Item]:
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
    cells = [entry for entry in entries if _CELL.search(entry["what"])]
    for entry in entries:
        if entry in cells:
            continue
        what = _PLACE.sub("", plain(entry["what"]))
        by_need.setdefault(entry["needs"], []).append(NAMES.get(what, what))
    for needs, names in by_need.items():
        more = len(names) - MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        shown = ", ".join(names[:MOST_NAMES])
        yield Words(f"{shown}{rest}.", lead=f"Not computable without {plain(needs)}: ")
    if cells:
        yield Words(
            "Dashes in a breakdown: too few tokens or rows there for an interval or a tail; the "
            "JSON names each.",
            tone="aside",
        )


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
