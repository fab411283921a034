"""Size of the stale queue: batches that wait in memory, and once more in every checkpoint.

verl's TransferQueue holds, for each token of a sequence, its id twice (whole, and as prompt or
response) and its position, int64; for each token of a response two masks, int64, its log-prob and
its reward, float32; and for each row the prompt's text, ids and tags.
"""

from dataclasses import dataclass

from full_scale.recipes import Recipe

SEQUENCE_TOKEN_BYTES = 3 * 8
RESPONSE_TOKEN_BYTES = 2 * 8 + 2 * 4
ROW_BYTES = 4000
"""Text of the prompt, ids, tags and their Python objects; a guess."""


@dataclass(frozen=True)
class Queue:
    """The stale queue when it is fullest, just before a step takes the oldest batch.

    Attributes:
        batches: that wait, the one that is taken next among them.
        rows: responses.
        bytes: of memory; a checkpoint writes about as many.
    """

    batches: int
    rows: int
    bytes: float


def queue(recipe: Recipe, prompt_mean: float, response_mean: float) -> Queue:
    """Size of the queue of a recipe.

    Args:
        recipe: staleness and batch.
        prompt_mean: tokens.
        response_mean: tokens.
    """
    batches = recipe.staleness_steps + 1
    rows = batches * recipe.rows
    row = SEQUENCE_TOKEN_BYTES * (prompt_mean + response_mean)
    row += RESPONSE_TOKEN_BYTES * response_mean + ROW_BYTES
    return Queue(batches, rows, rows * row)
