"""Every number that a finding is held against, with where it comes from."""

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Threshold:
    """One number.

    Args:
        value: the default.
        meaning: what it limits, with its unit.
        source: who regards it as the limit, or why it is here.
    """

    value: float
    meaning: str
    source: str


_HERE = "set here; no healthy test file fires at 1/1024 to 1024 x (bench/thresholds.py)"
_COUNT = "fewer say nothing"


def _measured(sick: str) -> str:
    """Where the file made for the fault would lose it; see bench/thresholds.py."""
    return f"set here; the faulty test file gives {sick}, no healthy one fires at 1/1024 to 1024 x"


THRESHOLDS: Mapping[str, Threshold] = {
    "min_tokens": Threshold(100, "kept tokens a cell needs for a verdict", _COUNT),
    "min_rows": Threshold(8, "rows a cell needs for a verdict", _COUNT),
    "shift_correlation": Threshold(0.5, "correlation at a shift of one token", _HERE),
    "shift_margin": Threshold(0.2, "by how much it exceeds the unshifted one", _HERE),
    "shift_pairs": Threshold(50, "token pairs from which correlations are judged", _COUNT),
    "shift_row_share": Threshold(0.05, "share of rows that fit better when shifted", _HERE),
    "edge_share": Threshold(
        0.9, "rows with an impossible first (last) kept token", "'nearly every'"
    ),
    "edge_inside_share": Threshold(0.02, "the same among the tokens between, at most", _HERE),
    "equal_share": Threshold(
        0.999, "tokens on which two columns agree to the last bit", "float32 agrees by chance 1e-6"
    ),
    "equal_tokens": Threshold(100, "tokens from which equality is judged", _COUNT),
    "grid_share": Threshold(
        0.99, "values on a narrow float's grid", "float32 lies on float16's by chance 1e-4"
    ),
    "cap_share": Threshold(
        0.002, "weights that equal the largest (smallest) one exactly", _measured(".057")
    ),
    "cap_tokens": Threshold(5, "how many they are at least", _COUNT),
    "certain_tokens": Threshold(
        1, "tokens of probability >= .5 scored 2 nats lower at lag 0", "rounding never does this"
    ),
    "floor_m2": Threshold(0.01, "M2 at lag 0, nats^2", "martingale: healthy lag-0 floor < 1e-2"),
    "drift_m2": Threshold(0.04, "M2 of drift, nats^2", "M2PO's tau, arXiv 2510.01161"),
    "drift_growth": Threshold(3, "M2 over the lag-0 floor", "martingale: jumps < 3x are healthy"),
    "sync_growth": Threshold(5, "lag-0 M2 late in the log over early", "verl#7495: 36x"),
    "sync_steps": Threshold(4, "steps from which growth is judged", _COUNT),
    "sync_rank": Threshold(0.5, "rank correlation with step; a jump at half time has .54", _HERE),
    "trend_rank": Threshold(0.7, "rank correlation with step that is a trend", _HERE),
    "lag_jump": Threshold(4, "lags above the largest of all steps before", "AReaL#1388"),
    "slope": Threshold(
        0.1, "|slope| of d on log-prob; a temperature off by 10 %", _measured(".44")
    ),
    "slope_explained": Threshold(
        0.5, "share of the spread of d that log-prob explains", _measured(".86")
    ),
    "support_deficit": Threshold(0.01, "1 - E[r] of a lost support", "top-p .99 loses 1 %"),
    "support_outside": Threshold(0.02, "tokens outside [log p, 0]", _HERE),
    "support_mass": Threshold(0.5, "smallest p that is taken for a truncated support", _HERE),
    "outlier_share": Threshold(0.9, "share of M2 in the top 1 % of tokens", "miles#1067"),
    "outlier_median": Threshold(0.01, "median |d|, nats, of the other tokens", _measured(".0043")),
    "outlier_m2": Threshold(0.01, "M2 that outliers carry, nats^2", "martingale floor"),
    "tail_share": Threshold(0.9, "share of sum d^2 on one side", _measured("1.0")),
    "tail_tokens": Threshold(5, "tokens with |d| > .5 that make a tail", _COUNT),
    "tail_rows": Threshold(5, "rows they come from", _COUNT),
    "heavy_share": Threshold(0.25, "share of sum d^2 at d > 0 where k-hat counts", _HERE),
    "pareto_k": Threshold(0.7, "Pareto k-hat of the weights", "Vehtari et al., arXiv 1507.02646"),
    "negative_share": Threshold(0.75, "share of sum d^2 at A != 0 in (A<0, r<1)", _measured("1.0")),
    "exact_share": Threshold(0.8, "tokens with |d| < .06 beside a second population", _HERE),
    "apart_low": Threshold(0.005, "tokens with |d| > .5 that make a second population", _HERE),
    "apart_high": Threshold(0.2, "beyond which they are no minority", _HERE),
    "apart_side": Threshold(0.2, "share of those on the smaller side", "routing errs both ways"),
    "clip_floor_share": Threshold(
        0.04, "lag-0 tokens outside the clip range", "RLinf#1534: .046; bf16: .008"
    ),
    "product_share": Threshold(0.1, "rows whose product ratio is beyond e^8 or e^-8", _HERE),
    "product_rows": Threshold(3, "how many they are at least", _COUNT),
    "growth": Threshold(2, "M2 of the later half of a row over the earlier", "flat when healthy"),
    "growth_p": Threshold(0.005, "sign test over rows", _HERE),
    "length_correlation": Threshold(0.3, "|r| of log length and lag, within steps", _HERE),
    "length_z": Threshold(4, "its distance from 0 in standard errors", _HERE),
    "entropy_fraction": Threshold(0.25, "entropy late in the log over early", _measured(".077")),
    "entropy_nats": Threshold(0.3, "entropy that is close to 0, nats", "verl#4818"),
    "entropy_start": Threshold(
        0.05, "entropy early in the log, nats, below which none is left", _measured("1.8")
    ),
    "entropy_tokens": Threshold(50, "tokens a step needs", _COUNT),
    "no_signal_steps": Threshold(0.5, "share of steps without an advantage != 0", "'most steps'"),
    "signal_rows": Threshold(32, "rows from which missing signal is judged", _COUNT),
    "moving_m2": Threshold(0.01, "M2 of steps that had nothing to learn from", "martingale floor"),
    "group_rows": Threshold(16, "rows from which group ids are judged", _COUNT),
}
"""Name -> number. `--thresholds FILE.toml` holds lines such as `drift_m2 = 0.1`."""


