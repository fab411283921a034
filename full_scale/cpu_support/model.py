"""A tiny model with a tokenizer of single characters, saved as verl loads them."""

from pathlib import Path
from typing import Any

CHARACTERS = "".join(chr(code) for code in range(32, 127)) + "\n"
SPECIAL = ("<pad>", "<eos>", "<unk>")
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""The prompt is the text of the messages and nothing else."""


def save_tokenizer(folder: Path) -> Any:
    """Save and return the tokenizer: one token a printable ASCII character, and three special ones.

    The model's vocabulary must be as large as this one's: verl masks what is beyond it in the
    rollout and not in the trainer.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {text: index for index, text in enumerate((*SPECIAL, *CHARACTERS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    pad, eos, unknown = SPECIAL
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token=eos,
        unk_token=unknown,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
    fast.save_pretrained(folder)
    return fast


def save_model(folder: Path, *, seed: int = 0, width: int = 32, layers: int = 2) -> Path:
    """Save a randomly initialised decoder in the layout of Llama and its tokenizer.

    Args:
        folder: where to; made if it does not exist.
        seed: of the weights.
        width: size of a hidden state.
        layers: transformer blocks.

    Returns:
        The folder.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def warm_start(folder: Path, examples: list[tuple[str, str]], *, steps: int, seed: int = 0) -> None:
    """Teach a saved model to answer prompts, so that a reward has something to tell apart.

    Args:
        folder: from `save_model`; overwritten.
        examples: prompt and answer, all of one length together.
        steps: updates on 64 examples each.
        seed: of their choice.
    """
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    end = [tokenizer.eos_token_id]
    rows = [tokenizer(p).input_ids + tokenizer(a).input_ids + end for p, a in examples]
    ids = torch.tensor(rows)
    asked = torch.tensor([len(tokenizer(prompt).input_ids) for prompt, _ in examples])
    place = torch.arange(ids.shape[1])
    labels = torch.where(place < asked[:, None], -100, ids)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        chosen = torch.from_numpy(rng.integers(0, len(rows), 64))
        loss = model(input_ids=ids[chosen], labels=labels[chosen]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
