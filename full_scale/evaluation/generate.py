"""Answers of a model to prepared evaluation sets, sampled with vLLM; a set at a time, each once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from full_scale.data import manifest as manifests
from full_scale.data.sets import EVALUATION, SETS
from full_scale.errors import UnusableError

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Sampling:
    """How answers are sampled; the defaults are those of the paper's evaluation.

    Attributes:
        model: hub id or folder.
        samples: answers to each problem; None takes the paper's k of each set, 16 or 4.
        temperature: of the softmax.
        top_p: share of probability that is sampled from.
        max_tokens: longest answer.
        tensor_parallel: GPUs that the model spans.
        seed: of the sampler.
    """

    model: str
    samples: int | None = None
    temperature: float = 1.0
    top_p: float = 0.7
    max_tokens: int = 2560
    tensor_parallel: int = 1
    seed: int = 0


def generate(
    sampling: Sampling,
    data: Path,
    out: Path,
    names: Sequence[str] = EVALUATION,
    progress: Callable[[str, str], None] = lambda name, state: None,
) -> list[Path]:
    """Write `<set>.jsonl` for every prepared set, one line an answer; sets that are there stay.

    Args:
        sampling: model and settings.
        data: folder that `m2po-lab data prepare` filled.
        out: folder for the answers, of this model and these settings alone.
        names: evaluation sets.
        progress: called with a set and what became of it.

    Returns:
        The files, in the order of the sets.

    Raises:
        UnusableError: no vLLM, no such prepared set, or answers of other settings in the folder.
    """
    manifest = manifests.read(data)
    chosen = [name for name in names if name in manifest["sets"]]
    if not chosen:
        remedy = f"m2po-lab data prepare --out {data}"
        raise UnusableError(str(data), f"holds none of {', '.join(names)}", remedy)
    _claim(out, sampling)
    files = [out / f"{name}.jsonl" for name in chosen]
    engine = None
    for name, path in zip(chosen, files, strict=True):
        if path.exists():
            progress(name, "done before")
            continue
        engine = engine or _engine(sampling)
        rows = pq.read_table(data / manifest["sets"][name]["file"]).to_pylist()
        lines = _answers(engine, rows, sampling, sampling.samples or SETS[name].samples)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        manifests.write_text(path, text)
        progress(name, f"{len(lines):,} answers")
    return files


def _claim(out: Path, sampling: Sampling) -> None:
    """Make a folder that of these settings."""
    out.mkdir(parents=True, exist_ok=True)
    path, settings = out / SETTINGS, asdict(sampling)
    if path.exists() and (before := json.loads(path.read_text())) != settings:
        changed = ", ".join(name for name in settings if before.get(name) != settings[name])
        raise UnusableError(str(out), f"holds answers with another {changed}", "name a new folder")
    path.write_text(json.dumps(settings, indent=1) + "\n")


def _engine(sampling: Sampling) -> Any:
    try:
        from vllm import LLM
    except ImportError as error:
        remedy = "pip install vllm, or give files with generations"
        raise UnusableError("--model", "needs vLLM to run it", remedy) from error
    return LLM(
        model=sampling.model, tensor_parallel_size=sampling.tensor_parallel, seed=sampling.seed
    )


def _answers(
    engine: Any, rows: Sequence[dict[str, Any]], sampling: Sampling, samples: int
) -> list[dict[str, Any]]:
    from vllm import SamplingParams

    params = SamplingParams(
        n=samples,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed,
    )
    found = engine.chat([row["prompt"] for row in rows], params, use_tqdm=False)
    return [
        {
            "data_source": row["data_source"],
            "index": row["extra_info"]["index"],
            "question": row["question"],
            "response": answer.text,
            "ground_truth": row["reward_model"]["ground_truth"],
            "finish_reason": answer.finish_reason,
            "tokens": len(answer.token_ids),
        }
        for row, request in zip(rows, found, strict=True)
        for answer in request.outputs
    ]
