"""Reference pages written from the registries, so that they cannot drift from the code."""

import re
from pathlib import Path
from typing import Any

from pages import cell, write_changed

from m2po_lab.core import OBJECTIVES, STATISTICS
from m2po_lab.core.objectives import AGGREGATIONS, DIAGNOSTICS
from m2po_lab.core.objectives.base import Spec
from m2po_lab.core.objectives.parameters import Parameter

NOTATION = """
Notation: $l$, $\\mu$, $p$ are the log-probs of a sampled token under the current, the behavior and
the proximal policy; r = exp(l - mu), rho = exp(l - p), b = exp(p - mu); A is the advantage, sg
stops the gradient, N counts the valid tokens. w is the weight in -dLoss/dl = w A / D. No ratio
counts for more than e^40 on a kept token.

Where papers are silent or disagree: {doc}`/objectives/readings`.
"""
READINGS = Path(__file__).parent / "objectives" / "readings.md"
"""Written by hand: what was settled how, a section an objective."""


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    write(Path(app.srcdir) / "reference" / "generated")
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write every page into the folder."""
    pages = {
        "statistics.md": _statistics(),
        "objectives.md": _index(),
        **{f"objectives/{name}.md": _objective(name, spec) for name, spec in OBJECTIVES.items()},
    }
    write_changed(folder, pages)


def readings() -> list[str]:
    """Objectives with a section of their own among the readings."""
    return re.findall(r"^### (\w+)$", READINGS.read_text(encoding="utf-8"), re.MULTILINE)


def _objective(name: str, spec: Spec) -> str:
    aggregation = f"`{spec.aggregation}`: {cell(AGGREGATIONS[spec.aggregation])}"
    lines = [
        f"# `{name}`",
        "",
        spec.summary,
        "",
        "| | |",
        "|---|---|",
        f"| formula | {cell(spec.formula)} |",
        f"| ratio | {spec.ratio} |",
        f"| scope | {spec.scope} |",
        f"| denominator D | {cell(spec.denominator)} |",
        f"| aggregation of its paper | {aggregation} |",
        f"| needs | {', '.join(f'`{need}`' for need in spec.needs)} |",
        f"| torch.compile | {cell(spec.compile_note or 'one graph')} |",
        f"| paper | [{cell(spec.paper)}]({spec.link}) |",
    ]
    if name in readings():
        place = f"../../../objectives/readings.md#{name}"
        lines.append(f"| sources disagree | [which reading this is, and what else]({place}) |")
    lines.append("")
    if spec.parameters:
        lines += ["| parameter | default | meaning | source |", "|---|---|---|---|"]
        lines += [_parameter(key, value) for key, value in spec.parameters.items()]
        lines.append("")
    call = "".join(f", {key}={value.default!r}" for key, value in spec.parameters.items())
    extra = ", max_length=4096" if spec.aggregation == "constant" else ""
    lines += [
        "```python",
        "from m2po_lab.core import objective",
        "",
        f'chosen = objective("{name}", aggregation="{spec.aggregation}"{call}{extra})',
        "loss, diagnostics = chosen.loss(batch)",
        "```",
        "",
    ]
    return "\n".join(lines)


def _parameter(name: str, parameter: Parameter) -> str:
    meaning = cell(parameter.meaning or "")
    return f"| `{name}` | `{parameter.default!r}` | {meaning} | {cell(parameter.source)} |"


def _index() -> str:
    rows = [
        f"| [`{name}`](objectives/{name}.md) | {spec.scope} | {cell(spec.formula)} |"
        for name, spec in OBJECTIVES.items()
    ]
    names = [f"objectives/{name}" for name in OBJECTIVES]
    diagnostics = [f"| `{name}` | {cell(text)} |" for name, text in DIAGNOSTICS.items()]
    aggregations = [f"| `{name}` | {cell(text)} |" for name, text in AGGREGATIONS.items()]
    return "\n".join(
        [
            "# Objectives",
            NOTATION,
            "| objective | scope | formula |",
            "|---|---|---|",
            *rows,
            "",
            "## Aggregations",
            "",
            "| name | loss |",
            "|---|---|",
            *aggregations,
            "",
            "## Diagnostics",
            "",
            "What `objective(...).loss(batch)` returns beside the loss.",
            "",
            "| name | meaning |",
            "|---|---|",
            *diagnostics,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            "/objectives/readings",
            *names,
            "```",
            "",
        ]
    )


def _statistics() -> str:
    rows = [
        f"| `{s.name}` | {cell(s.title)} | {cell(s.formula)} | {s.unit} | "
        f"{s.low:g} .. {s.high:g} | {s.on_policy:g} | {cell(s.blind_to) or '-'} | "
        f"{cell(s.source)} |"
        for s in STATISTICS.values()
    ]
    return "\n".join(
        [
            "# Statistics",
            "",
            "d is the log-ratio of a kept token (or of a response) under two policies, in nats.",
            "Nothing to average is null, never 0.",
            "",
            "| name | meaning | formula | unit | range | on policy | blind to | source |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
