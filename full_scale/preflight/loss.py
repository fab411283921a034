"""Whether the loss means what the recipe says: what the plugin refuses, before the job starts."""

import os
from collections.abc import Iterator

from full_scale.overrides import ACTOR, LOSS, ROLLOUT
from full_scale.preflight.check import Check, failed, ok
from full_scale.preflight.job import Job

NAME = "loss"
CORRECTION = "algorithm.rollout_correction"


def check_loss(job: Job) -> list[Check]:
    """Settings of the plugin against those of verl that they depend on."""
    problems = [failed(NAME, found, remedy) for found, remedy in _wrong(job)]
    if problems:
        return problems
    policy = job.at(LOSS)
    budget = f", budget {policy.budget:g} nats^2" if policy.loss_mode == "m2po" else ""
    ratio = "behavior" if job.at(f"{CORRECTION}.bypass_mode") else "behavior and proximal"
    scope = policy.get("scope", "exact")
    return [ok(NAME, f"{policy.loss_mode}{budget}, scope {scope}, log-probs of {ratio}")]


def _wrong(job: Job) -> Iterator[tuple[str, str]]:
    from full_scale.verl_plugin import MODES
    from full_scale.verl_plugin.engine import VENDOR
    from full_scale.verl_plugin.losses import ENGINES

    mode = job.at(f"{LOSS}.loss_mode")
    if mode not in MODES:
        yield (
            f"{LOSS}.loss_mode={mode} is verl's own: no metrics of m2po, no token log",
            f"set {LOSS}.loss_mode={job.recipe.trust_region.loss_mode}",
        )
        return
    if job.at(f"{ACTOR}.strategy") not in ENGINES:
        yield (
            f"{ACTOR}.strategy={job.at(f'{ACTOR}.strategy')}: the plugin has no engine for it",
            f"set {ACTOR}.strategy=fsdp2",
        )
    if not job.at(f"{ROLLOUT}.calculate_log_probs"):
        yield (
            "the rollout returns no log-probs, which the ratio needs",
            f"set {ROLLOUT}.calculate_log_probs=true",
        )
    if job.at(f"{CORRECTION}.rollout_is") is not None:
        yield (
            f"{CORRECTION}.rollout_is={job.at(f'{CORRECTION}.rollout_is')} weights a second time "
            "what the loss weights already",
            f"set {CORRECTION}.rollout_is=null",
        )
    if job.at(f"{CORRECTION}.rollout_rs") is not None:
        yield (
            f"{CORRECTION}.rollout_rs={job.at(f'{CORRECTION}.rollout_rs')} drops tokens before "
            "the loss sees them",
            f"set {CORRECTION}.rollout_rs=null",
        )
    if job.at("distillation.enabled"):
        yield ("a teacher's tokens have no ratio", "set distillation.enabled=false")
    if (vendor := os.environ.get("VERL_ENGINE_VENDOR", VENDOR)) != VENDOR:
        yield (
            f"VERL_ENGINE_VENDOR={vendor} chooses another engine than the plugin's",
            f"unset VERL_ENGINE_VENDOR, or set it to {VENDOR}",
        )
    yield from _meaningless(job)


def _meaningless(job: Job) -> Iterator[tuple[str, str]]:
    """Ask the plugin what it makes of scope and bypass mode together."""
    from hydra.errors import InstantiationException
    from verl.utils.config import omega_conf_to_dataclass

    from full_scale.verl_plugin.mini_batch import check_meaning

    bypass = bool(job.at(f"{CORRECTION}.bypass_mode"))
    try:
        settings = omega_conf_to_dataclass(job.at(LOSS))
    except InstantiationException:
        return  # The check of the configuration says why.
    try:
        check_meaning(settings, decoupled=not bypass, any_token=True)
    except ValueError as error:
        found, _, remedy = str(error).rpartition(": ")
        yield found, remedy
    if bypass and "proximal_logp" in settings.made().needs:
        yield (
            f"{settings.loss_mode} compares with the start of the step, and with "
            f"{CORRECTION}.bypass_mode=true nobody computes its log-probs",
            f"set {CORRECTION}.bypass_mode=false",
        )
