"""The numbers behind the figures of the what-ifs and of the worst tokens, as rows."""

from collections.abc import Callable
from typing import Any

from m2po_lab.report.alike import alike
from m2po_lab.report.objectives import computable, leading, share
from m2po_lab.report.worst import MOST_TOKENS, caption_of, marks_of

Rows = list[dict[str, Any]]
Report = dict[str, Any]

FIELDS = (
    "zero_gradient_fraction",
    "binding_fraction_positive",
    "binding_fraction_negative",
    "mass_kept",
    "weight_mean",
    "weight_ess_fraction",
    "variance_ratio",
)
"""Numbers of an objective that the table of what-ifs shows."""


def objectives(report: Report) -> Rows:
    """What each objective that can be computed does to the tokens."""
    return [
        {
            "objective": name,
            **{field: share(report["objectives"][name], field) for field in FIELDS},
            **{field: report["objectives"][name].get(field) for field in ("tokens", "exact")},
        }
        for name in computable(report)
    ]


def overlaps(report: Report) -> Rows:
    """Jaccard index of each pair of different dropped sets; `also` drop the same as the first."""
    groups = alike(report["overlap"], leading(report))
    if len(groups) < 2:
        return []
    jaccard = report["overlap"]["jaccard"]
    return [
        {
            "first": a.short,
            "second": b.short,
            "jaccard": jaccard[a.at][b.at],
            "first_also": ", ".join(a.names[1:]),
            "second_also": ", ".join(b.names[1:]),
        }
        for a in groups
        for b in groups
    ]


def lost_by(kind: str) -> Callable[[Report], Rows]:
    """Share of the tokens of each bin that each different dropped set holds."""

    def rows(report: Report) -> Rows:
        return [
            {"objective": group.short, "also": ", ".join(group.names[1:]), **cell}
            for group in alike(report["overlap"], leading(report))
            for cell in report["objectives"][group.names[0]].get(f"lost_by_{kind}") or []
            if cell["n"]
        ]

    return rows


def worst(report: Report) -> Rows:
    """Each worst token and its neighbours, with what M2PO does to them; `keep` null: not known."""
    return [
        {
            "rank": rank,
            "response": caption_of(token),
            "row_id": token.get("row_id"),
            "step": token.get("step"),
            "lag": token.get("lag"),
            "offset": other["position"] - token["position"],
            **{name: other.get(name) for name in ("position", "token_id", "text")},
            **{name: other.get(name) for name in ("log_ratio", "advantage", "keep")},
            "marks": marks_of(other, token),
        }
        for rank, token in enumerate((report["worst"] or [])[:MOST_TOKENS], start=1)
        for other in token.get("context") or []
    ]
