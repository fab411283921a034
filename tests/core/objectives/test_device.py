"""Where the computation happens: on the device of the batch, whatever the default device is."""

import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import AGGREGATIONS, OBJECTIVES, applied, objective
from tests.conftest import load
from tests.core.objectives.conftest import columns

ON_DEVICE = sorted(name for name, spec in OBJECTIVES.items() if spec.compile_note is None)


def elsewhere():
    """Tensors on torch's meta device, which knows shapes only: any copy to the CPU is an error."""
    torch = load("torch")
    values = {k: torch.asarray(v).to("meta") for k, v in columns().items()}
    values["current_logp"].requires_grad_(True)
    return values


@pytest.fixture(autouse=True)
def without_checks_of_values(monkeypatch):
    monkeypatch.setattr(applied, "_compiling", lambda: True)


@pytest.mark.parametrize("name", ON_DEVICE)
def test_loss_gradient_and_diagnostics_stay_on_the_device_of_the_batch(name):
    for aggregation in AGGREGATIONS:
        length = {"max_length": 8} if aggregation == "constant" else {}
        values = elsewhere()
        loss, diagnostics = objective(name, aggregation, **length).loss(TokenBatch(**values))
        loss.backward()
        assert values["current_logp"].grad.device.type == "meta"
        assert {value.device.type for value in diagnostics.values()} == {"meta"}


@pytest.mark.parametrize("name", ["m2po", "m2po_areal", "m2po_all_tokens"])
def test_the_loss_under_a_given_mask_stays_on_the_device_of_the_batch(name):
    values = elsewhere()
    loss = objective(name).token_loss(TokenBatch(**values), values["keep"])
    loss.sum().backward()
    assert values["current_logp"].grad.device.type == "meta"
