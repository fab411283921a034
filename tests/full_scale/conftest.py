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


@pytest.fixture(scope="session")
def launched(tmp_path_factory):
    """A recipe of the paper, shrunk to the processor, 2 batches stale: 3 steps, then 1 more."""
    from tiny import launch_twice

    folder = tmp_path_factory.mktemp("launched")
    return launch_twice(folder, "qwen2.5-math-7b-m2po-s256", staleness=2, steps=3)
