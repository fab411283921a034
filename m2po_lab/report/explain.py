"""What one finding means: when it fires, what to do, where such a thing was reported."""

import textwrap

from m2po_lab.findings.catalog import CATALOG

NARROWEST, WIDEST = 40, 100


def explanation(name: str, width: int = WIDEST) -> str:
    """Explain a finding of the catalog in a few lines.

    Args:
        name: its id.
        width: columns to fill, held between 40 and 100.
    """
    entry = CATALOG[name]
    parts = (
        ("", f"{name} ({entry.severity}): {entry.title}"),
        ("Fires when: ", entry.rule),
        ("What to do: ", entry.advice),
        ("Reported at: ", entry.source),
        ("Thresholds: ", "see --thresholds; leave it out of a report with --ignore " + name),
    )
    columns = max(NARROWEST, min(WIDEST, width))
    lines = (
        textwrap.fill(
            text,
            columns,
            initial_indent=head,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for head, text in parts
    )
    return "\n".join(lines) + "\n"
