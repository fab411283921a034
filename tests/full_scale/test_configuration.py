"""Every recipe against the configuration of the verl that is installed."""

import pytest
from omegaconf import OmegaConf

from full_scale.overrides import Place, overrides, settings
from full_scale.preflight.check import ProblemError, Status
from full_scale.preflight.configuration import check_configuration, compose, known_keys
from full_scale.preflight.job import Job
from full_scale.recipes import RECIPES

PLACE = Place(data="/a folder/data,1", out="/runs/k=v", model="org/model", start="first")
RECIPE = RECIPES["qwen2.5-math-7b-m2po-s256"]
LOSS = "actor_rollout_ref.actor.policy_loss"


def composed(*by_hand, recipe=RECIPE):
    return compose([*overrides(recipe, PLACE), *by_hand])


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_every_recipe_composes_and_every_value_arrives(recipe):
    config = composed(recipe=recipe)
    for key, value in settings(recipe, PLACE).items():
        if key.startswith("hydra."):
            continue
        found = OmegaConf.select(config, key.lstrip("+"), throw_on_missing=True)
        assert (tuple(found) if isinstance(value, tuple) else found) == value


@pytest.mark.parametrize(
    "name",
    [
        "qwen2.5-math-7b-m2po-s256",
        "qwen2.5-math-7b-m2po-s0",
        "qwen2.5-math-7b-tis-s256",
        "qwen3-4b-gspo-s256",
        "qwen2.5-32b-grpo-s256",
        "qwen3-8b-none-s256",
    ],
)
def test_verl_makes_its_own_objects_of_every_kind_of_recipe(name):
    recipe = RECIPES[name]
    job = Job(recipe, (), composed(recipe=recipe))
    (check,) = check_configuration(job)
    assert check.status is Status.OK, check.found


def spelled():
    """Every fourth key of a recipe: a composition takes half a second."""
    keys = [key for key in settings(RECIPE, PLACE) if not key.startswith(("hydra.", "+ray"))]
    return keys[::4]


@pytest.mark.parametrize("key", spelled())
def test_one_letter_too_many_in_any_key_is_refused_with_the_right_one(key, monkeypatch, all_keys):
    monkeypatch.setattr("full_scale.preflight.configuration.known_keys", lambda: all_keys)
    right = dict(item.split("=", 1) for item in overrides(RECIPE, PLACE))
    wrong = {f"{each}s" if each == key else each: value for each, value in right.items()}
    with pytest.raises(ProblemError) as refused:
        compose([f"{each}={value}" for each, value in wrong.items()])
    assert f"{key}s" in refused.value.found
    assert key.rpartition(".")[2] in refused.value.remedy


@pytest.fixture(scope="module")
def all_keys():
    return known_keys()


@pytest.mark.parametrize(
    ("override", "found", "remedy"),
    [
        ("trainer.nnode=1", "trainer.nnode=1", "trainer.nnodes"),
        (f"+{LOSS}.bugdet=.1", "has no bugdet", "budget"),
        ("+trainer.speed=1", "verl reads no such key", "leave it out"),
        ("trainer.nnodes=[", "no viable alternative", "--print"),
        ("data.train_files=${nowhere}", "nowhere", "--print"),
    ],
)
def test_what_does_not_compose_is_named(override, found, remedy):
    with pytest.raises(ProblemError) as refused:
        composed(override)
    assert found in refused.value.found
    assert remedy in refused.value.remedy


def test_settings_by_hand_win_over_the_recipe():
    config = composed(f"{LOSS}.budget=0.02", "trainer.nnodes=2")
    assert OmegaConf.select(config, f"{LOSS}.budget") == 0.02
    assert config.trainer.nnodes == 2


def test_a_value_that_the_plugin_refuses_fails_before_the_job():
    for override, said in (
        (f"{LOSS}.budget=-1", "budget=-1"),
        (f"+{LOSS}.scope=rank", "scope=rank"),
    ):
        (check,) = check_configuration(Job(RECIPE, (override,), composed(override)))
        assert check.status is Status.FAILED
        assert said in check.found
