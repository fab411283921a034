"""The tokens with the largest |d|: a table, and each among its neighbours."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from m2po_lab.report.format import ABSENT, number, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Context, Grid, Item, Report, Token

MOST_TOKENS = 8
"""Single tokens shown; the JSON holds as many as the scan kept."""
LEGEND = (
    "In context, by token id. Outlined: the token of the table. Red: active, and M2PO masks such a "
    "large |d|. Orange: active and kept."
)
MOST_CHARACTERS = 400
"""Of a response in words, at most this much is shown."""


def worst_tokens(report: Report, bottom: str, top: str) -> Iterator[Item]:
    """Lay out the tokens with the largest |d| of the ratio top/bottom."""
    tokens = (report["worst"] or [])[:MOST_TOKENS]
    if not tokens:
        return
    yield Grid(token_table(tokens, bottom, top), f"The {len(tokens)} tokens with the largest |d|")
    threshold = ((report["objectives"] or {}).get("m2po") or {}).get("threshold")
    known = [token for token in tokens if token.get("context")]
    if known:
        yield Context(LEGEND)
    for token in known:
        yield in_context(token, threshold)


def token_table(tokens: Sequence[dict[str, Any]], bottom: str, top: str) -> list[Column]:
    """Lay out single tokens: where they are, and what both policies and the advantage say."""

    def values(name: str, write: Callable[[Any], str]) -> list[str]:
        return [ABSENT if (v := token.get(name)) is None else write(v) for token in tokens]

    return [
        Column("row", values("row_id", lambda v: plain(v, limit=32)), left=True),
        Column("step", values("step", str)),
        Column("lag", values("lag", str)),
        Column("position", values("position", str)),
        Column("token", values("token_id", str), drop=2),
        Column("d", values("log_ratio", number)),
        Column(f"p {bottom}", values(f"{bottom}_probability", lambda v: number(v, 3))),
        Column(f"p {top}", values(f"{top}_probability", lambda v: number(v, 3))),
        Column("A", values("advantage", lambda v: number(v, 3)), drop=1),
    ]


def in_context(token: dict[str, Any], threshold: float | None) -> Context:
    """Put a token among its neighbours, marked by what M2PO would do to them."""
    place = [f"row {plain(token['row_id'], limit=60)}"] if token.get("row_id") else []
    place += [f"{name} {token[name]}" for name in ("step", "lag") if token.get(name) is not None]
    return Context(
        caption=", ".join(place) or "a response",
        tokens=[_neighbour(token, other, threshold) for other in token["context"]],
        text=plain(token.get("response") or "", limit=MOST_CHARACTERS),
    )


def _neighbour(token: dict[str, Any], other: dict[str, Any], threshold: float | None) -> Token:
    d, advantage = other["log_ratio"], token.get("advantage") or 0.0
    active = d is not None and d * advantage > 0
    masked = active and threshold is not None and abs(d) >= threshold
    found = {
        "worst": other["position"] == token["position"],
        "active": active and not masked,
        "masked": masked,
    }
    name = other.get("token_id")
    return Token(
        text="?" if name is None else str(name),
        marks=" ".join(mark for mark, on in found.items() if on),
        note=f"position {other['position']}, d {number(d)}",
    )
