"""The options that every command which analyzes shares, and what they mean for the library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import chosen, clip_range, directory, json_file, nonnegative, pairs

GROUPINGS = ("step", "lag", "position")
FAILING = {None: (), "error": ("error",), "warning": ("error", "warning")}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Flags:
    """How to read, what to compute, where to write.

    Parameters
    ----------
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
        Directory to write the report into: a page with figures, text and JSON.
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
    quiet
        No report on standard output.
    """

    format: str = "auto"
    budget: str = "0.04"
    clip: str = "0.2"
    by: str = "step,lag,position"
    columns: str | None = None
    out: Path | None = None
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    engine: Literal["local", "process"] = "local"
    fail_on: Literal["error", "warning"] | None = None
    skip_bad_rows: Annotated[bool, Parameter(negative=())] = False
    thresholds: Path | None = None
    ignore: str | None = None
    quiet: Annotated[bool, Parameter(negative=())] = False

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `m2po_lab.analyze`.

        Raises:
            UsageError: an option that cannot be used.
        """
        json_file("--json", self.json)
        directory("--out", self.out)
        return {
            "format": self.format,
            "budget": nonnegative("--budget", self.budget),
            "clip": clip_range("--clip", self.clip),
            "by": chosen("--by", self.by, GROUPINGS),
            "columns": pairs("--columns", self.columns),
            "engine": self.engine,
            "skip_bad_rows": self.skip_bad_rows,
            "thresholds": _thresholds(self.thresholds),
            "ignore": finding_ids("--ignore", self.ignore),
        }

    @property
    def json_alone(self) -> bool:
        """Whether the JSON goes to standard output, which then holds nothing else."""
        return self.json is not None and output.is_stdout(self.json)

    def shown(self) -> tuple[str, ...]:
        """Breakdowns to show, in the order of the report: those asked for, and the quadrants."""
        from m2po_lab.report.outline import BREAKDOWNS

        asked = (*chosen("--by", self.by, GROUPINGS), "quadrant")
        return tuple(kind for kind in BREAKDOWNS if kind in asked)

    def fails(self, findings: list[dict[str, Any]]) -> bool:
        """Whether a finding is as severe as `--fail-on` says."""
        return any(f["severity"] in FAILING[self.fail_on] for f in findings)


def finding_ids(option: str, text: str | None) -> tuple[str, ...]:
    """Split a list of finding ids.

    Raises:
        UsageError: an unknown one.
    """
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
