"""`m2po-lab convert`: any readable log as a native one."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import directory, pairs


def convert(
    *paths: str,
    out: Path,
    format: str = "auto",
    columns: str | None = None,
    skip_bad_rows: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Rewrite any readable log as native Parquet, which is smaller and read several times faster.

    Parameters
    ----------
    paths
        Files, directories, globs or addresses (s3://, gs://, hf://); several may be mixed.
    out
        Directory to write into.
    format
        Name of a log format; auto chooses by content.
    columns
        ROLE=COLUMN,... where the log uses other names; for example old=trainer_log_probs.
    skip_bad_rows
        Leave malformed rows in the middle of a file out instead of refusing the file.
    quiet
        Nothing on standard output.
    """
    if not paths:
        raise UsageError("PATH", "no log was named", "m2po-lab convert FILE --out DIRECTORY")
    directory("--out", out)
    from m2po_lab.logs.convert import convert as run
    from m2po_lab.report.format import plain

    chosen = pairs("--columns", columns)
    done = run(list(paths), out, format=format, columns=chosen, skip_bad_rows=skip_bad_rows)
    if not quiet:
        rows = sum(entry.rows for entry in done.log.inputs)
        tokens = sum(entry.tokens for entry in done.log.inputs)
        skipped = f"; {done.log.bad_rows:,} bad rows left out" if done.log.bad_rows else ""
        lost = "".join(f"not carried: {plain(text)}\n" for text in done.not_carried)
        output.say(f"{rows:,} rows, {tokens:,} tokens written to {out}{skipped}\n{lost}")
    return 0
