"""full_scale/README.md names what there is."""

from dataclasses import fields
from pathlib import Path

import pytest
from verl.workers.config import PolicyLossConfig

import full_scale
from full_scale.verl_plugin import MODES, M2POLossConfig
from full_scale.verl_plugin.config import SCOPES
from full_scale.verl_plugin.metrics import finished, staleness


@pytest.fixture(scope="module")
def text():
    return (Path(full_scale.__file__).parent / "README.md").read_text()


def test_every_mode_that_depends_on_the_mini_batch_is_named(text):
    for name, mode in MODES.items():
        if mode.selection in ("micro-batch", "gathered") and not name.startswith("lab_m2po_r"):
            assert f"`{name}`" in text or name in ("lab_m2po_areal",)


def test_every_scope_is_explained_with_its_number(text):
    for number, scope in enumerate(SCOPES):
        assert f"| `{scope}` |" in text
        assert f"{number} {scope}" in text


def test_every_metric_is_explained(text):
    counts = ("valid", "active", "active_kept", "kept", "square", "square_kept")
    names = finished(dict.fromkeys(counts, 1.0), None, M2POLossConfig()) | staleness([1], [1], 2)
    for name in names:
        assert f"`{name}`" in text


def test_every_setting_of_the_log_and_the_mask_is_mentioned(text):
    own = {field.name for field in fields(M2POLossConfig)} - {
        field.name for field in fields(PolicyLossConfig)
    }
    for name in own:
        assert name in text
