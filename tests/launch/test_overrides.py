from dataclasses import replace

import pytest

from full_scale.overrides import Place, hydra_value, overrides, settings
from full_scale.recipes import RECIPES

PLACE = Place(data="/data", out="/runs/one", model="org/model", start="first")
LOSS = "actor_rollout_ref.actor.policy_loss"


def of(name, **changes):
    return settings(replace(RECIPES[name], **changes), PLACE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0.04, "0.04"),
        (1e-6, "1e-06"),
        ("org/model-7B", "org/model-7B"),
        ("pkg://a.b", "pkg://a.b"),
        (("console", "file"), "[console,file]"),
        ("/a b,c=d", "'/a b,c=d'"),
        ("it's", r"'it\'s'"),
    ],
)
def test_values_are_written_in_hydras_grammar(value, text):
    assert hydra_value(value) == text


def test_stale_data_waits_in_a_queue_without_a_limit_that_it_would_reach():
    stale = of("qwen2.5-math-7b-m2po-s256")
    assert stale["trainer.v1.trainer_mode"] == "colocate_async"
    assert stale["trainer.v1.colocate_async.num_warmup_batches"] == 64
    assert stale["transfer_queue.backend.SimpleStorage.total_storage_size"] is None
    assert stale[f"+{LOSS}.staleness"] == 64


def test_fresh_data_is_trained_on_at_once():
    fresh = of("qwen2.5-math-7b-m2po-s0")
    assert fresh["trainer.v1.trainer_mode"] == "sync"
    assert not [key for key in fresh if "colocate_async" in key or "custom_sampler" in key]
    assert fresh[f"+{LOSS}.staleness"] == 0


def test_methods_differ_in_their_loss_alone():
    chosen = {method: of(f"qwen3-4b-{method}-s256") for method in ("grpo", "gspo", "m2po", "none")}
    differing = {
        key
        for key in set().union(*chosen.values())
        if len({str(each.get(key)) for each in chosen.values()}) > 1
    }
    allowed = ("policy_loss.", "loss_agg_mode", "experiment_name")
    assert differing
    assert all(any(part in key for part in allowed) for key in differing)


def test_only_m2po_has_a_budget():
    assert of("qwen3-4b-m2po-s256")[f"+{LOSS}.budget"] == 0.04
    assert f"+{LOSS}.budget" not in of("qwen3-4b-grpo-s256")


def test_tis_compares_with_the_start_of_the_step_which_verl_recomputes():
    assert of("qwen2.5-math-7b-tis-s256")["algorithm.rollout_correction.bypass_mode"] is False
    assert of("qwen2.5-math-7b-m2po-s256")["algorithm.rollout_correction.bypass_mode"] is True


def test_a_run_writes_below_its_folder_only():
    written = [
        value for value in of("qwen3-4b-m2po-s256").values() if str(value).startswith("/runs")
    ]
    assert len(written) == 5
    assert all(value.startswith("/runs/one/") for value in written)


def test_every_setting_is_said_once():
    for recipe in RECIPES.values():
        keys = [each.partition("=")[0].lstrip("+") for each in overrides(recipe, PLACE)]
        assert len(keys) == len(set(keys))
