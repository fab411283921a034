"""`m2po-lab eval`: accuracy of generations, with intervals, beside the paper's."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from m2po_lab.cli import output
from m2po_lab.cli.errors import UsageError
from m2po_lab.cli.extras import usable
from m2po_lab.cli.status import DONE
from m2po_lab.cli.values import chosen, directory, json_file, words

Flag = Annotated[bool, Parameter(negative=())]


def eval(
    *files: str,
    recipe: str | None = None,
    data: Path | None = None,
    set: str | None = None,
    step: str = "last",
    k: str | None = None,
    rescore: Flag = False,
    table: Flag = False,
    model: str | None = None,
    out: Path = Path("generations"),
    sets: str | None = None,
    samples: int | None = None,
    temperature: float = 1.0,
    top_p: float = 0.7,
    max_tokens: int = 2560,
    tensor_parallel: int = 1,
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    quiet: Flag = False,
) -> int:
    """Say avg@k and pass@k of generations by set, with intervals, and compare with the paper.

    Parameters
    ----------
    files
        Generations as JSON lines or Parquet: verl's validation dumps, lm-evaluation-harness'
        samples, tables with responses or scores. With --table, results that --json wrote.
    recipe
        Recipe whose run made them: prints its row of Table 1 beside the paper's.
    data
        Folder of m2po-lab data prepare; finds the set of rows that do not name it.
    set
        Set of rows that do not name it.
    step
        Training step, where files hold several: a number, last, or best as in the paper.
    k
        For pass@k, separated by commas; 1, 2, 4, ... up to the number of samples by default.
    rescore
        Let the reward judge every response, also where there is a score.
    table
        Print the paper's Table 1 with our numbers below, as far as there are results.
    model
        Hub id or folder of a model to sample from with vLLM, on the sets in --data.
    out
        Folder for what the model answers; sets that are there are not sampled again.
    sets
        Sets to sample, separated by commas; all that are prepared by default.
    samples
        Answers to each problem; the paper's number for each set by default.
    temperature
        Of the sampler.
    top_p
        Share of probability that is sampled from.
    max_tokens
        Longest answer.
    tensor_parallel
        GPUs that the model spans.
    json
        File for the result as JSON; - for standard output, which then holds nothing else.
    quiet
        Nothing on standard output.
    """
    json_file("--json", json)
    with usable("eval"):
        if table:
            return _table(files, json, quiet)
        paths = list(files)
        if model is not None:
            from full_scale.evaluation.generate import Sampling

            sampling = Sampling(model, samples, temperature, top_p, max_tokens, tensor_parallel)
            paths += _generated(sampling, data, out, sets)
        if not paths:
            raise UsageError("FILES", "no generations were named", "or --model, or --table")
        evaluation = _evaluated(paths, recipe, data, set, _step(step), _ks(k), rescore)
        from full_scale.evaluation import report

        return _give(evaluation, report(evaluation), json, quiet)


def _evaluated(
    paths: list[str],
    recipe: str | None,
    data: Path | None,
    dataset: str | None,
    step: str,
    ks: tuple[int, ...],
    rescore: bool,
) -> dict[str, Any]:
    from full_scale.evaluation import Prepared, attributed, counted, evaluate, of_step, read, scored

    if recipe is not None:
        from m2po_lab.cli.recipes import recipe_named

        recipe_named(recipe)
    prepared = None if data is None else Prepared(data)
    samples = list(attributed(read(paths, rescore=rescore), prepared, dataset))
    number, of_one = of_step(scored(samples), step)
    return evaluate(counted(of_one), ks=ks, recipe=recipe, step=number)


def _generated(sampling: Any, data: Path | None, out: Path, sets: str | None) -> list[str]:
    from full_scale.data import EVALUATION
    from full_scale.evaluation.generate import generate

    if data is None:
        raise UsageError("--model", "has no problems to answer", "--data FOLDER, prepared before")
    directory("--out", out)
    names = chosen("--sets", sets, EVALUATION) or EVALUATION
    return [str(path) for path in generate(sampling, data, out, names, _progress)]


def _table(files: tuple[str, ...], json: str | None, quiet: bool) -> int:
    from full_scale.evaluation import table, text
    from full_scale.evaluation.results import read_result

    whole = table([read_result(Path(file)) for file in files])
    return _give(whole, text(whole), json, quiet)


def _give(result: dict[str, Any], shown: str, json: str | None, quiet: bool) -> int:
    """Write the JSON and print the text, unless standard output is the JSON's."""
    from m2po_lab.report.document import dumps, write_json

    if json is not None and output.is_stdout(json):
        output.say(dumps(result))
        return DONE
    if json is not None:
        write_json(json, result)
    if not quiet:
        output.say(shown)
    return DONE


def _step(text: str) -> str:
    if text not in ("last", "best") and not text.isdecimal():
        raise UsageError("--step", f"{text!r} is no step", "a number, last or best")
    return text


def _ks(text: str | None) -> tuple[int, ...]:
    for word in words(text):
        if not word.isdecimal() or int(word) < 1:
            raise UsageError("--k", f"{word!r} is no number of samples", "for example 1,4,16")
    return tuple(map(int, words(text)))


def _progress(name: str, state: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        output.warn(f"{name}: {state}")
