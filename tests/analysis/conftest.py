"""The batch most analysis tests start from."""

import pytest

from m2po_lab.core.batch import TokenBatch
from tests.analysis.batches import make_batch


@pytest.fixture
def batch() -> TokenBatch:
    """Return one batch of 40 rows."""
    return make_batch(0)
