"""Everything of the report that is a what-if: objectives, overlap, sweeps, reach."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from m2po_lab.analysis.binned import Binned, applies, binned, binned_report
from m2po_lab.analysis.marked import marked
from m2po_lab.analysis.reach import reach_report
from m2po_lab.analysis.result import Analysis
from m2po_lab.analysis.selection_report import (
    budget_sweep,
    budget_sweep_from_histograms,
    clip_sweep,
    m2po_from_histograms,
    m2po_report,
)
from m2po_lab.analysis.whatif import M2PO, Stage, WhatIf, stage_of, what_if
from m2po_lab.analysis.whatif_report import objective_report, overlap_report
from m2po_lab.core.objectives import OBJECTIVES

Report = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """Parts of the report, and why parts of them are null.

    Attributes:
        objectives, overlap, sweeps, reach, worst: as in the report.
        missing: what -> what it needs.
    """

    objectives: dict[str, Report | None]
    overlap: Report | None
    sweeps: Report
    reach: list[Report] | None
    worst: list[Report] | None
    missing: dict[str, str] = field(default_factory=dict)


def judged(analysis: Analysis) -> Judged:
    """Apply every objective to what the scan kept."""
    primary, sample = analysis.primary, analysis.sample
    stage = stage_of(sample.canonical(), primary, sample.complete)
    found = what_if(stage, analysis.options)
    tables = None if primary is None else analysis.ratios[primary]
    beyond = None
    if tables is not None and not sample.complete and tables.knows_advantage:
        beyond = binned(tables)
    reach = None if tables is None else reach_report(tables, stage, analysis.options)
    return Judged(
        objectives={name: _objective(analysis, found, name, beyond) for name in OBJECTIVES},
        overlap=overlap_report(found),
        sweeps=_sweeps(analysis, stage, beyond),
        reach=reach,
        worst=None if primary is None else _worst(analysis, found, primary),
        missing={f"objectives/{name}": needs for name, needs in found.missing.items()},
    )


def _objective(
    analysis: Analysis, found: WhatIf, name: str, beyond: Binned | None
) -> Report | None:
    if name not in found.verdicts or found.stage is None:
        return None
    verdict = found.verdicts[name]
    entry = objective_report(verdict)
    if name in M2PO:
        entry |= m2po_report(verdict, name)
    if entry["exact"]:
        return entry
    if name == "m2po" and verdict.stage.advantage is not None:
        scopes = analysis.ratios[verdict.stage.ratio].scopes
        entry |= m2po_from_histograms(scopes, analysis.options.budget)
        entry["zero_gradient_fraction"] = entry["masked_fraction"]
    elif beyond is not None and applies(verdict.objective):
        entry |= binned_report(beyond, verdict.objective)
    return entry


def _worst(analysis: Analysis, found: WhatIf, primary: str) -> list[Report]:
    scopes = analysis.ratios[primary].scopes
    verdict = found.verdicts.get("m2po")
    return marked(analysis.worst[primary], verdict, scopes, analysis.options.budget)


def _sweeps(analysis: Analysis, stage: Stage | None, beyond: Binned | None) -> Report:
    """Both sweeps, null without advantages; of all tokens, or from histograms beyond the sample."""
    options = analysis.options
    if beyond is not None and stage is not None:
        return {
            "clip": clip_sweep(beyond.d, beyond.advantage, beyond.count, options),
            "budget": budget_sweep_from_histograms(analysis.ratios[stage.ratio].scopes, options),
        }
    if stage is None or stage.advantage is None:
        return {"clip": None, "budget": None}
    return {
        "clip": clip_sweep(stage.d, stage.advantage, np.ones_like(stage.d), options),
        "budget": budget_sweep(stage, options),
    }
