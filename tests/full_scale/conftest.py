import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# verl warns on import of backends that are not installed and of deprecated modules: not ours.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import verl.trainer.ppo.v1
    import verl.workers.engine  # noqa: F401


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    from full_scale.cpu_support.model import save_model

    return save_model(tmp_path_factory.mktemp("model"))
