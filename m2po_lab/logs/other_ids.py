"""Further id columns of a row: what training encoded, beside what the engine sampled."""

import re
from collections.abc import Mapping
from typing import Any

from m2po_lab.logs.columns import SYNONYMS

_NAME = re.compile(r"(?:^|_)(?:token_ids|tokens|ids|input_ids)$")
_OTHER_MEANING = re.compile(
    r"prompt|position|attention|top_|stop|eos|bos|pad|expert|ref|teacher|draft|num|image|pixel|type"
)


def other_ids(raw: Mapping[str, Any], row: Mapping[str, Any], used: Mapping[str, str]) -> list[Any]:
    """Lists of ids in the row other than the one taken for its tokens, prompts left out.

    `input_ids` with prompt and response count too: the tokens must then stand in it in one piece.
    """
    if "token_ids" not in row:
        return []
    taken = {used.get("token_ids"), used.get("prompt_ids"), *SYNONYMS["prompt_ids"]}
    return [
        value
        for name, value in raw.items()
        if name not in taken
        and isinstance(value, list)
        and _NAME.search(name)
        and not _OTHER_MEANING.search(name)
    ]
