"""Whether batches divide, and whether the age of the data is what the recipe says."""

from collections.abc import Iterator

from full_scale.overrides import ACTOR, LOSS, ROLLOUT
from full_scale.preflight.check import Check, failed, ok
from full_scale.preflight.job import Job

BATCH, STALENESS = "batch", "staleness"
WARMUP = "trainer.v1.colocate_async.num_warmup_batches"


def check_batch(job: Job) -> list[Check]:
    """Rows a step, a mini-batch and a rank; verl would pad, or stop, where they do not divide."""
    problems = [failed(BATCH, found, remedy) for found, remedy in _indivisible(job)]
    data, actor, rollout = job.config.data, job.at(ACTOR), job.at(ROLLOUT)
    rows, mini = data.train_batch_size * rollout.n, actor.ppo_mini_batch_size * rollout.n
    found = (
        f"{rows} responses a step, {mini} an update, {mini // max(job.data_parallel, 1)} of them "
        f"on each of {job.data_parallel} ranks"
    )
    return problems or [ok(BATCH, found)]


def _indivisible(job: Job) -> Iterator[tuple[str, str]]:
    data, actor, rollout = job.config.data, job.at(ACTOR), job.at(ROLLOUT)
    prompts, mini, samples = data.train_batch_size, actor.ppo_mini_batch_size, rollout.n
    if prompts % mini:
        yield (
            f"data.train_batch_size={prompts} is no multiple of {ACTOR}.ppo_mini_batch_size={mini}",
            f"set data.train_batch_size={max(prompts // mini, 1) * mini}",
        )
    ranks = job.data_parallel
    if not ranks or mini * samples % ranks:
        yield (
            f"{mini} prompts x {rollout.n} responses do not divide among {ranks} ranks",
            f"set {ACTOR}.ppo_mini_batch_size to a multiple of {_least(ranks, samples)}",
        )
    spans = rollout.tensor_model_parallel_size * rollout.pipeline_model_parallel_size
    if job.gpus % spans:
        yield (
            f"{job.gpus} GPUs do not divide into vLLM engines of {spans}",
            f"set {ROLLOUT}.tensor_model_parallel_size to a divisor of {job.gpus}",
        )
    context = data.max_prompt_length + data.max_response_length
    room = actor.ppo_max_token_len_per_gpu * (job.gpus // ranks if ranks else 1)
    if actor.use_dynamic_bsz and room < context:
        yield (
            f"a response of {context} tokens does not fit into a micro-batch of {room}",
            f"set {ACTOR}.ppo_max_token_len_per_gpu={context}, or shorten data.max_response_length",
        )
    if rollout.max_model_len is not None and rollout.max_model_len < context:
        yield (
            f"{ROLLOUT}.max_model_len={rollout.max_model_len}, and prompt with response may have "
            f"{context} tokens",
            f"set {ROLLOUT}.max_model_len=null",
        )


def _least(ranks: int, samples: int) -> int:
    """Prompts for which `samples` responses each divide among the ranks."""
    from math import gcd

    return ranks // gcd(ranks, samples) if ranks else 1


def check_staleness(job: Job) -> list[Check]:
    """Age of the data: batches that wait times updates on each of them."""
    mode, updates = job.at("trainer.v1.trainer_mode"), job.updates_per_step
    age = job.warmup * updates
    problems = [failed(STALENESS, found, remedy) for found, remedy in _wrong_age(job)]
    given = "" if age == job.recipe.staleness else f"; the recipe has {job.recipe.staleness}"
    found = f"{mode}: {age:g} updates, {job.warmup:g} batches of {updates:g}{given}"
    return problems or [ok(STALENESS, found)]


def _wrong_age(job: Job) -> Iterator[tuple[str, str]]:
    mode, updates, warmup = job.at("trainer.v1.trainer_mode"), job.updates_per_step, job.warmup
    if not job.at("trainer.use_v1"):
        yield (
            "trainer.use_v1=false: the older trainer has no queue",
            "set trainer.use_v1=true",
        )
    if mode != "sync":
        yield from _sampler_refuses(job)
    wanted = job.recipe.staleness / updates if updates else 0.0
    by_hand = job.set_by_hand(WARMUP) or job.set_by_hand("trainer.v1.trainer_mode")
    if warmup != wanted and not by_hand:
        yield (
            f"{warmup:g} batches of {updates:g} updates are {warmup * updates:g} updates, and "
            f"{job.recipe.name} is {job.recipe.staleness} updates stale",
            f"set {WARMUP}={wanted:g}"
            if wanted == int(wanted)
            else f"choose batches for which {job.recipe.staleness} is a multiple of the updates",
        )
    bound = job.at(f"{LOSS}.staleness")
    per_sync = job.at(f"trainer.v1.{mode}.parameter_sync_step") or 1
    if bound is not None and bound < warmup:
        yield (
            f"{LOSS}.staleness={bound} stops the run at the first row older than that, and rows "
            f"become {warmup:g} versions old",
            f"set {LOSS}.staleness={warmup:g}",
        )
    if per_sync != (job.at(f"{LOSS}.steps_per_sync") or 1):
        yield (
            f"weights are synchronised every {per_sync} updates, so ages would be counted wrongly",
            f"set +{LOSS}.steps_per_sync={per_sync}",
        )
    capacity = job.at("transfer_queue.backend.SimpleStorage.total_storage_size")
    rows = (warmup + 1) * job.config.data.train_batch_size * (job.at(f"{ROLLOUT}.n") + 1)
    if mode != "sync" and capacity is not None and capacity < rows:
        yield (
            f"the queue holds at most {capacity} rows, and {rows:g} wait in it",
            "set transfer_queue.backend.SimpleStorage.total_storage_size=null",
        )


def _sampler_refuses(job: Job) -> Iterator[tuple[str, str]]:
    """Make the sampler that the job will make, and say what it says."""
    from omegaconf import OmegaConf
    from verl.utils.import_utils import load_module

    sampler = job.config.trainer.v1.sampler
    mode = job.at("trainer.v1.trainer_mode")
    if not sampler.custom_sampler.path:
        if job.warmup:
            yield (
                "verl's own sampler takes whatever is ready, so that the age of a batch varies",
                "set trainer.v1.sampler.custom_sampler.path=pkg://full_scale.verl_plugin.stale "
                "and trainer.v1.sampler.custom_sampler.name=StaleK",
            )
        return
    try:
        getattr(load_module(sampler.custom_sampler.path), sampler.custom_sampler.name)(
            trainer_mode=mode,
            trainer_config=OmegaConf.select(job.config, f"trainer.v1.{mode}"),
            max_off_policy_threshold=sampler.max_off_policy_threshold,
            max_off_policy_strategy=sampler.max_off_policy_strategy,
            sampler_kwargs=sampler.sampler_kwargs,
        )
    except ValueError as error:
        found, _, remedy = str(error).rpartition("; ")
        yield found or remedy, remedy
