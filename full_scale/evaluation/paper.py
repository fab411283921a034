"""Table 1 of the paper: accuracy in percent on eight sets (Zheng et al., arXiv 2510.01161)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from full_scale.data.sets import EVALUATION
from full_scale.models import MODELS
from full_scale.recipes import METHODS, RECIPES

SOURCE = "arXiv 2510.01161, Table 1"


class Arm(NamedTuple):
    """A row of the table.

    Attributes:
        model: of `MODELS`.
        method: of `METHODS`.
        staleness: optimizer updates.
    """

    model: str
    method: str
    staleness: int

    @property
    def label(self) -> str:
        """Method and staleness as the paper writes them."""
        return f"{METHODS[self.method].label} s={self.staleness}"

    @property
    def model_label(self) -> str:
        """Model as the paper writes it."""
        return MODELS[self.model].label


class Published(NamedTuple):
    """Numbers of a row, percent.

    Attributes:
        sets: accuracy on each set of `EVALUATION`.
        average: as printed, which is their mean, rounded.
    """

    sets: Mapping[str, float]
    average: float


_ROWS: Mapping[tuple[str, str, int], tuple[float, ...]] = {
    ("llama3.2-3b-instruct", "grpo", 0): (11.0, 2.3, 31.3, 17.2, 53.6, 42.99, 23.1, 20.3, 25.2),
    ("llama3.2-3b-instruct", "grpo", 256): (9.6, 0.4, 25.0, 13.9, 52.4, 42.08, 17.6, 18.8, 22.5),
    ("llama3.2-3b-instruct", "gspo", 256): (9.0, 0.2, 30.0, 14.4, 50.6, 40.65, 18.8, 17.3, 22.6),
    ("llama3.2-3b-instruct", "m2po", 256): (10.4, 4.4, 33.8, 17.8, 52.0, 44.48, 21.2, 18.1, 25.3),
    ("qwen2.5-math-7b", "grpo", 0): (39.6, 17.5, 63.8, 46.7, 82.3, 64.1, 36.7, 43.6, 49.3),
    ("qwen2.5-math-7b", "grpo", 256): (29.4, 12.9, 64.4, 39.4, 80.5, 63.2, 33.1, 43.1, 45.7),
    ("qwen2.5-math-7b", "gspo", 256): (27.3, 13.1, 63.8, 36.7, 79.0, 62.2, 33.5, 41.9, 44.7),
    ("qwen2.5-math-7b", "m2po", 256): (33.3, 17.5, 63.8, 40.6, 84.0, 66.4, 38.1, 47.1, 48.8),
    ("qwen3-1.7b", "grpo", 0): (7.5, 7.5, 40.6, 26.1, 67.2, 55.9, 28.9, 30.5, 33.0),
    ("qwen3-1.7b", "grpo", 256): (8.5, 4.8, 34.4, 25.0, 64.3, 52.7, 26.0, 27.6, 30.4),
    ("qwen3-1.7b", "gspo", 256): (6.9, 4.0, 39.4, 18.9, 65.0, 53.1, 26.5, 27.5, 30.1),
    ("qwen3-1.7b", "m2po", 256): (14.0, 6.5, 48.1, 27.8, 71.8, 59.5, 29.4, 35.6, 36.6),
    ("qwen3-4b", "grpo", 0): (22.9, 20.2, 63.8, 53.9, 84.6, 69.8, 40.2, 50.5, 50.7),
    ("qwen3-4b", "grpo", 256): (14.0, 9.6, 51.9, 32.8, 76.8, 61.7, 34.4, 39.8, 40.1),
    ("qwen3-4b", "gspo", 256): (17.9, 15.4, 55.6, 38.3, 76.8, 62.3, 35.1, 44.3, 43.2),
    ("qwen3-4b", "m2po", 256): (26.7, 21.0, 64.4, 49.4, 85.8, 70.3, 40.5, 52.3, 51.3),
    ("qwen3-8b", "grpo", 0): (26.7, 19.4, 76.9, 52.8, 87.7, 71.6, 41.2, 52.8, 53.6),
    ("qwen3-8b", "grpo", 256): (21.0, 13.1, 63.8, 40.0, 81.8, 67.8, 38.5, 47.4, 46.7),
    ("qwen3-8b", "m2po", 256): (30.2, 23.1, 71.3, 56.7, 87.2, 75.1, 42.6, 54.8, 55.1),
    ("qwen2.5-32b", "grpo", 0): (24.4, 18.3, 71.9, 46.7, 85.4, 71.9, 41.4, 52.9, 51.6),
    ("qwen2.5-32b", "grpo", 256): (20.4, 9.6, 68.1, 41.1, 83.0, 67.3, 40.9, 45.9, 47.0),
    ("qwen2.5-32b", "m2po", 256): (24.8, 19.4, 76.3, 50.0, 85.7, 71.7, 41.5, 51.7, 52.6),
}

PAPER: Mapping[Arm, Published] = MappingProxyType(
    {
        Arm(*arm): Published(dict(zip(EVALUATION, row[:-1], strict=True)), row[-1])
        for arm, row in _ROWS.items()
    }
)
"""Arm -> its numbers, in the order of the paper."""


def arm_of(recipe: str) -> Arm:
    """Row that a recipe would be in; recipes that change something else have one of their own name.

    Args:
        recipe: of `RECIPES`.
    """
    chosen = RECIPES[recipe]
    return Arm(chosen.model, chosen.method, chosen.staleness)


def published(recipe: str) -> Published | None:
    """Numbers of the paper for a recipe; None where it gives none.

    Args:
        recipe: of `RECIPES`; a sweep over another setting is not in the table.
    """
    arm = arm_of(recipe)
    plain = recipe == f"{arm.model}-{arm.method}-s{arm.staleness}"
    return PAPER.get(arm) if plain else None
