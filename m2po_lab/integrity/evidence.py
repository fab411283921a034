"""BatchIntegrity: what must be known before a number is trusted, for any part of a log."""

from dataclasses import dataclass, field

from m2po_lab.integrity.additive import Additive, Floats
from m2po_lab.integrity.columns import Grid, Weights
from m2po_lab.integrity.duplicates import Keys
from m2po_lab.integrity.faults import Charge, Faults
from m2po_lab.integrity.groups import Groups
from m2po_lab.integrity.marks import Marks, overruled
from m2po_lab.integrity.padding import Repeats
from m2po_lab.integrity.pairs import Pair
from m2po_lab.integrity.reuse import Reuse
from m2po_lab.integrity.shifts import Shift, untrusted
from m2po_lab.integrity.steps import Cell, Halves, Step
from m2po_lab.integrity.versions import Versions


@dataclass(frozen=True)
class TokenCounts(Additive):
    """Tokens logged = kept + excluded + those of duplicate rows; each is counted once.

    A token with several faults counts under the first of: masked, unaligned, non_finite, sentinel,
    positive, zero_filled, edge: the tokens at the end of rows that a mask one token off lets in,
    which the report counts as masked, for that is what they are under the right mask.
    """

    logged: int = 0
    kept: int = 0
    masked: int = 0
    non_finite: int = 0
    sentinel: int = 0
    positive: int = 0
    zero_filled: int = 0
    unaligned: int = 0
    duplicate: int = 0
    edge: int = 0

    def to_dict(self) -> dict[str, object]:
        """The report's `tokens`."""
        kinds = ("masked", "non_finite", "sentinel", "positive", "zero_filled", "unaligned")
        excluded = {kind: vars(self)[kind] for kind in kinds}
        excluded["masked"] += self.edge
        return {"logged": self.logged, "kept": self.kept, "excluded": excluded}


@dataclass(frozen=True)
class RowCounts(Additive):
    """Rows read = kept + excluded; each row is counted once.

    Args:
        read: rows that became part of a batch.
        kept: with a counted token.
        empty: whose mask keeps no token.
        emptied: well formed, but every token that the mask keeps was excluded for its values.
        duplicate: that repeat another row.
        unaligned: whose columns do not belong to the same tokens.
    """

    read: int = 0
    kept: int = 0
    empty: int = 0
    emptied: int = 0
    duplicate: int = 0
    unaligned: int = 0

    def to_dict(self, unreadable: int = 0) -> dict[str, object]:
        """The report's `rows`.

        Under `empty` are all rows without a counted token, for whichever reason; under `bad` only
        the `unreadable` ones: malformed or cut short, they never became part of a batch.
        """
        excluded = {
            "empty": self.empty + self.emptied,
            "duplicate": self.duplicate,
            "bad": unreadable,
            "unaligned": self.unaligned,
        }
        return {"read": self.read + unreadable, "kept": self.kept, "excluded": excluded}


@dataclass(frozen=True)
class BatchIntegrity(Additive):
    """Evidence of a batch, or by `+` of a log; picklable, the same in any order.

    Args:
        tokens, rows: what was counted and what was not.
        faults: (kind, column, what) -> where values were no log-probs. Kinds: non_finite (what:
            nan, +inf, -inf, null, absent), sentinel, positive, zero_filled (what: "as
            padding ..." where every column has them), edge (what: first, last).
        fault_rows: kind -> rows with such a token in any column.
        lengths: (column, "longer" | "shorter") -> rows with that many more or fewer entries than
            tokens.
        retokenised: rows whose two id columns disagree.
        repeats: rows that repeat earlier ones of their step under new ids.
        columns: log-prob column -> number grid.
        weights: pile-ups of logged weights.
        marks: what nearly every row shows.
        versions: lags and mixed rows.
        reuse: rows that several trainer versions were given.
        groups: group ids.
        shifts, pairs, cells, halves: ratio -> evidence on its log-ratio.
        steps: step -> time line.
        keys: identities of the rows, to recognise duplicates in other parts.
        files: identities of files whose rows have no ids, for the same.
    """

    tokens: TokenCounts = field(default_factory=TokenCounts)
    rows: RowCounts = field(default_factory=RowCounts)
    faults: Faults = field(default_factory=dict)
    fault_rows: dict[str, int] = field(default_factory=dict)
    lengths: dict[tuple[str, str], int] = field(default_factory=dict)
    retokenised: int = 0
    repeats: Repeats = field(default_factory=Repeats)
    columns: dict[str, Grid] = field(default_factory=dict)
    weights: Weights | None = None
    marks: Marks = field(default_factory=Marks)
    versions: Versions | None = None
    reuse: Reuse | None = None
    groups: Groups | None = None
    shifts: dict[str, Shift] = field(default_factory=dict)
    pairs: dict[str, Pair] = field(default_factory=dict)
    cells: dict[str, dict[Cell, Floats]] = field(default_factory=dict)
    halves: dict[str, Halves] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    keys: Keys = field(default_factory=Keys)
    files: Keys = field(default_factory=Keys)

    @property
    def counted_twice(self) -> int:
        """Rows, and files of rows without ids, that two parts counted unseen by each other."""
        return self.keys.repeated + self.files.repeated

    def untrusted(self) -> dict[str, str]:
        """Ratio -> what it needs to be computable; such a ratio has no statistics."""
        return untrusted(self.shifts)

    def overruled(self) -> frozenset[Charge]:
        """What the log bears out and some of its batches were too small to see."""
        return overruled(self.marks, self.shifts)
