from collections import Counter

import pytest

from full_scale.models import MODELS
from full_scale.recipes import ARMS, METHODS, RECIPES, SWEEP_BUDGET, SWEEP_STALENESS, SWEPT
from m2po_lab.core.objectives import OBJECTIVES, objective

every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())


def test_every_model_is_trained_with_every_arm_of_the_paper():
    arms = {("grpo", 0), ("grpo", 256), ("gspo", 256), ("m2po", 0), ("m2po", 256), ("none", 256)}
    assert set(ARMS) == arms
    trained = {(each.model, each.method, each.staleness) for each in RECIPES.values()}
    assert trained >= {(model, *arm) for model in MODELS for arm in arms}
    assert len(MODELS) == 6


def test_staleness_is_swept_for_both_methods_that_the_paper_compares():
    assert set(SWEEP_STALENESS) == {0, 32, 64, 128, 256}
    for method in ("grpo", "m2po"):
        swept = {
            each.staleness
            for each in RECIPES.values()
            if (each.model, each.method) == (SWEPT, method)
        }
        assert swept == set(SWEEP_STALENESS)


def test_the_budget_is_swept_around_the_one_of_the_paper():
    swept = {
        each.budget
        for each in RECIPES.values()
        if (each.model, each.method, each.staleness) == (SWEPT, "m2po", 256)
    }
    assert swept == set(SWEEP_BUDGET)
    assert min(swept) < 0.04 < max(swept)


def test_no_two_recipes_run_the_same():
    runs = Counter((r.model, r.method, r.staleness, r.budget) for r in RECIPES.values())
    assert max(runs.values()) == 1
    assert all(name == recipe.name for name, recipe in RECIPES.items())


@every_recipe
def test_staleness_is_a_whole_number_of_batches(recipe):
    assert recipe.updates_per_step * recipe.mini_batch_size == recipe.train_batch_size
    assert recipe.staleness_steps * recipe.updates_per_step == recipe.staleness


@every_recipe
def test_batches_divide_among_gpus_and_heads_among_engines(recipe):
    assert recipe.mini_batch_size * recipe.samples % recipe.gpus == 0
    assert recipe.gpus_per_node % recipe.tensor_parallel == 0
    assert recipe.shape.heads % recipe.tensor_parallel == 0
    assert recipe.shape.kv_heads % recipe.tensor_parallel == 0


@every_recipe
def test_prompt_and_response_fit_the_model_and_a_micro_batch(recipe):
    assert recipe.context <= recipe.shape.positions
    assert recipe.context <= recipe.tokens_per_gpu
    assert recipe.context == (4096 if recipe.model == SWEPT else 16384)


@every_recipe
def test_a_budget_belongs_to_m2po_alone(recipe):
    assert (recipe.budget is not None) == (recipe.method == "m2po")


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_every_method_names_an_objective_of_the_core_and_its_parameters(method):
    name = method.loss_mode.removeprefix("lab_")
    assert name in OBJECTIVES
    made = objective(name, **method.objective)
    assert ("proximal_logp" in made.needs) == (not method.bypass)


def test_parameters_count_what_is_published():
    """Rounded counts of the model cards, without the second copy of a tied embedding."""
    billions = {name: round(model.parameters / 1e9, 2) for name, model in MODELS.items()}
    assert billions == {
        "llama3.2-3b-instruct": 3.21,
        "qwen2.5-math-7b": 7.62,
        "qwen3-1.7b": 1.72,
        "qwen3-4b": 4.02,
        "qwen3-8b": 8.19,
        "qwen2.5-32b": 32.76,
    }
