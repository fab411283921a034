r"""Where the answer is: in the last `\boxed{}` of a response."""

import re

BOX = re.compile(r"\\f?box(?:ed)?(?![A-Za-z])\s*")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
WORD = re.compile(r"[^\s$]+")
LONGEST = 1000
"""A longer answer, in characters, is compared letter by letter only; a longer text without a box is
cut to its end."""


def boxed(response: str) -> str | None:
    r"""Content of the last box of a response.

    A backslash takes the meaning of a brace away, as in LaTeX; `\boxed 7` holds one word.

    Returns:
        None if there is no box, or if the last one is empty or never closed.
    """
    start = max(response.rfind(r"\boxed"), response.rfind(r"\fbox"))
    opening = BOX.match(response, start) if start >= 0 else None
    if opening is None:
        return None
    if not response.startswith("{", opening.end()):
        word = WORD.match(response, opening.end())
        return word and word[0]
    depth = 0
    for brace in BRACE.finditer(response, opening.end()):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return response[opening.end() + 1 : brace.start()].strip() or None
    return None
