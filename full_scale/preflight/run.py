"""All checks of a job, in the order in which a failure explains the next."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from full_scale.overrides import Place, overrides
from full_scale.preflight import batches, configuration, data, loss, machine, model, versions
from full_scale.preflight.check import Check, ProblemError, failed, not_checked
from full_scale.preflight.job import Job
from full_scale.recipes import Recipe

CHECKS: tuple[tuple[tuple[str, ...], Callable[[Job], Iterable[Check]]], ...] = (
    ((configuration.NAME,), configuration.check_configuration),
    ((versions.VLLM,), versions.check_vllm),
    ((versions.ATTENTION,), versions.check_attention),
    ((batches.BATCH,), batches.check_batch),
    ((batches.STALENESS,), batches.check_staleness),
    ((loss.NAME,), loss.check_loss),
    ((data.DATA, data.HASHES), data.check_data),
    ((data.REWARD,), data.check_reward),
    ((model.MODEL, model.VOCABULARY), model.check_model),
    (machine.NAMES, machine.check_machine),
)
"""Names of what a function reports -> the function; all need verl and its configuration."""


def preflight(recipe: Recipe, place: Place, by_hand: Sequence[str] = ()) -> Iterator[Check]:
    """Check a job as far as this machine allows, each check as it is done.

    Args:
        recipe: what to run.
        place: where it reads and writes.
        by_hand: further overrides of verl's configuration.

    Yields:
        Checks; what cannot be looked at here is not checked, and says why.
    """
    verl = versions.check_verl()
    yield verl
    if versions.installed("verl") is None:
        yield from _none("verl is not installed")
        return
    try:
        config = configuration.compose([*overrides(recipe, place), *by_hand])
    except ProblemError as error:
        yield failed(configuration.NAME, error.found, error.remedy)
        yield from _none("the configuration does not compose", after=configuration.NAME)
        return
    job = Job(recipe, by_hand, config)
    for names, check in CHECKS:
        try:
            yield from check(job)
        except Exception as error:
            # A fault of a check is no reason to start a job of days, nor to hide the other checks.
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            yield failed(names[0], f"the check ended with {reason}", "report this as a bug")


def _none(why: str, after: str = "") -> Iterator[Check]:
    for names, _ in CHECKS:
        yield from (not_checked(name, why) for name in names if name != after)
