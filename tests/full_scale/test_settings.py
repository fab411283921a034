"""Settings and losses without an engine: what is refused, and with which way out."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.workers.config import FSDPActorConfig, PolicyLossConfig
from verl.workers.engine import EngineRegistry
from verl.workers.utils.losses import ppo_loss

from full_scale.verl_plugin import MODES, M2POLossConfig
from full_scale.verl_plugin.engine import M2POFSDPEngine, settings_of
from full_scale.verl_plugin.metrics import finished, staleness
from m2po_lab.core import OBJECTIVES


def call(loss_mode, strategy="fsdp2"):
    tokens = torch.zeros(2, 3)
    loss = get_policy_loss_fn(loss_mode)
    return loss(
        old_log_prob=tokens,
        log_prob=tokens,
        advantages=tokens,
        response_mask=tokens == 0,
        config={"strategy": strategy},
    )


def test_every_objective_of_the_core_is_a_loss_mode_of_verl():
    assert {mode.objective for mode in MODES.values()} == set(OBJECTIVES)
    for name in MODES:
        assert callable(get_policy_loss_fn(name))


@pytest.mark.parametrize("loss_mode", ["m2po", "m2po_released", "lab_ppo", "lab_gspo"])
def test_a_loss_that_the_engine_did_not_call_refuses_to_run(loss_mode):
    with pytest.raises(RuntimeError, match=r"VERL_USE_EXTERNAL_MODULES=full_scale\.verl_plugin"):
        call(loss_mode)


def test_megatron_is_refused_with_the_strategies_that_work():
    with pytest.raises(RuntimeError, match=r"strategy=megatron.*actor\.strategy=fsdp2"):
        call("m2po", strategy="megatron")


def test_no_rule_of_the_whole_mini_batch_is_left_to_a_micro_batch():
    whole = {name for name, spec in OBJECTIVES.items() if spec.scope not in ("token", "sequence")}
    split = {"m2po_released", "m2po_areal"}
    for name in whole - {"m2po"} - split:
        assert MODES[f"lab_{name}"].selection == "gathered"


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"budget": -0.1}, "budget=-0.1"),
        ({"budget": float("nan")}, "budget=nan"),
        ({"scope": "rank"}, "scope=rank"),
        ({"log_every": 0}, "log_every=0"),
        ({"log_rows": 0.0}, "log_rows=0.0"),
        ({"staleness": -1}, "staleness=-1"),
        ({"loss_mode": "lab_ppo", "scope": "lagged"}, "leave it out"),
        ({"loss_mode": "m2po_released", "scope": "proximal"}, "leave it out"),
        ({"scope": "lagged", "reuse_old_log_probs": True}, "scope=exact only"),
        ({"reuse_old_log_probs": True, "steps_per_sync": 4}, "steps_per_sync=4"),
        ({"loss_mode": "lab_opsm", "objective": {"denominator": "kept"}}, "denominator=valid"),
        ({"loss_mode": "lab_ppo", "objective": {"epsilon": 0.2}}, "epsilon"),
    ],
)
def test_settings_are_checked_before_anything_runs(settings, place):
    with pytest.raises(ValueError, match=place):
        M2POLossConfig(**settings)


def test_other_loss_modes_of_verl_run_as_without_the_plugin():
    assert M2POLossConfig(loss_mode="vanilla").budget == 0.04
    actor = FSDPActorConfig(
        rollout_n=1, ppo_micro_batch_size_per_gpu=1, policy_loss=PolicyLossConfig()
    )
    assert settings_of(partial(ppo_loss, config=actor)) is None
    assert settings_of(ppo_loss) is None


def test_settings_without_a_budget_are_refused():
    policy = PolicyLossConfig(loss_mode="m2po")
    loss = partial(ppo_loss, config=SimpleNamespace(policy_loss=policy))
    with pytest.raises(TypeError, match="_target_=full_scale"):
        settings_of(loss)


def test_the_plugin_chooses_its_engine_for_fsdp_and_leaves_critics_alone(monkeypatch):
    monkeypatch.setenv("VERL_ENGINE_DEVICE", "cuda")
    for strategy in ("fsdp", "fsdp2"):
        assert EngineRegistry.get_engine_cls("language_model", strategy) is M2POFSDPEngine
        assert EngineRegistry.get_engine_cls("value_model", strategy) is not M2POFSDPEngine


def test_a_mini_batch_without_tokens_has_no_numbers():
    names = ("valid", "active", "active_kept", "kept", "square", "square_kept")
    numbers = finished(dict.fromkeys(names, 0.0), None, M2POLossConfig())
    assert numbers.pop("m2po/scope") == 0
    assert all(value != value for value in numbers.values())


def test_staleness_counts_rows_with_known_versions_only():
    numbers = staleness([2, -1, 1], [3, -1, 3], version=5)
    assert numbers == {
        "m2po/staleness": 2,
        "m2po/staleness_low": 2,
        "m2po/staleness_high": 4,
    }
