"""`m2po-lab compare`: several runs side by side, with intervals on what differs."""

import sys

from m2po_lab.cli import output
from m2po_lab.cli.analyze import run
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.flags import Flags
from m2po_lab.cli.status import DONE, FAILED, INTERRUPTED


def compare(*runs: str, flags: Flags | None = None) -> int:
    """Compare runs with the first one: differences with 95 % intervals, lags, findings.

    Parameters
    ----------
    runs
        Two or more logs, each a file, directory, glob or address.
    """
    if len(runs) < 2:
        raise UsageError("RUN", f"{len(runs)} named", "m2po-lab compare RUN_A RUN_B ...")
    from m2po_lab.report.comparison import Run, compare_runs

    flags = flags or Flags()
    options, analyzed = flags.options(), []
    for name in runs:
        analysis, interrupted = run((name,), options, flags.quiet)
        if interrupted:
            return INTERRUPTED
        analyzed.append(Run(name, analysis.scan, analysis.to_dict()))
    _deliver(compare_runs(analyzed), flags)
    return FAILED if any(flags.fails(one.report["findings"]) for one in analyzed) else DONE


def _deliver(comparison: dict[str, object], flags: Flags) -> None:
    """Write the comparison where it was asked for: files first, then standard output."""
    from m2po_lab.report.compared import document
    from m2po_lab.report.document import dumps, write_json
    from m2po_lab.report.items import View
    from m2po_lab.report.terminal import write

    page = None
    if flags.out is not None:
        from m2po_lab.report.directory import write_comparison

        page = write_comparison(comparison, flags.out)
    if flags.json_alone:
        output.say(dumps(comparison))
        return
    if flags.json is not None:
        write_json(flags.json, comparison)
    if flags.quiet:
        return
    laid_out = document(comparison, View())
    output.say(write(laid_out, width=output.columns(), color=output.colored(sys.stdout)))
    if page is not None:
        output.say(f"The comparison lies in {flags.out}: open {page}\n")
