"""Seconds of an update and of a sampled token, from operations and bytes.

An update counts 6 operations a parameter and token (forward 2, backward 4) and for attention the
causal half of both products; MFU is defined by that count. A forward pass alone is a third of it in
operations, and since checkpointing makes the update do four thirds, a quarter of it in time.
"""

from dataclasses import dataclass

from full_scale.models import Model
from full_scale.plan.assumptions import Assumptions
from full_scale.plan.lengths import Lengths
from full_scale.recipes import Recipe

FORWARD_OF_UPDATE = 0.25
"""Time of a pass without gradient beside that of an update with checkpointing."""
SELECTING = "m2po"
"""Loss mode whose scope `exact` takes one more pass over the mini-batch."""
KV_BYTES = WEIGHT_BYTES = 2


def multiplied(model: Model) -> int:
    """Parameters that a token is multiplied with: all but the input embedding."""
    return model.layers * model.layer_parameters + model.vocabulary * model.hidden


def flops(model: Model, tokens: float, squares: float) -> float:
    """Operations of forward and backward.

    Args:
        model: shape.
        tokens: of all sequences.
        squares: sum over sequences of the squared length.
    """
    attention = 2 * model.layers * model.heads * model.head_size * squares
    return 6 * multiplied(model) * tokens + 3 * attention


def passes(recipe: Recipe) -> int:
    """Forward passes of a step beside those of the updates.

    One for the exact mask of M2PO; one for the log-probs of the start of the step, where the
    recipe does not take those of the sampler.
    """
    method = recipe.trust_region
    return (method.loss_mode == SELECTING) + (not method.bypass)


@dataclass(frozen=True)
class Training:
    """Time of training on one step's batch.

    Attributes:
        seconds_a_token: of one GPU, update and extra passes together.
        seconds_a_square: of one GPU for a squared token, attention.
    """

    seconds_a_token: float
    seconds_a_square: float

    @classmethod
    def of(cls, recipe: Recipe, assumed: Assumptions, forwards: int | None = None) -> "Training":
        """Training of a recipe's model.

        Args:
            recipe: model and method.
            assumed: speeds.
            forwards: passes without gradient; those of the method by default.
        """
        speed = assumed.peak_tflops * 1e12 * assumed.mfu
        extra = passes(recipe) if forwards is None else forwards
        times = 1 + FORWARD_OF_UPDATE * extra
        token = flops(recipe.shape, 1, 0) / speed * times
        selection = assumed.selection_ns * 1e-9 * (recipe.trust_region.loss_mode == SELECTING)
        return cls(token + selection, flops(recipe.shape, 0, 1) / speed * times)

    def seconds(self, tokens: float, squares: float, gpus: int) -> float:
        """Time of a batch whose tokens are spread evenly over GPUs."""
        return (tokens * self.seconds_a_token + squares * self.seconds_a_square) / gpus


@dataclass(frozen=True)
class Decoding:
    """Time of an engine for one more token of each of its sequences: base + b each + k cached.

    Attributes:
        base: seconds for reading the weights, and the overhead.
        each: seconds a sequence, arithmetic.
        cached: seconds a token in the KV cache, reading it.
        prefill: seconds a token of a prompt.
        capacity: tokens that the KV cache holds.
        sequences: at a time, at most.
    """

    base: float
    each: float
    cached: float
    prefill: float
    capacity: float
    sequences: int

    @classmethod
    def of(cls, recipe: Recipe, assumed: Assumptions, kv_bytes: float) -> "Decoding":
        """An engine of a recipe.

        Args:
            recipe: model and tensor parallelism.
            assumed: speeds.
            kv_bytes: of the KV cache of one GPU.
        """
        model, width = recipe.shape, recipe.tensor_parallel
        bandwidth = assumed.bandwidth_tb * 1e12 * assumed.decode_bandwidth * width
        speed = assumed.peak_tflops * 1e12 * assumed.decode_compute * width
        token = 2 * multiplied(model) / speed
        return cls(
            base=assumed.token_ms * 1e-3 + WEIGHT_BYTES * multiplied(model) / bandwidth,
            each=token,
            cached=kv_token_bytes(model) / bandwidth,
            prefill=token,
            capacity=kv_bytes * width / kv_token_bytes(model),
            sequences=assumed.sequences,
        )

    def token_seconds(self, sequences: float, cached: float) -> float:
        """Time of one more token of each sequence."""
        return self.base + self.each * sequences + self.cached * cached


def kv_token_bytes(model: Model) -> int:
    """Keys and values of one token in all layers."""
    return 2 * KV_BYTES * model.layers * model.kv_heads * model.head_size


def sequence_moments(lengths: Lengths, prompt: float) -> tuple[float, float]:
    """Mean and mean square of prompt and response together, tokens."""
    first, second = lengths.moment(1), lengths.moment(2)
    return prompt + first, prompt**2 + 2 * prompt * first + second
