import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# verl warns on import about every backend that is not installed; those are no errors of ours.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import verl.workers.engine  # noqa: F401


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    from full_scale.cpu_support.model import save_model

    return save_model(tmp_path_factory.mktemp("model"))
