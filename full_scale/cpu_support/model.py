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
