"""Hand-made batches for the analysis tests."""

import numpy as np

from m2po_lab.core.batch import TokenBatch
from m2po_lab.logs.rows import Rows


def make_batch(
    seed: int,
    rows: int = 40,
    scale: float = 0.2,
    longest: int = 40,
    steps: int = 3,
    advantages: bool = True,
) -> TokenBatch:
    """Return a ragged batch with all three log-probs, versions, rewards and groups."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest, rows)
    n = int(lengths.sum())
    behavior = -0.001 - rng.exponential(1.0, n)
    proximal = np.minimum(behavior + rng.normal(0, scale / 4, n), -1e-6)
    current = np.minimum(proximal + scale * rng.standard_t(3, n), -1e-7)
    per_row = rng.choice([-1.0, 0.0, 0.5, 1.0], rows)
    train = rng.integers(5, 9, rows)
    return TokenBatch(
        behavior_logp=behavior,
        proximal_logp=proximal,
        current_logp=current,
        advantage=np.repeat(per_row, lengths) if advantages else None,
        keep=rng.random(n) < 0.9,
        entropy=rng.exponential(0.5, n),
        version=np.repeat(train, lengths) - rng.integers(0, 5, n),
        lengths=lengths,
        rows=Rows(
            source=[f"seed{seed}"] * rows,
            line=np.arange(rows),
            row_id=[f"{seed}/{i}" for i in range(rows)],
            group_id=[f"{seed}/{i // 4}" for i in range(rows)],
            step=rng.integers(0, steps, rows),
            train_version=train,
            reward=rng.integers(0, 2, rows).astype(float),
            finish_reason=[str(r) for r in rng.choice(["stop", "length"], rows)],
            response_length=lengths,
        ),
    )
