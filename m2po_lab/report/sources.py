"""The first two questions of the report: what was read, and can it be trusted."""

from collections.abc import Iterator, Sequence

from m2po_lab.report.format import count, percent, plain
from m2po_lab.report.items import Item, Report, Words
from m2po_lab.report.vocabulary import EXCLUDED_ROWS, EXCLUDED_TOKENS, INTEGRITY_FINDINGS


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
    for entry in report["not_computable"]:
        yield Words(
            f" {plain(entry['what'])}: needs {plain(entry['needs'])}", lead="not computable"
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
