"""`m2po-lab data`: published problems as the files that a full-scale run reads."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.extras import usable
from m2po_lab.cli.status import DONE, FAILED
from m2po_lab.cli.values import chosen, directory, pairs, words

if TYPE_CHECKING:
    from full_scale.data import Given

data = App(
    name="data",
    help="Training and evaluation problems for full-scale runs, as the files that verl reads.",
    help_format="plaintext",
    result_action="return_value",
)
"""The sub-commands; `m2po_lab.cli.app` adds them to the command."""


@data.command
def prepare(
    *,
    out: Path = Path("data"),
    train: str = "deepscaler",
    sets: str | None = None,
    source: str | None = None,
    instruction: str | None = None,
    max_prompt: int = 1536,
    tokenizer: str | None = None,
    repeat: str | None = None,
    keep_overlap: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write train.parquet, test.parquet and a manifest; what is done already stays.

    Parameters
    ----------
    out
        Folder to fill; the launch scripts read it.
    train
        Training sets, separated by commas: deepscaler, dapo.
    sets
        Evaluation sets, separated by commas; all eight by default, none for train.parquet alone.
    source
        Local files instead of the hub, separated by commas: folders whose entries are named after
        sets or hub ids, or SET=PATH.
    instruction
        Sentence behind every question, or a text with {question} in it.
    max_prompt
        Longest prompt of the run, tokens; longer ones are left out of training.
    tokenizer
        Hub id or folder of the tokenizer that counts them; without one, bytes are counted and
        nothing is left out.
    repeat
        Copies of each row in test.parquet, SET=N,...; aime24=4,aime25=4 by default.
    keep_overlap
        Keep problems in training that are also in an evaluation set.
    quiet
        Nothing on standard output.
    """
    directory("--out", out)
    with usable("data prepare"):
        from full_scale.data import EVALUATION, TRAINING, Settings
        from full_scale.data import prepare as run
        from full_scale.data.rows import INSTRUCTION

        evaluated = () if sets == "none" else chosen("--sets", sets, EVALUATION) or EVALUATION
        names = (*chosen("--train", train, TRAINING), *evaluated)
        settings = Settings(
            instruction=INSTRUCTION if instruction is None else instruction,
            max_prompt=max_prompt,
            tokenizer=tokenizer,
            keep_overlap=keep_overlap,
            repeat=_copies(repeat, EVALUATION),
        )
        manifest = run(out, names, _given(source), settings, _progress)
    if not quiet:
        from full_scale.data.summary import summary

        output.say(summary(out, manifest))
    return DONE


@data.command
def check(folder: Path = Path("data"), /) -> int:
    """Compare a prepared folder with its manifest; status 1 if something is wrong.

    Parameters
    ----------
    folder
        What `m2po-lab data prepare --out` filled.
    """
    with usable("data check"):
        from full_scale.data import verify

        problems = verify(folder)
    output.say("".join(f"{problem}\n" for problem in problems) or f"{folder} is as prepared\n")
    return FAILED if problems else DONE


@data.command
def sets() -> int:
    """List the sets, their hub ids and numbers of rows."""
    with usable("data sets"):
        from full_scale.data import SETS

    for each in SETS.values():
        output.say(f"{each.name:<11} {each.split:<6} {each.rows:>6,}  {each.hub_id}\n")
    return DONE


def _given(source: str | None) -> "Given":
    from full_scale.data import SETS, Given

    entries = words(source)
    named = pairs("--source", ",".join(word for word in entries if "=" in word))
    chosen("--source", ",".join(named), SETS)
    folders = tuple(Path(word) for word in entries if "=" not in word)
    for folder in folders:
        if not folder.is_dir():
            problem = f"{folder} is no directory"
            raise UsageError("--source", problem, "name a directory, or give SET=FILE")
    return Given(named, folders)


def _copies(repeat: str | None, known: tuple[str, ...]) -> dict[str, int]:
    named = pairs("--repeat", repeat)
    chosen("--repeat", ",".join(named), known)
    for name, number in named.items():
        if not number.isdecimal() or int(number) < 1:
            problem = f"{name}={number} is no number of copies"
            raise UsageError("--repeat", problem, f"for example {name}=4")
    return {name: int(number) for name, number in named.items()}


def _progress(name: str, state: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        output.warn(f"{name}: {state}")
