"""`m2po-lab toy`: run, compare and draw the toy environments."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.values import chosen, directory, nonnegative, words

toy = App(
    name="toy",
    help="Toy environments: stale rollouts and their trust regions, in minutes on a laptop.",
    help_format="plaintext",
    result_action="return_value",
)
"""The sub-commands; `m2po_lab.cli.app` adds them to the command."""

LAG = 256
"""The lag that curves are counted in, updates."""


@toy.command
def run(
    recipe: str,
    /,
    *,
    out: Path,
    objective: str = "m2po",
    staleness: int = 256,
    seed: int = 0,
    steps: int | None = None,
    learning_rate: float | None = None,
    decay: Annotated[bool, Parameter(negative=())] = False,
    budget: str | None = None,
    queue: str = "fifo",
    mismatch: str = "",
    checkpoint_every: int = 20,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Train once and leave a native log, metrics and a checkpoint; a killed run goes on.

    Parameters
    ----------
    recipe
        What to train: `m2po-lab toy recipes` lists them.
    out
        Directory of the run.
    objective
        Name of an objective, such as m2po, ppo, is, gspo.
    staleness
        Updates between sampling and training, a multiple of the updates a step.
    seed
        Of weights, prompts and samples.
    steps
        Rollouts to train on; the recipe's number by default.
    learning_rate
        The recipe's by default.
    decay
        Let the learning rate fall linearly to 0.
    budget
        M2PO's budget in nats squared, for the objectives that have one.
    queue
        Where rollouts wait: fifo, or mixed, in which lags are random and staleness is their mean;
        mixed=512 bounds them.
    mismatch
        How the sampler differs from the trainer: noise=0.1, bf16, fp16, temperature=1.1, top-p=0.9;
        several are separated by commas.
    checkpoint_every
        Steps between checkpoints.
    quiet
        Nothing on standard output.
    """
    from toy_envs.recipes import Run

    directory("--out", out)
    if checkpoint_every < 1:
        raise UsageError("--checkpoint-every", f"{checkpoint_every} is below 1", "for example 20")
    settings = Run(
        recipe=_recipe(recipe),
        objective=objective,
        staleness=staleness,
        seed=_at_least("--seed", seed, 0),
        steps=None if steps is None else _at_least("--steps", steps, 1),
        learning_rate=learning_rate,
        decay=decay,
        params={} if budget is None else {"budget": nonnegative("--budget", budget)},
        queue=queue,
        mismatch=mismatch,
    )
    with _usable(recipe), _bar(quiet) as bar:
        from toy_envs.recipes import RECIPES
        from toy_envs.train import train

        total = settings.steps or RECIPES[recipe].steps
        metrics = train(
            settings,
            out,
            checkpoint_every=checkpoint_every,
            progress=lambda step, _: bar(step + 1, total),
        )
    if not quiet:
        last = metrics[-1]["reward"]
        output.say(
            f"{len(metrics)} steps, accuracy {last:.3f}; log in {out / 'log'}: "
            f"m2po-lab analyze {out / 'log'}\n"
        )
    return 0


@toy.command
def figure(
    recipe: str,
    /,
    *,
    out: Path,
    seeds: int = 3,
    first_seed: int = 0,
    arms: str | None = None,
    workers: int | None = None,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Draw accuracy, clip fraction, M2 and entropy of several arms into figure.png.

    Parameters
    ----------
    recipe
        What to train.
    out
        Directory for figure.png, figure.json and the runs, which are reused.
    seeds
        Runs an arm.
    first_seed
        Number of the first seed.
    arms
        Arms, <objective>_s<staleness>, separated by commas; by default ppo_s0, ppo_s256, is_s256
        and m2po_s256.
    workers
        Processes; one a core by default.
    quiet
        Nothing on standard output.
    """
    from toy_envs.recipes import ARMS, arm

    with _usable(recipe):
        chosen_arms = ARMS if arms is None else tuple(map(arm, words(arms)))
    return _draw(recipe, "figure", chosen_arms, out, seeds, first_seed, workers, quiet)


@toy.command
def sweep(
    recipe: str,
    /,
    *,
    over: str,
    out: Path,
    seeds: int = 3,
    first_seed: int = 0,
    workers: int | None = None,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Compare runs over staleness, budget, objectives, M2PO's variants, horizon, pace or sampler.

    Parameters
    ----------
    recipe
        What to train.
    over
        staleness, budget, objectives, variants, horizon (longer runs), pace (lower learning rates)
        or mismatch (other samplers and queues).
    out
        Directory for <over>.png, <over>.json and the runs, which are reused.
    seeds
        Runs an arm.
    first_seed
        Number of the first seed.
    workers
        Processes; one a core by default.
    quiet
        Nothing on standard output.
    """
    from toy_envs.recipes import SWEEPS

    (name,) = chosen("--over", over, SWEEPS) or ("",)
    if not name:
        raise UsageError("--over", "nothing was named", f"one of {', '.join(SWEEPS)}")
    return _draw(recipe, name, SWEEPS[name], out, seeds, first_seed, workers, quiet)


@toy.command
def export(run: Path, /, *, out: Path) -> int:
    """Write the transformer of a run as a Hugging Face checkpoint with its tokenizer.

    Parameters
    ----------
    run
        Directory of a run of `toy run`, or one under runs/ of `toy figure`.
    out
        Directory of the checkpoint.
    """
    directory("--out", out)
    with _usable("export"):
        from toy_envs.export import export_run

        export_run(run, out)
    output.say(f"The checkpoint lies in {out}\n")
    return 0


@toy.command
def recipes() -> int:
    """List the recipes and the sweeps."""
    from toy_envs.recipes import RECIPES, SWEEPS

    for recipe in RECIPES.values():
        output.say(f"{recipe.name}: {recipe.summary}\n")
    output.say(f"sweeps: {', '.join(SWEEPS)}\n")
    return 0


def _draw(
    recipe: str,
    name: str,
    arms: tuple[Any, ...],
    out: Path,
    seeds: int,
    first_seed: int,
    workers: int | None,
    quiet: bool,
) -> int:
    from toy_envs.study import Study, study

    directory("--out", out)
    count = _at_least("--seeds", seeds, 1)
    first = _at_least("--first-seed", first_seed, 0)
    plan = Study(name, _recipe(recipe), arms, tuple(range(first, first + count)))
    processes = None if workers is None else _at_least("--workers", workers, 1)
    with _usable(recipe), _bar(quiet) as bar:
        files, summary = study(plan, out, workers=processes, progress=bar)
    if not quiet:
        output.say(f"{summary}\nThe figure lies in {files}\n")
    return 0


def _recipe(name: str) -> str:
    from toy_envs.recipes import RECIPES

    (known,) = chosen("RECIPE", name, RECIPES)
    return known


def _at_least(option: str, value: int, low: int) -> int:
    if value < low:
        raise UsageError(option, f"{value} is below {low}", f"give at least {low}")
    return value


@contextmanager
def _usable(recipe: str) -> Iterator[None]:
    """Say in one line what is wrong with the settings, or which extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("m2po_lab", "toy_envs"):
            raise
        raise UsageError(
            f"toy {recipe}", f"needs {error.name}", "pip install 'm2po-lab[toy]'"
        ) from error
    except ValueError as error:
        raise UsageError(f"toy {recipe}", str(error)) from error


@contextmanager
def _bar(quiet: bool) -> Iterator[Any]:
    """A progress bar on standard error, if that is a terminal; called with done and all steps."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as shown:
        task = shown.add_task("warm start", total=None)
        yield lambda done, total: shown.update(
            task, completed=done, total=total, description="training"
        )
