"""verl names a backend for "cpu" and one for its device; here both are the processor."""

from functools import wraps
from typing import Any

import torch.distributed as dist

TWICE, ONCE = "cpu:gloo,cpu:gloo", "cpu:gloo"


def accept_one_backend() -> None:
    """Make `init_process_group` read "cpu:gloo,cpu:gloo", which torch refuses, as "cpu:gloo"."""
    original = dist.init_process_group
    if getattr(original, "accepts_one_backend", False):
        return

    @wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        original(ONCE if backend == TWICE else backend, *args, **kwargs)

    init_process_group.accepts_one_backend = True  # type: ignore[attr-defined]
    dist.init_process_group = init_process_group
