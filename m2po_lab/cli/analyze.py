"""`m2po-lab analyze`: read a log, report, and say with the exit status whether all is well."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import chosen, clip_range, nonnegative, pairs

DONE, FAILED, INTERRUPTED = 0, 1, 130
GROUPINGS = ("step", "lag", "position")
FAILING = {"error": ("error",), "warning": ("error", "warning")}


def analyze(
    *paths: str,
    format: str = "auto",
    budget: str = "0.04",
    clip: str = "0.2",
    by: str = "step,lag,position",
    columns: str | None = None,
    out: Path | None = None,
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    engine: Literal["local", "process"] = "local",
    fail_on: Literal["error", "warning"] | None = None,
    skip_bad_rows: Annotated[bool, Parameter(negative=())] = False,
    thresholds: Path | None = None,
    ignore: str | None = None,
    explain: str | None = None,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Read a rollout log and say how far off-policy it is, where, and what to look at.

    Parameters
    ----------
    paths
        Files, directories, globs or addresses (s3://, gs://, hf://); several may be mixed.
    format
        Name of a log format; auto chooses by content.
    budget
        M2PO's budget for the second moment of active tokens, in nats squared.
    clip
        Clip range EPS or LOW,HIGH of the what-if: r is kept in [1 - LOW, 1 + HIGH].
    by
        Tables to make, of step, lag and position.
    columns
        ROLE=COLUMN,... where the log uses other names; for example old=trainer_log_probs.
    out
        Directory to write the report into.
    json
        File to write the report to as JSON; - is standard output, which then holds nothing else.
    engine
        Where to scan: local is this process, process a pool over the files.
    fail_on
        Exit with status 1 if a finding of at least this severity fired.
    skip_bad_rows
        Count malformed rows in the middle of a file instead of refusing the file.
    thresholds
        TOML file with thresholds of findings.
    ignore
        Findings to leave out, separated by commas.
    explain
        Print what a finding means, when it fires and what to do, then stop.
    quiet
        No report on standard output.
    """
    if explain is not None:
        return _explain(explain)
    if json is not None and json.startswith("-") and json != "-":
        raise UsageError("--json", f"{json!r} is no file name", "give a file, or - for output")
    if not paths:
        raise UsageError("PATH", "no log was named", "m2po-lab analyze FILE_OR_DIRECTORY ...")
    low, high = clip_range("--clip", clip)
    options: dict[str, Any] = {
        "format": format,
        "budget": nonnegative("--budget", budget),
        "clip": (low, high),
        "by": chosen("--by", by, GROUPINGS),
        "columns": pairs("--columns", columns),
        "engine": engine,
        "skip_bad_rows": skip_bad_rows,
        "thresholds": _thresholds(thresholds),
        "ignore": _finding_ids("--ignore", ignore),
    }
    report, interrupted = _run(paths, options, quiet)
    _deliver(report, json=json, out=out, quiet=quiet, by=_shown(options["by"]))
    if interrupted:
        return INTERRUPTED
    failing = FAILING.get(fail_on or "", ())
    return FAILED if any(f["severity"] in failing for f in report["findings"]) else DONE


def _run(
    paths: tuple[str, ...], options: dict[str, Any], quiet: bool
) -> tuple[dict[str, Any], bool]:
    """Analyze with Ctrl-C and progress taken care of; return the report and whether it was cut."""
    from m2po_lab.api import analyze as run
    from m2po_lab.cli.interrupt import stoppable
    from m2po_lab.cli.progress import Progress

    progress = Progress(enabled=not quiet)
    with stoppable() as stop:
        try:
            analysis = run(list(paths), **options, stop=stop, progress=progress)
        finally:
            progress.close()
        return analysis.to_dict(), stop.requested


def _deliver(
    report: dict[str, Any],
    *,
    json: str | None,
    out: Path | None,
    quiet: bool,
    by: tuple[str, ...],
) -> None:
    """Write the report where it was asked for: files first, then standard output."""
    from m2po_lab.report.directory import write_report
    from m2po_lab.report.document import dumps, write_text
    from m2po_lab.report.terminal import render

    if out is not None:
        page = write_report(report, out, by=by)
    if json == "-":
        output.say(dumps(report))
        return
    if json is not None:
        write_text(Path(json), dumps(report))
    if quiet:
        return
    output.say(
        render(
            report,
            width=output.columns(),
            color=output.colored(sys.stdout),
            by=by,
        )
    )
    if out is not None:
        output.say(f"The report lies in {out}: open {page}\n")


def _shown(by: tuple[str, ...]) -> tuple[str, ...]:
    """Breakdowns to show, in the order of the report: those asked for, and the quadrants."""
    from m2po_lab.report.outline import BREAKDOWNS

    return tuple(kind for kind in BREAKDOWNS if kind == "quadrant" or kind in by)


def _explain(name: str) -> int:
    from m2po_lab.report.explain import explanation

    for known in _finding_ids("--explain", name):
        output.say(explanation(known, output.columns()))
    return DONE


def _finding_ids(option: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    from m2po_lab.findings.catalog import CATALOG

    return chosen(option, text, CATALOG)


def _thresholds(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    from m2po_lab.findings import load_thresholds

    try:
        return load_thresholds(path)
    except ValueError as error:
        raise UsageError("--thresholds", str(error)) from error
