"""A comparison laid out: what was compared, how far apart, by lag, trust regions, findings."""

from collections.abc import Iterator, Sequence
from typing import Any

from m2po_lab.report.findings import by_severity
from m2po_lab.report.format import ABSENT, count, interval, number, percent, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, Words
from m2po_lab.report.outline import Document, Part
from m2po_lab.report.vocabulary import STATISTIC_LINES, SUBSETS
from m2po_lab.report.whatif import chosen

Comparison = dict[str, Any]

SHORT = {field: short.strip() for field, short, _ in STATISTIC_LINES}
PERCENTS = frozenset({"top1pct_m2_share"})


def document(comparison: Comparison) -> Document:
    """Lay a comparison out for any medium."""
    names = letters(comparison)
    parts = (
        ("read", "What was compared", _inputs),
        ("drift", "How far apart", _differences),
        ("lag", "By lag", _by_lag),
        ("regions", "What each trust region would do", _objectives),
        ("look", "Findings", _findings),
    )
    return Document(
        title=" against ".join(plain(run["name"], limit=60) for run in comparison["runs"]),
        version=comparison["version"],
        partial=comparison["partial"],
        counts=(),
        headline=(),
        parts=[Part(id, title, list(items(comparison, names))) for id, title, items in parts],
    )


def letters(comparison: Comparison) -> list[str]:
    """Short names of the runs: A, B, ... or numbers when there are many."""
    n = len(comparison["runs"])
    return [chr(ord("A") + i) if n <= 26 else str(i + 1) for i in range(n)]


def _inputs(comparison: Comparison, names: Sequence[str]) -> Iterator[Item]:
    for letter, run in zip(names, comparison["runs"], strict=True):
        tokens, rows = run["report"]["tokens"], run["report"]["rows"]
        yield Words(
            f" {plain(run['name'])}: {count(tokens['kept'])} of {count(tokens['logged'])} tokens, "
            f"{count(rows['kept'])} of {count(rows['read'])} rows counted",
            lead=letter,
        )


def _differences(comparison: Comparison, names: Sequence[str]) -> Iterator[Item]:
    ratio = comparison["ratio"]
    if ratio is None:
        yield Words("Not computable: the runs have no ratio in common.")
        return
    yield Words(
        "Difference: the run minus A. Marked with *: its 95 % interval leaves out 0 (bootstrap "
        "over rows; rows that both runs have are drawn together).",
        tone="aside",
    )
    for index, letter in enumerate(names[1:], start=1):
        for field, head in SUBSETS:
            lines = [
                line
                for line in comparison["differences"]
                if line["run"] == index and line["set"] == field
            ]
            if lines:
                labels = [SHORT[line["statistic"]] for line in lines]
                yield Grid(
                    _table("", labels, lines, letter), f"{letter} against A: {ratio}, {head} tokens"
                )


def _by_lag(comparison: Comparison, names: Sequence[str]) -> Iterator[Item]:
    for index, letter in enumerate(names[1:], start=1):
        lines = [line for line in comparison["by_lag"] if line["run"] == index]
        if lines:
            labels = [str(line["lag"]) for line in lines]
            yield Grid(_table("lag", labels, lines, letter), f"M2, {letter} against A")
    if not comparison["by_lag"]:
        yield Words("Not computable: the runs have no lag in common.")
    yield Plot("compare_by_lag")
    yield Plot("compare_by_step")


def _table(head: str, labels: list[str], lines: list[dict[str, Any]], letter: str) -> list[Column]:
    def written(line: dict[str, Any], name: str) -> str:
        share = line.get("statistic") in PERCENTS
        return percent(line[name]) if share else number(line[name])

    apart = [
        "*" if line["low"] is not None and (line["low"] > 0 or line["high"] < 0) else ""
        for line in lines
    ]
    return [
        Column(head, labels, left=True),
        Column("A", [written(line, "first") for line in lines]),
        Column(letter, [written(line, "second") for line in lines]),
        Column("difference", [written(line, "difference") for line in lines]),
        Column("95 %", [interval(line["low"], line["high"]) for line in lines]),
        Column("", apart, left=True),
    ]


def _objectives(comparison: Comparison, names: Sequence[str]) -> Iterator[Item]:
    objectives = [run["report"]["objectives"] or {} for run in comparison["runs"]]
    shown = [name for name in chosen(objectives[0]) if all(o.get(name) for o in objectives)]
    if not shown:
        yield Words("Not computable: no objective can be computed on all runs.")
        return
    columns = [Column("objective", shown, left=True)]
    for letter, found in zip(names, objectives, strict=True):
        shares = [percent(found[name].get("zero_gradient_fraction")) for name in shown]
        columns.append(Column(letter, shares))
    yield Grid(columns, "Share of counted tokens that lose their gradient")


def _findings(comparison: Comparison, names: Sequence[str]) -> Iterator[Item]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for letter, run in zip(names, comparison["runs"], strict=True):
        for finding in by_severity(run["report"]["findings"]):
            key = (finding["id"], finding["title"])
            found.setdefault(key, {})[letter] = finding["severity"]
    if not found:
        yield Words("None in any run.")
        return
    columns = [Column("finding", [id for id, _ in found], left=True)]
    for letter in names:
        columns.append(Column(letter, [by.get(letter, ABSENT) for by in found.values()], left=True))
    columns.append(Column("", [plain(title) for _, title in found], left=True, drop=1))
    yield Grid(columns)
