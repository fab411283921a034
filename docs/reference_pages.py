"""Reference pages written from the program: commands, findings, formats, report and log schema."""

import json
from pathlib import Path
from typing import Any

from pages import cell, write_changed

from m2po_lab.cli.app import app as command
from m2po_lab.findings.catalog import CATALOG
from m2po_lab.findings.thresholds import THRESHOLDS
from m2po_lab.logs.registry import READERS
from m2po_lab.logs.schema import ORDER, ROW_COLUMNS, SCHEMA_VALUE, TOKEN_COLUMNS

SCHEMA = Path(__file__).parent.parent / "m2po_lab" / "report" / "schema" / "report-1.json"


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    folder = Path(app.srcdir) / "reference" / "program"
    write_changed(
        folder,
        {
            "commands.md": commands(),
            "findings.md": findings(),
            "formats.md": formats(),
            "report.md": report(),
            "native_log.md": native_log(),
        },
    )
    return {"parallel_read_safe": True}


def commands() -> str:
    """Every command with its options, as the parser knows them."""
    text: str = command.generate_docs(output_format="markdown")
    body = text.split("\n## m2po-lab ", 1)[1]
    return f"# Commands\n\nWritten from the parser.\n\n## m2po-lab {body}"


def findings() -> str:
    """Every finding: what fires it, against which numbers, what to do, who reported it."""
    lines = [
        "# Findings",
        "",
        "Each is evaluated on every ratio that the log has. A healthy log gives no error and no",
        "warning; a sick one may rightly give several. `m2po-lab analyze --explain ID` prints one.",
        "",
    ]
    for name, entry in CATALOG.items():
        lines += [
            f"## `{name}`",
            "",
            f"**{entry.severity}.** {entry.title}.",
            "",
            f"Fires when: {cell(entry.rule)}",
            "",
            f"What to do: {cell(entry.advice)}",
            "",
            f"Reported in: {cell(entry.source)}",
            "",
        ]
    lines += [
        "## Thresholds",
        "",
        "The one table they are taken from. `--thresholds FILE.toml` changes a value, as in",
        "`drift_m2 = 0.1`.",
        "",
        "| name | value | what it limits | where it comes from |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{name}` | {each.value:g} | {cell(each.meaning)} | {cell(each.source)} |"
        for name, each in THRESHOLDS.items()
    ]
    return "\n".join([*lines, ""])


def formats() -> str:
    """Every format that is told apart by content, and what would make its framework log more."""
    rows = []
    for reader in READERS:
        about = (type(reader).__doc__ or "").strip().splitlines()[0]
        missing = getattr(reader, "missing_flag", None)
        rows.append(f"| `{reader.name}` | {cell(about)} | {cell(missing or '-')} |")
    return "\n".join(
        [
            "# Log formats",
            "",
            "A format is chosen by content, never by the file's name; `--format NAME` insists on",
            "one. Nothing in a file is ever executed: pickles are read with a list of allowed",
            "names.",
            "Where a file lacks what a ratio needs, the report quotes the third column.",
            "",
            "| name | what it holds | what would log more |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def report() -> str:
    """The JSON Schema of the report."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    rows = [
        f"| `{name}` | {cell(_kind(value))} | {cell(value.get('description', ''))} |"
        for name, value in schema["properties"].items()
    ]
    return "\n".join(
        [
            "# The JSON report",
            "",
            "`m2po-lab analyze --json FILE` writes it, `analyze(...).to_dict()` returns it.",
            schema["description"],
            "",
            "| field | type | |",
            "|---|---|---|",
            *rows,
            "",
            "The schema ships with the package as `m2po_lab/report/schema/report-1.json`:",
            "",
            "```json",
            json.dumps(schema, indent=1),
            "```",
            "",
        ]
    )


def _kind(value: dict[str, Any]) -> str:
    """Type of a field in a word or two."""
    kind = value.get("type") or ("object" if "$ref" in value else "one of")
    if kind == "one of":
        options = value.get("enum", [value["const"]] if "const" in value else [])
        return ", ".join("null" if option is None else str(option) for option in options)
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def native_log() -> str:
    """Columns of the native Parquet log."""
    rows = []
    for name in ORDER:
        kind = ROW_COLUMNS.get(name)
        shown = str(kind) if kind is not None else f"list of {TOKEN_COLUMNS[name]}"
        rows.append(f"| `{name}` | {shown} | {'a response' if kind is not None else 'a token'} |")
    return "\n".join(
        [
            "# The native log",
            "",
            "A folder of Parquet files, one row a response, with the key-value metadata",
            f"`m2po_lab.schema = {SCHEMA_VALUE.decode()}`. Toy runs and the verl plugin write it,",
            "and `m2po-lab convert` makes it from any readable log. Everything but `behavior_logp`",
            "is optional; `advantage` may be one number a response. A version below 0 is unknown.",
            "Files are written whole and renamed, so that a reader never meets half a file and a",
            "killed run leaves a readable log.",
            "",
            "| column | type | one value |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
