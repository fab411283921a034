"""Whether the model is there, fits the job, and has no more words than its tokenizer."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from full_scale.overrides import LOSS, ROLLOUT
from full_scale.preflight.check import Check, failed, not_checked, ok
from full_scale.preflight.job import Job
from full_scale.preflight.shape import configuration_of, shape_of
from full_scale.recipes import BUDGET

MODEL, VOCABULARY = "model", "vocabulary"
NOISE = 0.01
"""Share of the budget that tokens which only one side knows may use up."""
SECONDS = 900.0
COMPARED = ("layers", "hidden", "intermediate", "heads", "kv_heads", "vocabulary", "tied")


def check_model(job: Job) -> list[Check]:
    """Read configuration and tokenizer as verl does; compare with the recipe and the job."""
    from verl.utils import hf_tokenizer
    from verl.utils.fs import copy_to_local

    part = job.at("actor_rollout_ref.model")
    try:
        config = configuration_of(job)
        tokenizer = hf_tokenizer(
            copy_to_local(part.tokenizer_path or part.path),
            trust_remote_code=bool(part.trust_remote_code),
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        remedy = f"hf download {job.recipe.shape.hub_id}, then --model FOLDER"
        return [failed(MODEL, f"{part.path} cannot be read: {reason}", remedy)]
    if not getattr(tokenizer, "chat_template", None) and not part.custom_chat_template:
        return [
            failed(
                MODEL,
                f"the tokenizer of {part.path} has no chat template, and prompts are chats",
                "set actor_rollout_ref.model.custom_chat_template",
            )
        ]
    problems = [failed(MODEL, found, remedy) for found, remedy in _unfit(job, config)]
    return [
        *(problems or [ok(MODEL, _described(job, config))]),
        _vocabulary(job, config.vocab_size, len(tokenizer)),
    ]


def _unfit(job: Job, config: Any) -> Iterator[tuple[str, str]]:
    data = job.config.data
    context = data.max_prompt_length + data.max_response_length
    positions = config.max_position_embeddings
    if positions < context:
        yield (
            f"it has {positions} positions, and prompt with response may have {context} tokens",
            f"set data.max_response_length={positions - data.max_prompt_length}",
        )
    spans = job.at(f"{ROLLOUT}.tensor_model_parallel_size")
    if config.num_attention_heads % spans:
        yield (
            f"{config.num_attention_heads} heads do not divide among the {spans} GPUs of a vLLM "
            "engine",
            f"set {ROLLOUT}.tensor_model_parallel_size to a divisor",
        )


def _described(job: Job, config: Any) -> str:
    table, found = asdict(job.recipe.shape), asdict(shape_of("", config))
    other = [f"{name} {n}" for name, n in found.items() if n != table[name] and name in COMPARED]
    text = f"{config.architectures[0]}, {config.num_hidden_layers} layers of {config.hidden_size}"
    if not other:
        return f"{text}, as in the recipe"
    return f"{text}; {job.recipe.shape.label} in the recipe has another shape ({', '.join(other)})"


def _vocabulary(job: Job, rows: int, tokens: int) -> Check:
    """Compare the rows of the output embedding with the tokens of the tokenizer.

    vLLM never samples a row beyond the tokenizer, the trainer counts it in the denominator: every
    log-ratio gets log(1 - mass of the surplus rows), which nothing stale explains.
    """
    if rows == tokens:
        return ok(VOCABULARY, f"{rows} in model and tokenizer")
    if rows < tokens:
        return failed(
            VOCABULARY,
            f"the tokenizer has {tokens} tokens and the model {rows}",
            "use the tokenizer that belongs to the model",
        )
    surplus = f"the model has {rows} rows for {tokens} tokens of the tokenizer"
    folder = _weights(job.at("actor_rollout_ref.model.path"))
    if folder is None:
        return not_checked(VOCABULARY, f"{surplus}; no weights are here that could be weighed")
    try:
        second_moment, mass = _surplus(folder, tokens)
    except RuntimeError as error:
        return not_checked(VOCABULARY, f"{surplus}; {error}")
    budget = job.at(f"{LOSS}.budget") or BUDGET
    found = f"{surplus}; those hold {mass:.2g} of the probability, M2 {second_moment:.2g} nats^2"
    if second_moment <= NOISE * budget:
        return ok(VOCABULARY, found)
    return failed(
        VOCABULARY,
        f"{found}, beside a budget of {budget:g}",
        "cut the model's embeddings to the tokenizer: resize_token_embeddings(len(tokenizer))",
    )


def _weights(path: str) -> Path | None:
    """Folder with the weights on this machine, if they are here; nothing is downloaded."""
    if (folder := Path(path)).is_dir():
        return folder if list(folder.glob("*.safetensors")) else None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        cached = Path(snapshot_download(path, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return cached if list(cached.glob("*.safetensors")) else None


def _surplus(folder: Path, tokens: int) -> tuple[float, float]:
    """Second moment and largest probability mass of the surplus rows, from a process of its own.

    Raises:
        RuntimeError: it ended without an answer.
    """
    command = [sys.executable, "-m", "full_scale.preflight.surplus", str(folder), str(tokens)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"scoring a text took over {SECONDS:g} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"scoring a text failed: {last}")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return float(answer["second_moment"]), float(answer["mass"])
