"""Bytes of a GPU, against sums by hand and against what models are known to weigh."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from full_scale.models import MODELS, Model
from full_scale.plan import memory as parts
from full_scale.plan.assumptions import Assumptions
from full_scale.plan.memory import memory
from full_scale.plan.queue import queue
from full_scale.recipes import RECIPES, Recipe

TINY = Model(
    hub_id="tiny",
    label="tiny",
    layers=2,
    hidden=8,
    intermediate=16,
    heads=4,
    kv_heads=2,
    head_size=2,
    vocabulary=10,
    positions=64,
    tied=False,
)
RUN = Recipe(
    name="tiny",
    model="tiny",
    method="m2po",
    staleness=8,
    gpus_per_node=2,
    train_batch_size=4,
    samples=3,
    mini_batch_size=2,
    max_prompt_length=4,
    max_response_length=12,
    tokens_per_gpu=100,
    gpu_memory_utilization=0.5,
    other_shape=TINY,
)
# Layer: q 8x8, k and v 8x4, o 8x8, three of 8x16, two norms of 8. All: 2 layers, 2 x 10x8, a norm.
LAYER = 64 + 2 * 32 + 64 + 3 * 128 + 16
ALL = 2 * LAYER + 160 + 8
ASSUMED = Assumptions(gpu_gb=1e-3, overhead_gb=1e-5, vllm_gb=2e-5)


def test_the_parts_of_a_tiny_model_are_those_computed_by_hand():
    found = memory(RUN, ASSUMED)
    assert TINY.parameters == ALL == 1352
    assert found.training == pytest.approx(
        {
            "weights": 4 * ALL / 2,
            "gradients": 4 * ALL / 2,
            "optimizer": 8 * ALL / 2,
            "gathered layers": 2 * (2 * LAYER + 168) + 6 * LAYER,
            "activations": 2 * 8 * 2 * 100,
            "recomputed layer": 2 * (6 * 8 + 2 * 8 + 3 * 4 + 4 * 16) * 100,
            "logits": 4 * 10 * 100,
            "overhead": 1e4,
        }
    )
    assert found.sampling == pytest.approx(
        {
            "weights": 4 * ALL / 2,
            "optimizer": 0,
            "vLLM weights": 2 * ALL,
            "vLLM activations": 2e4,
            "KV cache": 0.5 * 1e6 - 2 * ALL - 2e4,
            "overhead": 1e4,
        }
    )
    assert found.training_peak == pytest.approx(
        sum(found.training.values()) - found.training["logits"]
    )
    assert found.fits


def test_without_offload_the_optimizer_stays_while_sampling():
    found = memory(replace(RUN, offload=False), ASSUMED)
    assert found.sampling["optimizer"] == found.training["optimizer"] == 4 * ALL
    assert parts.offloaded_bytes(replace(RUN, offload=False)) == 0
    assert parts.offloaded_bytes(RUN) == 8 * ALL


def test_a_model_that_is_too_large_for_its_gpus_does_not_fit():
    big = replace(RECIPES["qwen2.5-32b-m2po-s256"], nodes=1)
    assert not memory(big, Assumptions()).fits
    assert memory(big, Assumptions()).sampling["KV cache"] > 0
    assert memory(replace(big, tensor_parallel=1), Assumptions()).sampling["KV cache"] == 0


# Parameters as their model cards give them, in billions.
@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama3.2-3b-instruct", 3.21),
        ("qwen2.5-math-7b", 7.62),
        ("qwen3-1.7b", 1.72),
        ("qwen3-4b", 4.02),
        ("qwen3-8b", 8.19),
        ("qwen2.5-32b", 32.76),
    ],
)
def test_the_models_have_as_many_parameters_as_published(name, billions):
    assert MODELS[name].parameters / 1e9 == pytest.approx(billions, abs=0.006)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_fits_into_80_gigabytes(name):
    assert memory(RECIPES[name], Assumptions()).fits


@given(nodes=st.integers(1, 64))
def test_sharded_parts_shrink_with_the_number_of_gpus_and_the_others_do_not(nodes):
    one, many = (memory(replace(RUN, nodes=n), ASSUMED).training for n in (1, nodes))
    for part in ("weights", "gradients", "optimizer"):
        assert many[part] * nodes == pytest.approx(one[part])
    for part in ("gathered layers", "activations", "recomputed layer", "logits"):
        assert many[part] == one[part]


@given(tokens=st.integers(1, 100_000))
def test_activations_and_logits_are_proportional_to_the_tokens(tokens):
    one, many = (memory(replace(RUN, tokens_per_gpu=n), ASSUMED).training for n in (1, tokens))
    for part in ("activations", "recomputed layer", "logits"):
        assert many[part] == pytest.approx(tokens * one[part])


def test_checkpointing_keeps_what_torch_keeps_for_a_block_of_this_shape():
    """Bytes that autograd saves for the backward pass of one block, in bfloat16."""
    width, inner, tokens = 64, 192, 32
    x = torch.randn(1, tokens, width, dtype=torch.bfloat16, requires_grad=True)
    gate, up = (torch.randn(inner, width, dtype=torch.bfloat16) for _ in range(2))
    down = torch.randn(width, inner, dtype=torch.bfloat16)
    saved = {}
    weights = {gate.data_ptr(), up.data_ptr(), down.data_ptr()}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        gate.requires_grad_(), up.requires_grad_(), down.requires_grad_()
        hidden = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
        (hidden @ down.T).sum().backward()
    # The feed-forward half of `layer_bytes`: its input and four values of the inner width.
    assert sum(saved.values()) == 2 * tokens * (width + 4 * inner)


def test_the_queue_holds_one_batch_more_than_it_is_stale():
    found = queue(RUN, prompt_mean=3, response_mean=5)
    assert RUN.staleness_steps == 4
    assert (found.batches, found.rows) == (5, 60)
    assert found.bytes == 60 * (24 * 8 + 24 * 5 + 4000)
