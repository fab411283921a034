"""torch.compile: every objective is one graph, or its spec says why not."""

import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_an_objective_compiles_into_one_graph_or_says_why_not(name):
    torch, spec = load("torch"), OBJECTIVES[name]
    chosen = objective(name)
    values = {k: torch.asarray(v) for k, v in columns().items()}

    def loss(current):
        return chosen.loss(TokenBatch(**{**values, "current_logp": current}))[0]

    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    current = values["current_logp"].clone().requires_grad_(True)
    if spec.compile_note is not None:
        with pytest.raises(torch._dynamo.exc.TorchDynamoException):
            compiled(current)
        return
    compiled(current).backward()
    tokens = batch(columns(), torch, gradient=True)
    chosen.loss(tokens)[0].backward()
    assert to_numpy(current.grad) == pytest.approx(to_numpy(tokens.current_logp.grad), rel=1e-12)
