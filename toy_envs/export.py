"""The small model as a Hugging Face checkpoint, written without transformers."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from toy_envs.files import load_arrays, write_bytes
from toy_envs.journal import CHECKPOINT, SETTINGS, inside
from toy_envs.lm_policy import LMPolicy
from toy_envs.recipes import RECIPES
from toy_envs.small_lm import SmallLM
from toy_envs.tasks import Task

LINEAR = {
    "qkv": "attn.c_attn",
    "project": "attn.c_proj",
    "up": "mlp.c_fc",
    "down": "mlp.c_proj",
}
"""Linear layer of a block -> its name in GPT-2, which keeps weights transposed."""
NORMS = {"norm1": "ln_1", "norm2": "ln_2"}
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""The prompt as it is, without roles."""


def export(model: SmallLM, task: Task, out: Path) -> None:
    """Write model and tokenizer so that `AutoModelForCausalLM` and `AutoTokenizer` load them.

    The layout is GPT-2's with an untied head. Nothing is converted: the logits are the same.

    Args:
        model: the weights.
        task: its vocabulary becomes the tokenizer, its end token ends and pads.
        out: directory; config.json, generation_config.json, model.safetensors, tokenizer.json and
            tokenizer_config.json are written into it.
    """
    end = task.vocabulary[task.end]
    files = {
        "config.json": _config(model, task.end),
        "generation_config.json": {"eos_token_id": task.end, "pad_token_id": task.end},
        "tokenizer.json": _tokenizer(task.vocabulary, task.end),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": model.config.context,
            "eos_token": end,
            "pad_token": end,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, content in files.items():
        write_bytes(out / name, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
    write_bytes(out / "model.safetensors", safetensors(gpt2_weights(model)))


def export_run(run: Path, out: Path) -> None:
    """Write the model of a run as it stood at its last checkpoint.

    Args:
        run: directory of the run.
        out: as in `export`.

    Raises:
        ValueError: no run with a checkpoint lies there, or its policy is no transformer.
    """
    if not (run / CHECKPOINT).exists():
        raise ValueError(f"{run} holds no checkpoint of a run; name the --out of `toy run`")
    settings = orjson.loads((run / SETTINGS).read_bytes())
    recipe = RECIPES[settings["recipe"]]
    policy = recipe.make(recipe, settings["seed"], None, None)
    if not isinstance(policy, LMPolicy):
        raise ValueError(f"{run} is a run of {recipe.name}, which has no transformer to export")
    policy.load(inside(load_arrays(run / CHECKPOINT), "policy/"))
    export(policy.model, policy.task, out)


def gpt2_weights(model: SmallLM) -> dict[str, NDArray[np.float32]]:
    """Weights by their names in `GPT2LMHeadModel`."""
    found: dict[str, NDArray[np.float32]] = {}
    for name, tensor in model.state_dict().items():
        array = tensor.numpy()
        match name.split("."):
            case ["blocks", layer, part, kind]:
                new = LINEAR.get(part) or NORMS[part]
                transposed = part in LINEAR and kind == "weight"
                found[f"transformer.h.{layer}.{new}.{kind}"] = array.T if transposed else array
            case ["tokens" | "positions" as part, kind]:
                found[f"transformer.{'wte' if part == 'tokens' else 'wpe'}.{kind}"] = array
            case ["norm", kind]:
                found[f"transformer.ln_f.{kind}"] = array
            case _:
                found[f"lm_{name}"] = array
    return found


def safetensors(arrays: dict[str, NDArray[np.float32]]) -> bytes:
    """Encode float32 arrays in the safetensors format: length of the header, header, data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name in sorted(arrays):
        raw = np.ascontiguousarray(arrays[name], dtype="<f4").tobytes()
        where = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(arrays[name].shape), "data_offsets": where}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def _config(model: SmallLM, end: int) -> dict[str, Any]:
    shape = model.config
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_embd": shape.width,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_positions": shape.context,
        "vocab_size": shape.vocabulary,
        "layer_norm_epsilon": 1e-5,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": end,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }


def _tokenizer(vocabulary: tuple[str, ...], end: int) -> dict[str, Any]:
    """One token for each text of the vocabulary, the longest first; anything else is the end."""
    longest = sorted(vocabulary, key=len, reverse=True)
    pattern = "|".join(re.escape(text) for text in longest)
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": end, "content": vocabulary[end], "special": True, **special}],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {text: i for i, text in enumerate(vocabulary)},
            "unk_token": vocabulary[end],
        },
    }
