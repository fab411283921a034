"""How long a prompt is: in tokens if there is a tokenizer, else in bytes, which bounds tokens."""

from typing import Any

from full_scale.data.layouts import Messages
from full_scale.errors import UnusableError

TOKENS, BYTES = "tokens", "bytes"


class Lengths:
    """Measures prompts as verl does before it leaves out those that are too long.

    Without a tokenizer it counts UTF-8 bytes of the text: the tokenizers of all models here are
    byte-level, so a prompt has at most one token a byte, plus the few of the chat template.
    """

    def __init__(self, tokenizer: str | None) -> None:
        """Load the tokenizer.

        Args:
            tokenizer: hub id or folder; None counts bytes.

        Raises:
            UnusableError: it cannot be loaded.
        """
        self.unit = BYTES if tokenizer is None else TOKENS
        self._tokenizer: Any = None if tokenizer is None else _load(tokenizer)

    def __call__(self, messages: Messages) -> int:
        """Length of a prompt with its chat template, in `unit`."""
        text = "\n".join(turn["content"] for turn in messages)
        if self._tokenizer is None:
            return len(text.encode())
        if getattr(self._tokenizer, "chat_template", None):
            text = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
            return len(self._tokenizer.encode(text, add_special_tokens=False))
        return len(self._tokenizer.encode(text))


def _load(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        remedy = "pip install 'm2po-lab[full-scale]', or leave the option out to count bytes"
        raise UnusableError("--tokenizer", "needs transformers", remedy) from error
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:120]
        remedy = "name a folder with a tokenizer, or leave the option out to count bytes"
        raise UnusableError("--tokenizer", f"{name} cannot be loaded ({reason})", remedy) from error
