"""Reward of the paper: 1 for a right answer, .1 for one that can at least be read, else 0.

For verl: `reward.custom_reward_function.path=pkg://full_scale.reward`. math-verify decides what is
equal, in processes of their own which are killed when an answer takes too long.
"""

from full_scale.reward.judges import Judges
from full_scale.reward.score import NOTHING, READABLE, RIGHT, compute_score, compute_scores

__all__ = ["NOTHING", "READABLE", "RIGHT", "Judges", "compute_score", "compute_scores"]
