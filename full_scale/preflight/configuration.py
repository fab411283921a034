"""verl's whole configuration, composed from the overrides as the job will compose it."""

import importlib.util
import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from full_scale.preflight.check import Check, ProblemError, failed, ok
from full_scale.preflight.job import Job

NAME = "configuration"
TYPED = ("algorithm", "actor_rollout_ref.rollout")
"""Parts that verl turns into objects besides those that its own `validate_config` does."""
FREE = (
    "actor_rollout_ref.model.override_config",
    "actor_rollout_ref.rollout.engine_kwargs",
    "data.apply_chat_template_kwargs",
    "ray_kwargs.ray_init",
    "trainer.v1.sampler.sampler_kwargs",
)
"""Where keys are handed on to something else, so that verl's configuration cannot know them."""


def compose(overrides: Sequence[str]) -> Any:
    """Compose verl's configuration in hydra's strict mode, without importing verl.

    Args:
        overrides: `key=value`; `+key=value` for keys that verl's files do not have.

    Returns:
        The configuration, with every interpolation resolved.

    Raises:
        ProblemError: a key that does not exist, or a value that cannot be read.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        config = _composed(overrides)
        OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explained(error, overrides) from error
    _no_stray_keys(config, overrides)
    return config


def check_configuration(job: Job) -> list[Check]:
    """Turn the composed parts into verl's own objects, and run verl's own validation."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    try:
        with redirect_stdout(io.StringIO()):
            config = job.config
            validate_config(config, need_reference_policy(config), need_critic(config))
            for part in TYPED:
                omega_conf_to_dataclass(job.at(part))
    except Exception as error:
        # Whatever verl raises here it raises in the job as well.
        return [failed(NAME, _cause(error), "set what verl asks for")]
    return [ok(NAME, "every key exists, and verl's own validation passes")]


def _composed(overrides: Sequence[str]) -> Any:
    import hydra

    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ProblemError("verl is not installed", 'pip install -e ".[full-scale]"')
    folder = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    with hydra.initialize_config_dir(str(folder), version_base=None):
        return hydra.compose("ppo_trainer", overrides=list(overrides))


def _explained(error: Exception, overrides: Sequence[str]) -> ProblemError:
    """Name the override that hydra stumbled over, and the keys that are spelled like it."""
    message = str(error).splitlines()[0].rstrip(".")
    named = [each for each in overrides if f"'{_key(each)}'" in message]
    if not named:
        return ProblemError(message, "see m2po-lab launch RECIPE --print for settings that work")
    close = get_close_matches(_key(named[0]), known_keys(), n=3)
    remedy = f"did you mean {', '.join(close)}?" if close else "leave it out"
    return ProblemError(f"{named[0]}: {message}", remedy)


def known_keys() -> list[str]:
    """Every key of verl's configuration, in full."""
    return list(_keys(_composed([])))


def _keys(node: Any, above: str = "") -> Any:
    from omegaconf import DictConfig

    for name in node:
        key = f"{above}{name}"
        yield key
        child = node._get_node(name)
        if isinstance(child, DictConfig) and not child._is_none() and not child._is_missing():
            yield from _keys(child, f"{key}.")


def _no_stray_keys(config: Any, overrides: Sequence[str]) -> None:
    """Refuse keys that were added (+) where nothing reads them: hydra takes any.

    Raises:
        ProblemError: neither a field of the class that the part becomes, nor handed on.
    """
    for each in overrides:
        key = _key(each)
        if not each.startswith("+") or any(key.startswith(f"{free}.") for free in FREE):
            continue
        parts = key.split(".")
        owners = [n for n in range(len(parts)) if _target(config, parts[:n])]
        if not owners:
            raise ProblemError(f"{each}: verl reads no such key", "leave it out")
        known = _fields(_target(config, parts[: owners[-1]]))
        name = parts[owners[-1]]
        if name not in known:
            close = get_close_matches(name, known, n=3)
            remedy = f"did you mean {', '.join(close)}?" if close else "leave it out"
            raise ProblemError(f"{each}: {'.'.join(parts[: owners[-1]])} has no {name}", remedy)


def _target(config: Any, parts: Sequence[str]) -> str | None:
    node = _at(config, ".".join(parts)) if parts else config
    return node.get("_target_") if hasattr(node, "get") else None


def _fields(target: str | None) -> list[str]:
    from hydra.utils import get_class

    made = get_class(target or "")
    return [field.name for field in fields(made)] if is_dataclass(made) else []


def _at(config: Any, path: str) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.select(config, path)


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0].partition("@")[0]


def _cause(error: BaseException) -> str:
    """Innermost reason; hydra wraps what a class says about its values."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())
