"""torch.compile: every objective is one graph, or its spec says why not.

BACKEND is inductor without its code generation: the graphs of forward and backward, decomposed and
partitioned. Generating and compiling code takes seconds an objective, so the token losses of all
objectives of token scope share one graph there.
"""

from importlib import import_module

import numpy as np
import pytest

from m2po_lab.core.batch import TokenBatch
from m2po_lab.core.objectives import OBJECTIVES, objective
from tests.conftest import load, to_numpy
from tests.core.objectives.conftest import batch, columns

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]
BACKEND = "aot_eager_decomp_partition"
TOKEN_SCOPE = sorted(n for n, spec in OBJECTIVES.items() if spec.scope == "token")


def test_an_objective_compiles_into_one_graph_or_says_why_not(name):
    torch, spec = load("torch"), OBJECTIVES[name]
    chosen = objective(name)
    values = {k: torch.asarray(v) for k, v in columns().items()}

    def loss(current):
        return chosen.loss(TokenBatch(**{**values, "current_logp": current}))[0]

    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend=BACKEND)
    current = values["current_logp"].clone().requires_grad_(True)
    if spec.compile_note is not None:
        with pytest.raises(import_module("torch._dynamo.exc").TorchDynamoException):
            compiled(current)
        return
    compiled(current).backward()
    assert to_numpy(current.grad) == pytest.approx(eager_gradient(chosen), rel=1e-12)


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
    torch.compile(loss, fullgraph=True, backend=BACKEND)(current).backward()
    assert to_numpy(current.grad) == pytest.approx(eager_gradient(chosen), rel=1e-12)


@pytest.mark.slow
def test_inductor_generates_code_for_every_objective_of_token_scope():
    torch = load("torch")
    chosen = [objective(name) for name in TOKEN_SCOPE]
    values = {k: torch.asarray(v) for k, v in columns().items()}
    keeps = [each.keep(TokenBatch(**values)) for each in chosen]
    share = torch.linspace(1, 2, len(chosen), dtype=torch.float64)

    def losses(current):
        tokens = TokenBatch(**{**values, "current_logp": current})
        pairs = zip(chosen, keeps, strict=True)
        return torch.stack([each.token_loss(tokens, keep).sum() for each, keep in pairs])

    def value_and_gradient(function):
        current = values["current_logp"].clone().requires_grad_(True)
        value = function(current)
        (value * share).sum().backward()
        return to_numpy(value), to_numpy(current.grad)

    torch.compiler.reset()
    compiled = value_and_gradient(torch.compile(losses, fullgraph=True, backend="inductor"))
    for ours, theirs in zip(value_and_gradient(losses), compiled, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-15)


def eager_gradient(chosen):
    tokens = batch(columns(), load("torch"), gradient=True)
    chosen.loss(tokens)[0].backward()
    return to_numpy(tokens.current_logp.grad)
