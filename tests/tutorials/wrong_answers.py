"""Answers that must not pass, by exercise: slips of thought, wild guesses, other things."""

import math

WRONG = {
    "weights-token": (0.2, math.log(0.2), -math.log(0.2), math.log10(0.2) ** 2, 2.5, 0, "2.59"),
    "weights-ess": (4 * 16 / 22, 1.0, 22 / 16, 0.5, None),
    "weights-length": (34, 34.31, 25, 36, math.inf),
    "weights-blind": ("m2", {"m2", "k1"}, {"ess_fraction", "chi2"}, {"m2", "k1", "k3", "chi2"}, 1),
}
