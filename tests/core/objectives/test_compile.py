"""torch.compile: every objective is one graph, or its spec says why not."""

from importlib import import_module

import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns

SLOW = {"bapo"}
"""Its search unrolls into thousands of operations."""
NAMES = [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in sorted(OBJECTIVES)]


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", NAMES)
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
        with pytest.raises(import_module("torch._dynamo.exc").TorchDynamoException):
            compiled(current)
        return
    compiled(current).backward()
    assert to_numpy(current.grad) == pytest.approx(eager_gradient(chosen), rel=1e-12)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", ["m2po", "m2po_areal", "m2po_all_tokens"])
def test_the_loss_under_a_mask_solved_before_compiles_into_one_graph(name):
    torch, chosen = load("torch"), objective(name)
    values = {k: torch.asarray(v) for k, v in columns().items()}
    keep = chosen.keep(TokenBatch(**values))
    divisor = chosen.divisor(TokenBatch(**values))

    def loss(current):
        batch = TokenBatch(**{**values, "current_logp": current})
        return (chosen.token_loss(batch, keep) / divisor).sum()

    torch.compiler.reset()
    current = values["current_logp"].clone().requires_grad_(True)
    torch.compile(loss, fullgraph=True, backend="eager")(current).backward()
    assert to_numpy(current.grad) == pytest.approx(eager_gradient(chosen), rel=1e-12)


def eager_gradient(chosen):
    tokens = batch(columns(), load("torch"), gradient=True)
    chosen.loss(tokens)[0].backward()
    return to_numpy(tokens.current_logp.grad)
