"""Reference pages written from the registries, so that they cannot drift from the code."""

from pathlib import Path
from typing import Any

from m2po_lab.core import OBJECTIVES, STATISTICS
from m2po_lab.core.objectives import AGGREGATIONS, DIAGNOSTICS
from m2po_lab.core.objectives.base import Spec
from m2po_lab.core.objectives.parameters import Parameter

NOTATION = """
Notation: $l$, $\\mu$, $p$ are the log-probs of a sampled token under the current, the behavior and
the proximal policy; r = exp(l - mu), rho = exp(l - p), b = exp(p - mu); A is the advantage, sg
stops the gradient, N counts the valid tokens. w is the weight in -dLoss/dl = w A / D.
"""


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    write(Path(app.srcdir) / "reference" / "generated")
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write every page into the folder, and only what has changed, so that rebuilds stay quick."""
    pages = {
        "statistics.md": _statistics(),
        "objectives.md": _index(),
        **{f"objectives/{name}.md": _objective(name, spec) for name, spec in OBJECTIVES.items()},
    }
    for name, text in pages.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
    known = {folder / name for name in pages}
    for stale in set(folder.rglob("*.md")) - known:
        stale.unlink()


def _objective(name: str, spec: Spec) -> str:
    aggregation = f"`{spec.aggregation}`: {_cell(AGGREGATIONS[spec.aggregation])}"
    lines = [
        f"# `{name}`",
        "",
        spec.summary,
        "",
        "| | |",
        "|---|---|",
        f"| formula | {_cell(spec.formula)} |",
        f"| ratio | {spec.ratio} |",
        f"| scope | {spec.scope} |",
        f"| denominator D | {_cell(spec.denominator)} |",
        f"| aggregation of its paper | {aggregation} |",
        f"| needs | {', '.join(f'`{need}`' for need in spec.needs)} |",
        f"| torch.compile | {_cell(spec.compile_note or 'one graph')} |",
        f"| paper | [{_cell(spec.paper)}]({spec.link}) |",
        "",
    ]
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
    meaning = _cell(parameter.meaning or "")
    return f"| `{name}` | `{parameter.default!r}` | {meaning} | {_cell(parameter.source)} |"


def _index() -> str:
    rows = [
        f"| [`{name}`](objectives/{name}.md) | {spec.scope} | {_cell(spec.formula)} |"
        for name, spec in OBJECTIVES.items()
    ]
    names = [f"objectives/{name}" for name in OBJECTIVES]
    diagnostics = [f"| `{name}` | {_cell(text)} |" for name, text in DIAGNOSTICS.items()]
    aggregations = [f"| `{name}` | {_cell(text)} |" for name, text in AGGREGATIONS.items()]
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
            *names,
            "```",
            "",
        ]
    )


def _statistics() -> str:
    rows = [
        f"| `{s.name}` | {_cell(s.title)} | {_cell(s.formula)} | {s.unit} | "
        f"{s.low:g} .. {s.high:g} | {s.on_policy:g} | {_cell(s.blind_to) or '-'} | "
        f"{_cell(s.source)} |"
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


def _cell(text: str) -> str:
    """Text that a Markdown table takes as it stands."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
