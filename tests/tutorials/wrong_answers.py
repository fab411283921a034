"""Answers that must not pass, by exercise: slips of thought, wild guesses, other things."""

import math

import numpy as np


def keep_all(d, a, budget):
    return [True] * len(d)


def over_all_tokens(d, a, budget):
    """Mean over every token that stays; drops from H."""
    left = ((a > 0) & (d > 0)) | ((a < 0) & (d < 0))
    keep = np.ones(len(d), bool)
    while keep.any() and (d[keep] ** 2).mean() >= budget and (keep & left).any():
        keep &= ~(left & (d**2 == (d[left & keep] ** 2).max()))
    return keep


def whatever_the_advantage(d, a, budget):
    """AReaL's rule: all tokens, at least one stays."""
    keep = np.ones(len(d), bool)
    while keep.sum() > 1 and (d[keep] ** 2).mean() >= budget:
        keep &= d**2 < (d[keep] ** 2).max()
    return keep


def by_clip(d, a, budget):
    return ~(((a > 0) & (d > 0.2)) | ((a < 0) & (d < -0.2)))


WRONG = {
    "weights-token": (0.2, math.log(0.2), -math.log(0.2), math.log10(0.2) ** 2, 2.5, 0, "2.59"),
    "weights-ess": (4 * 16 / 22, 1.0, 22 / 16, 0.5, None),
    "weights-length": (34, 34.31, 25, 36, math.inf),
    "clipping-binds": ({"a"}, {"a", "b", "c"}, {"a", "c", "d"}, {"a", "c", "e"}, "f"),
    "clipping-weight": (0, 1.2, 3, 0.8, "10"),
    "clipping-delay": (44, 64, 80, 172, 300, None),
    "m2po-region": ({"a", "c"}, {"a", "b", "c", "d"}, set("abcdefgh"), "z", 4),
    "m2po-mask": ({"d"}, {"c", "g"}, {"c", "d"}, set(), 0.25),
    "m2po-function": (
        keep_all,
        over_all_tokens,
        whatever_the_advantage,
        by_clip,
        lambda d, a, budget: 1 / 0,
        lambda d, a, budget: ["yes"] * len(d),
        lambda d, a, budget: True,
        [True, False],
    ),
    "m2po-variant": ("m2po", "m2po_released", "m2po_all_tokens", "ppo", None),
    "regions-never": ("cispo", {"cispo", "topr"}, {"cispo", "topr", "sapo", "icepop"}, "m2po", 3),
    "regions-geometric": (1.35, 1.1167, 0.1, 1.0, "1.105"),
    "regions-profile": ("ppo", "cispo", "sapo", {"topr", "sapo"}, None),
    "reallog-step": (2, 12, 0, "11", None),
    "reallog-quadrant": ("A=0", "A>0,r>1", {"A<0,r<1", "A=0"}, "A<0", 3),
    "reallog-cause": ("staleness-drift", "engine-mismatch", "low-tail", "no-such-finding", 1),
    "weights-blind": ("m2", {"m2", "k1"}, {"ess_fraction", "chi2"}, {"m2", "k1", "k3", "chi2"}, 1),
}
