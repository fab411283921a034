"""What the log tests share: where the data is, reading a log whole, numbers in plain numpy."""

from pathlib import Path
from typing import Any

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.merging import concatenate
from m2po_lab.logs.open import Log, open_log

DATA = Path(__file__).parent.parent / "data"


def read(*paths: Any, **options: Any) -> tuple[TokenBatch, Log]:
    """Read a whole log as one batch."""
    log = open_log(list(paths), **options)
    return concatenate(list(log)), log


def count_and_m2(batch: TokenBatch, ratio: str) -> tuple[int, float]:
    """Kept finite tokens and their mean square log-ratio."""
    kept = np.asarray(batch.log_ratio(ratio))[np.asarray(batch.keep)]
    kept = kept[np.isfinite(kept)]
    return len(kept), float(np.mean(kept**2))
