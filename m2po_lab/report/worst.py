"""The tokens with the largest |d|: a table, and each among its neighbours."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from m2po_lab.report.format import ABSENT, count, number, plain
from m2po_lab.report.grid import Column
from m2po_lab.report.items import Context, Excerpt, Grid, Item, Plot, Report, Token

MOST_TOKENS = 8
"""Single tokens shown; the JSON holds as many as the scan kept."""
LEGEND = (
    ("masked", "masked by M2PO"),
    ("active", "kept, but a trust region acts on it"),
    ("", "no trust region acts"),
    ("unsure", "not known"),
    ("worst", "the token of the table"),
)
"""Marks of a token in a context, and what they mean."""
KEEP = {True: "kept", False: "masked", None: ABSENT}


def worst_tokens(report: Report, bottom: str, top: str) -> Iterator[Item]:
    """Lay out the tokens with the largest |d| of the ratio top/bottom."""
    tokens = (report["worst"] or [])[:MOST_TOKENS]
    if not tokens:
        return
    yield Grid(token_table(tokens, bottom, top), f"The {len(tokens)} tokens with the largest |d|")
    yield Plot("probabilities")
    known = [token for token in tokens if token.get("context")]
    if known:
        contexts = [in_context(token) for token in known]
        used = {mark for c in contexts for token in c.tokens for mark in _marks(token)}
        legend = [Token(words, mark, "") for mark, words in LEGEND if mark in used]
        yield Context("Each in its context, with up to 8 counted tokens on either side.", legend)
        yield from contexts


def _marks(token: Token) -> list[str]:
    """Its marks, "" for none."""
    return token.marks.split() or [""]


def token_table(tokens: Sequence[dict[str, Any]], bottom: str, top: str) -> list[Column]:
    """Lay out single tokens: where they are, what both policies say, what M2PO would do."""

    def values(name: str, write: Callable[[Any], str]) -> list[str]:
        return [ABSENT if (v := token.get(name)) is None else write(v) for token in tokens]

    def column(head: str, name: str, write: Callable[[Any], str] = str, drop: int = 0) -> Column:
        return Column(head, values(name, write), drop=drop)

    short = [
        column("row", "row_id", lambda v: plain(v, limit=24)),
        column("text", "text", lambda v: plain(repr(v), limit=16)),
    ]
    left = [Column(c.head, c.cells, left=True) for c in short]
    known = left if any(token.get("text") is not None for token in tokens) else left[:1]
    keep = [_own(token).get("keep") for token in tokens]
    columns = [
        *known,
        column("step", "step"),
        column("lag", "lag"),
        column("position", "position"),
        column("token", "token_id", drop=2),
        column("d", "log_ratio", number),
        column(f"p {bottom}", f"{bottom}_probability", lambda v: number(v, 3)),
        column(f"p {top}", f"{top}_probability", lambda v: number(v, 3)),
    ]
    if any(token.get("advantage") is not None for token in tokens):
        columns.append(column("A", "advantage", lambda v: number(v, 3), drop=1))
    if any(value is not None for value in keep):
        columns.append(Column("M2PO", [KEEP[value] for value in keep], drop=3))
    return columns


def _own(token: dict[str, Any]) -> dict[str, Any]:
    """The token's own entry in its context."""
    entries = token.get("context") or []
    return next((entry for entry in entries if entry["position"] == token["position"]), {})


def in_context(token: dict[str, Any]) -> Context:
    """Put a token among its neighbours, marked by what M2PO does to them in their scope."""
    tokens = [
        Token(name_of(other), marks_of(other, token), _note(other)) for other in token["context"]
    ]
    return Context(caption_of(token), tokens, _excerpt(token))


def caption_of(token: dict[str, Any]) -> str:
    """Name the response of a token: row, step, lag."""
    place = [f"row {plain(token['row_id'], limit=40)}"] if token.get("row_id") else []
    place += [f"{name} {token[name]}" for name in ("step", "lag") if token.get(name) is not None]
    return ", ".join(place) or "a response"


def name_of(token: dict[str, Any]) -> str:
    """What to call a token: its text where the log has it, else its id."""
    if token.get("text"):
        return plain(token["text"], limit=32)
    return "?" if token.get("token_id") is None else str(token["token_id"])


def marks_of(token: dict[str, Any], worst: dict[str, Any]) -> str:
    """How to mark a token of the context of `worst`: any of the marks of LEGEND."""
    d, advantage, keep = token["log_ratio"], token.get("advantage"), token.get("keep")
    found = {
        "worst": token["position"] == worst["position"],
        "masked": keep is False,
        "active": bool(keep) and d is not None and advantage is not None and d * advantage > 0,
        "unsure": keep is None,
    }
    return " ".join(mark for mark, on in found.items() if on)


def _note(token: dict[str, Any]) -> str:
    known = [f"position {token['position']}"]
    if token.get("text") and token.get("token_id") is not None:
        known.append(f"token {token['token_id']}")
    known.append(f"d {number(token['log_ratio'])}")
    if token.get("advantage") is not None:
        known.append(f"A {number(token['advantage'])}")
    return ", ".join((*known, KEEP[token.get("keep")]))


def _excerpt(token: dict[str, Any]) -> Excerpt | None:
    """The response around the token, and where it was cut."""
    part = token.get("response")
    if not part:
        return None
    first, whole = token["response_start"], token["response_characters"]
    at = token["response_at"]
    low, high = at or (len(part), len(part))
    cut = len(part) < whole
    note = f"characters {count(first + 1)} to {count(first + len(part))} of {count(whole)}"
    if at is None:
        beginning = f"its beginning, {note}" if cut else "the whole of it"
        note = f"{beginning}; the log does not say where in it the token stands"
    return Excerpt(
        before=("…" if first else "") + plain(part[:low]),
        token=plain(part[low:high]),
        after=plain(part[high:]) + ("…" if first + len(part) < whole else ""),
        note=f"Response, {note}." if cut or at is None else "Response, the whole of it.",
    )
