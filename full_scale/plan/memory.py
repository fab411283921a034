"""Memory of a GPU by part, under FSDP2 over all GPUs with float32 weights and bfloat16 arithmetic.

Sampling and training alternate on the same GPUs, so a GPU must hold either, not both.
"""

from dataclasses import dataclass

from full_scale.models import Model
from full_scale.plan.assumptions import Assumptions
from full_scale.recipes import Recipe

FLOAT32, BFLOAT16 = 4, 2
GB = 1e9


@dataclass(frozen=True)
class Memory:
    """Bytes of one GPU, part by part.

    Attributes:
        sampling: what lies there while responses are sampled.
        training: what lies there in an update; of the parts in `ALTERNATING` only the largest at
            any time.
        total: of the GPU.
    """

    sampling: dict[str, float]
    training: dict[str, float]
    total: float

    @property
    def sampling_peak(self) -> float:
        """Bytes in use while sampling."""
        return sum(self.sampling.values())

    @property
    def training_peak(self) -> float:
        """Largest number of bytes in use in an update."""
        alternating = [self.training[name] for name in ALTERNATING]
        return sum(self.training.values()) - sum(alternating) + max(alternating)

    @property
    def fits(self) -> bool:
        """Whether both phases fit."""
        return max(self.sampling_peak, self.training_peak) <= self.total


WEIGHTS, GRADIENTS, OPTIMIZER = "weights", "gradients", "optimizer"
ACTIVATIONS, LAYER, LOGITS = "activations", "recomputed layer", "logits"
GATHERED, SERVED, CACHE, OVERHEAD = "gathered layers", "vLLM weights", "KV cache", "overhead"
VLLM = "vLLM activations"
ALTERNATING = (LAYER, LOGITS)
"""Logits are gone before the first layer is recomputed."""


def memory(recipe: Recipe, assumed: Assumptions, gpus: int | None = None) -> Memory:
    """Memory of one GPU of a recipe.

    Args:
        recipe: model, batch and offload.
        assumed: size of a GPU and of what is not modelled.
        gpus: among which training is sharded; all of the recipe by default.
    """
    model, among = recipe.shape, gpus or recipe.gpus
    shard = model.parameters / among
    weights, optimizer = FLOAT32 * shard, 2 * FLOAT32 * shard
    served = BFLOAT16 * model.parameters / recipe.tensor_parallel
    vllm = assumed.vllm_gb * GB
    total, overhead = assumed.gpu_gb * GB, assumed.overhead_gb * GB
    return Memory(
        sampling={
            WEIGHTS: weights,
            OPTIMIZER: 0.0 if recipe.offload else optimizer,
            SERVED: served,
            VLLM: vllm,
            CACHE: max(0.0, recipe.gpu_memory_utilization * total - served - vllm),
            OVERHEAD: overhead,
        },
        training={
            WEIGHTS: weights,
            GRADIENTS: FLOAT32 * shard,
            # verl brings offloaded states back for the update.
            OPTIMIZER: optimizer,
            GATHERED: gathered_bytes(model),
            ACTIVATIONS: checkpoint_bytes(model) * recipe.tokens_per_gpu,
            LAYER: layer_bytes(model) * recipe.tokens_per_gpu,
            LOGITS: assumed.logit_bytes * model.vocabulary * recipe.tokens_per_gpu,
            OVERHEAD: overhead,
        },
        total=total,
    )


def gathered_bytes(model: Model) -> float:
    """Unsharded parts at a time: two layers and the embeddings, and the gradient of a layer."""
    embeddings = model.parameters - model.layers * model.layer_parameters
    weights = BFLOAT16 * (2 * model.layer_parameters + embeddings)
    return weights + (BFLOAT16 + FLOAT32) * model.layer_parameters


def checkpoint_bytes(model: Model) -> float:
    """Of a token, the input of each layer, which checkpointing keeps."""
    return BFLOAT16 * model.hidden * model.layers


def layer_bytes(model: Model) -> float:
    """Of a token, what the backward pass of one layer needs.

    Six values of the hidden width (input, two norms, attention's output, its projection, the sum),
    queries, keys and values with their rotated copies, and four of the feed-forward width (gate,
    its activation, up, their product).
    """
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    values = 6 * model.hidden + 2 * queries + 3 * keys + 4 * model.intermediate
    return BFLOAT16 * values


def checkpoint_disk_bytes(model: Model) -> float:
    """A checkpoint of verl: weights and both moments of Adam in float32."""
    return 3 * FLOAT32 * model.parameters


def offloaded_bytes(recipe: Recipe) -> float:
    """Host memory of all nodes for what is offloaded."""
    return 2 * FLOAT32 * recipe.shape.parameters if recipe.offload else 0.0
