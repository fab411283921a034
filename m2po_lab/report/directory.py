"""A directory with the whole report: JSON for programs, text for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from m2po_lab.report.document import dumps, write_text
from m2po_lab.report.terminal import DEFAULT_BY, render


def write_report(
    report: dict[str, Any],
    out: Path,
    *,
    budget: float | None = None,
    by: Sequence[str] = DEFAULT_BY,
) -> tuple[Path, ...]:
    """Write `report.json` and `report.txt`, each whole or not at all; other files are left alone.

    Args:
        report: what `Analysis.to_dict()` gives.
        out: directory; it is made if it does not exist.
        budget: M2PO's budget, to name it in the text.
        by: breakdowns to show in the text.

    Returns:
        The files written.

    Raises:
        OSError: the directory cannot be made or written.
    """
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": dumps(report),
        "report.txt": render(report, by=tuple(dict.fromkeys((*by, "quadrant"))), budget=budget),
    }
    for name, text in texts.items():
        write_text(out / name, text)
    return tuple(out / name for name in texts)
