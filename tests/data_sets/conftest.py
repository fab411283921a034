import json

import pytest

from tests.data_sets.published import rows_of


@pytest.fixture
def hub(tmp_path):
    """A folder with three rows of each set, as if it had been brought from the hub."""
    folder = tmp_path / "hub"
    folder.mkdir()
    for name in ("deepscaler", "aime24", "amc23", "olympiad"):
        save(folder / f"{name}.jsonl", rows_of(name, 3))
    return folder


def save(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
