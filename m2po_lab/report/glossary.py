"""The words of a finding, explained before they are used; only those that occur."""

import re

TERMS: tuple[tuple[str, str, str], ...] = (
    ("M2PO", r"\bM2PO\b", "masks the largest |d| of active tokens until their M2 is in a budget"),
    ("clip", r"\bclips?\b(?!_|-\w)", "drops active tokens whose r leaves a range"),
    ("active", r"\bactive\b", "A>0 with r>1 or A<0 with r<1, where a trust region acts"),
    ("trust region", r"\btrust region", "the rule that drops tokens too far off policy"),
    ("M2", r"\bM2\b", "mean of d², how far apart the policies are"),
    ("ESS/n", r"\bESS\b", "share of the tokens that the weights r are worth, 1 on policy"),
    ("chi2", r"\bchi2\b", "mean of r², less 1"),
    ("k3", r"\bk3\b", "estimate of the KL divergence, mean of e^d - 1 - d"),
    ("k1", r"\bk1\b", "estimate of the KL divergence, -mean of d"),
    (
        "d, r",
        r"\b[dr]\b(?!\()|\be\^d",
        "log-ratio in nats and ratio of a token's probabilities under two policies, as in "
        "current/behavior; on policy d = 0, r = 1",
    ),
    ("current", r"\bcurrent\b", "the one in training"),
    ("proximal", r"\bproximal\b", "the trainer's at the start of the step"),
    ("behavior", r"\bbehavior\b", "the policy that sampled the tokens"),
    ("lag", r"\blags?\b", "trainer updates since a token was sampled"),
    ("A", r"\bA ?(?:[<>=]|!=)", "advantage"),
)
"""Word, pattern of its use, meaning; a meaning uses only words that stand further down."""


def glossary(text: str) -> str:
    """Explain the words that occur in a text and those that their meanings use, simplest first.

    >>> glossary("the largest lag is 7")
    'lag: trainer updates since a token was sampled.'
    """
    seen, found = text, []
    for word, pattern, meaning in TERMS:
        if re.search(pattern, seen):
            found.append(f"{word}: {meaning}.")
            seen += f" {meaning}"
    return " ".join(reversed(found))
