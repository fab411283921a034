"""`m2po-lab analyze`: read a log, report, and say with the exit status whether all is well."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.flags import Flags, finding_ids
from m2po_lab.cli.status import DONE, FAILED, INTERRUPTED

if TYPE_CHECKING:
    from m2po_lab.api import Analysis

CLEAR = "\x1b[2J\x1b[H"
"""Clears a terminal, so that the next report takes the place of the last."""


def analyze(
    *paths: str,
    follow: Annotated[bool, Parameter(negative=())] = False,
    explain: str | None = None,
    flags: Flags | None = None,
) -> int:
    """Read a rollout log and say how far off-policy it is, where, and what to look at.

    Parameters
    ----------
    paths
        Files, directories, globs or addresses (s3://, gs://, hf://); several may be mixed.
    follow
        Stay, and report again whenever a complete file is new, until Ctrl-C.
    explain
        Print what a finding means, when it fires and what to do, then stop.
    """
    if explain is not None:
        return _explain(explain)
    if not paths:
        raise UsageError("PATH", "no log was named", "m2po-lab analyze FILE_OR_DIRECTORY ...")
    flags = flags or Flags()
    if follow:
        return _follow(paths, flags)
    analysis, interrupted = run(paths, flags.options(), flags.quiet)
    report = analysis.to_dict()
    _deliver(report, flags)
    if interrupted:
        return INTERRUPTED
    return FAILED if flags.fails(report["findings"]) else DONE


def run(paths: tuple[str, ...], options: dict[str, Any], quiet: bool) -> tuple["Analysis", bool]:
    """Analyze with Ctrl-C and progress taken care of; return the result and whether it was cut."""
    from m2po_lab.api import analyze as analyze_log
    from m2po_lab.cli.interrupt import stoppable
    from m2po_lab.cli.progress import Progress

    progress = Progress(enabled=not quiet)
    with stoppable() as stop:
        try:
            analysis = analyze_log(list(paths), **options, stop=stop, progress=progress)
        finally:
            progress.close()
        return analysis, stop.requested


def _follow(paths: tuple[str, ...], flags: Flags) -> int:
    """Report again and again; the last report stays where it is."""
    from m2po_lab.api import follow
    from m2po_lab.cli.interrupt import stoppable

    if flags.json_alone:
        problem = "--follow would write several reports"
        raise UsageError(f"--json {flags.json}", problem, "--json FILE")
    options = flags.options()
    if options.pop("engine") != "local":
        raise UsageError("--engine", "--follow scans in this process", "leave --engine out")
    with stoppable() as stop:
        for analysis in follow(list(paths), stop=stop, **options):
            report = analysis.to_dict()
            if sys.stdout is not None and sys.stdout.isatty():
                output.say(CLEAR)
            _deliver(report, flags)
            if flags.fails(report["findings"]):
                return FAILED
    return INTERRUPTED


def _deliver(report: dict[str, Any], flags: Flags) -> None:
    """Write the report where it was asked for: files first, then standard output."""
    from m2po_lab.report.document import dumps, write_json
    from m2po_lab.report.terminal import render

    by = flags.shown()
    page = None
    if flags.out is not None:
        from m2po_lab.report.directory import write_report

        page = write_report(report, flags.out, by=by)
    if flags.json_alone:
        output.say(dumps(report))
        return
    if flags.json is not None:
        write_json(flags.json, report)
    if flags.quiet:
        return
    output.say(render(report, width=output.columns(), color=output.colored(sys.stdout), by=by))
    if page is not None:
        output.say(f"The report lies in {flags.out}: open {page}\n")


def _explain(name: str) -> int:
    from m2po_lab.report.explain import explanation

    names = finding_ids("--explain", name)
    if not names:
        raise UsageError("--explain", f"{name!r} names no finding", "for example low-tail")
    for known in names:
        output.say(explanation(known, output.columns()))
    return DONE
