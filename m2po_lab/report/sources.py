"""The first two questions of the report: what was read, and can it be trusted."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from m2po_lab.report.format import count, percent, plain
from m2po_lab.report.vocabulary import EXCLUDED_ROWS, EXCLUDED_TOKENS, INTEGRITY_FINDINGS


def what_was_read(report: dict[str, Any]) -> Iterator[RenderableType]:
    """Name every input, its format, its size, and which column was taken for what."""
    for source in report["inputs"]:
        files = f", {count(source['files'])} files" if source["files"] != 1 else ""
        yield Text.assemble(
            (plain(source["path"]), "bold"),
            f"  ({plain(source['format'])}{files}): "
            f"{count(source['rows'])} rows, {count(source['tokens'])} tokens",
        )
        columns = {k: v for k, v in source["columns"].items() if v is not None}
        taken = [k if k == v else f"{k} = {plain(v)}" for k, v in columns.items()]
        if taken:
            yield Text("columns: " + ", ".join(taken), style="dim")


def can_it_be_trusted(report: dict[str, Any]) -> Iterator[RenderableType]:
    """Say what was counted, what was left out and why, which checks fired, what is missing."""
    tokens, rows = report["tokens"], report["rows"]
    yield Text(
        f"Counted in every number: {count(tokens['kept'])} of {count(tokens['logged'])} tokens, "
        f"{count(rows['kept'])} of {count(rows['read'])} rows."
    )
    yield from _excluded("tokens", tokens["excluded"], tokens["logged"], EXCLUDED_TOKENS)
    yield from _excluded("rows", rows["excluded"], rows["read"], EXCLUDED_ROWS)
    fired = [f for f in report["findings"] if f["id"] in INTEGRITY_FINDINGS]
    loud = [f for f in fired if f["severity"] != "info"]
    if not loud:
        yield Text("No check of the log itself raised an error or a warning.")
    for finding in loud:
        style = "red" if finding["severity"] == "error" else "yellow"
        yield Text.assemble(
            (f"{finding['severity']} {finding['id']}", style), ": ", finding["title"]
        )
    yield from _missing(report["not_computable"])


def _excluded(
    unit: str, excluded: dict[str, int], total: int, words: dict[str, str]
) -> Iterator[RenderableType]:
    left_out = {name: n for name, n in excluded.items() if n}
    if left_out:
        parts = (
            f"{count(n)} {words.get(name, name)} ({percent(n / total if total else None)})"
            for name, n in left_out.items()
        )
        yield Text(f"Left out, {unit}: " + "; ".join(parts) + ".")


def _missing(entries: list[dict[str, str]]) -> Iterator[RenderableType]:
    for entry in entries:
        yield Text.assemble(
            ("not computable", "dim"), f" {plain(entry['what'])}: needs {plain(entry['needs'])}"
        )
