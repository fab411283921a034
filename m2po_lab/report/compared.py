"""A comparison laid out: what was compared, how far apart, by lag, trust regions, findings."""

from collections.abc import Iterator, Sequence
from typing import Any

from m2po_lab.report.findings import by_severity
from m2po_lab.report.format import ABSENT, count, interval, number, percent, plain
from m2po_lab.report.glossary import glossary
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Grid, Item, Plot, View, Words
from m2po_lab.report.objectives import ELSEWHERE, MOST_OBJECTIVES, computable, share
from m2po_lab.report.outline import Document, Part, short_names
from m2po_lab.report.vocabulary import STATISTIC_LINES, SUBSETS

Comparison = dict[str, Any]

SHORT = {field: short.strip() for field, short, _ in STATISTIC_LINES}
PERCENTS = frozenset({"top1pct_m2_share"})


def document(comparison: Comparison, view: View) -> Document:
    """Lay a comparison out for any medium."""
    names = letters(comparison)
    parts = (
        ("look", "Findings", _findings),
        ("read", "What was compared", _inputs),
        ("drift", "How far apart", _differences),
        ("lag", "By lag", _by_lag),
        ("regions", "What each trust region would do", _objectives),
    )
    return Document(
        title=" against ".join(short_names([run["name"] for run in comparison["runs"]])),
        version=comparison["version"],
        partial=comparison["partial"],
        counts=(),
        parts=[Part(id, title, list(items(comparison, names, view))) for id, title, items in parts],
    )


def letters(comparison: Comparison) -> list[str]:
    """Short names of the runs: A, B, ... or numbers when there are many."""
    n = len(comparison["runs"])
    return [chr(ord("A") + i) if n <= 26 else str(i + 1) for i in range(n)]


def _inputs(comparison: Comparison, names: Sequence[str], view: View) -> Iterator[Item]:
    for letter, run in zip(names, comparison["runs"], strict=True):
        tokens, rows = run["report"]["tokens"], run["report"]["rows"]
        yield Words(
            f" {plain(run['name'])}: {count(tokens['kept'])} of {count(tokens['logged'])} tokens, "
            f"{count(rows['kept'])} of {count(rows['read'])} rows counted",
            lead=letter,
        )


def _differences(comparison: Comparison, names: Sequence[str], view: View) -> Iterator[Item]:
    ratio = comparison["ratio"]
    if ratio is None:
        yield Words("Not computable: the runs have no ratio in common.")
        return
    yield Words(glossary(f"M2 ESS k1 k3 chi2 d lag {ratio}"), tone="aside")
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
    yield Plot("compare_by_step")


def _by_lag(comparison: Comparison, names: Sequence[str], view: View) -> Iterator[Item]:
    for index, letter in enumerate(names[1:], start=1):
        lines = [line for line in comparison["by_lag"] if line["run"] == index]
        if lines:
            labels = [str(line["lag"]) for line in lines]
            yield Grid(_table("lag", labels, lines, letter), f"M2, {letter} against A")
    if not comparison["by_lag"]:
        yield Words("Not computable: the runs have no lag in common.")
    yield Plot("compare_by_lag")


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


def _objectives(comparison: Comparison, names: Sequence[str], view: View) -> Iterator[Item]:
    reports = [run["report"] for run in comparison["runs"]]
    sets = [computable(report) for report in reports]
    common = [name for name in sets[0] if all(name in others for others in sets)]
    if common:
        shown = common if view.whole else common[:MOST_OBJECTIVES]
        rest = f"; {len(shown)} of {len(common)}, {ELSEWHERE}" if len(shown) < len(common) else ""
        columns = [Column("objective", shown, left=True)]
        for letter, report in zip(names, reports, strict=True):
            found = report["objectives"]
            shares = [percent(share(found[name], "zero_gradient_fraction")) for name in shown]
            columns.append(Column(letter, shares))
        yield Grid(columns, f"Share of counted tokens that lose their gradient{rest}")
    every = len(reports[0]["objectives"] or {})
    if len(common) < every:
        some = f"{len(common)} of {every} objectives" if common else "No objective"
        yield Words(f"{some} can be computed on every run. {_lacking(reports, names)}")


def _lacking(reports: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """What each run lacks for the objectives that it does not allow."""
    sentences = []
    for letter, report in zip(names, reports, strict=True):
        needs: dict[str, int] = {}
        for entry in report["not_computable"]:
            if entry["what"].startswith("objectives/"):
                needs[plain(entry["needs"])] = needs.get(plain(entry["needs"]), 0) + 1
        if needs:
            parts = ", ".join(f"{name} (for {count(n)} of them)" for name, n in needs.items())
            sentences.append(f"{letter} lacks {parts}.")
    return " ".join(sentences)


def _findings(comparison: Comparison, names: Sequence[str], view: View) -> Iterator[Item]:
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