KINDS: Mapping[type, str] = {str: "a string", bool: "a boolean", list: "an array", dict: "a table"}
"""What TOML calls the types that a threshold cannot have."""


def resolve(changes: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return all thresholds with some changed.

    Raises:
        ValueError: no such threshold, or a value that is no finite number of at least 0.
    """
    values = {name: threshold.value for name, threshold in THRESHOLDS.items()}
    for name, value in (changes or {}).items():
        if name not in values:
            close = difflib.get_close_matches(name, values, n=1)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(values)}"
            raise ValueError(f"no threshold is called {name!r}; {hint}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            kind = KINDS.get(type(value), type(value).__name__)
            raise ValueError(f"{name} = {value!r} is {kind}; give a number of at least 0")
        if not (math.isfinite(value) and value >= 0):
            problem = "is not finite" if not math.isfinite(value) else "is negative"
            raise ValueError(f"{name} = {value!r} {problem}; give a number of at least 0")
        values[name] = float(value)
    return values


def load_thresholds(path: str | Path) -> dict[str, float]:
    """Read changes to thresholds from a TOML file.

    Raises:
        ValueError: not TOML, or not as `resolve` wants it.
    """
    try:
        changes = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}; write lines such as: drift_m2 = 0.1") from error
    resolve(changes)
    return {name: float(value) for name, value in changes.items()}


DEFAULT: Mapping[str, float] = resolve()
