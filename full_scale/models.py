"""Shapes of the models that the recipes train, as their published configurations give them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Model:
    """A decoder with grouped-query attention and a gated feed-forward part.

    Attributes:
        hub_id: repository on the Hugging Face hub.
        label: name in the paper's tables.
        layers: decoder blocks.
        hidden: width of a hidden state.
        intermediate: width of the feed-forward part.
        heads: query heads.
        kv_heads: key and value heads.
        head_size: width of a head.
        vocabulary: rows of the embedding; more than the tokenizer has tokens, in most models.
        positions: longest context that the published configuration allows, tokens.
        tied: whether input and output embeddings are one matrix.
        qkv_bias: whether query, key and value projections have a bias.
        qk_norm: whether queries and keys are normalised per head.
    """

    hub_id: str
    label: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    positions: int
    tied: bool
    qkv_bias: bool = False
    qk_norm: bool = False

    @property
    def layer_parameters(self) -> int:
        """Parameters of one decoder block."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        attention += self.qkv_bias * (queries + 2 * keys) + self.qk_norm * 2 * self.head_size
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, a tied embedding counted once."""
        embeddings = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return self.layers * self.layer_parameters + embeddings + self.hidden


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "llama3.2-3b-instruct": Model(
            hub_id="meta-llama/Llama-3.2-3B-Instruct",
            label="Llama-3.2-3B-Instruct",
            layers=28,
            hidden=3072,
            intermediate=8192,
            heads=24,
            kv_heads=8,
            head_size=128,
            vocabulary=128256,
            positions=131072,
            tied=True,
        ),
        "qwen2.5-math-7b": Model(
            hub_id="Qwen/Qwen2.5-Math-7B",
            label="Qwen2.5-Math-7B",
            layers=28,
            hidden=3584,
            intermediate=18944,
            heads=28,
            kv_heads=4,
            head_size=128,
            vocabulary=152064,
            positions=4096,
            tied=False,
            qkv_bias=True,
        ),
        "qwen3-1.7b": Model(
            hub_id="Qwen/Qwen3-1.7B-Base",
            label="Qwen3-Base-1.7B",
            layers=28,
            hidden=2048,
            intermediate=6144,
            heads=16,
            kv_heads=8,
            head_size=128,
            vocabulary=151936,
            positions=32768,
            tied=True,
            qk_norm=True,
        ),
        "qwen3-4b": Model(
            hub_id="Qwen/Qwen3-4B-Base",
            label="Qwen3-Base-4B",
            layers=36,
            hidden=2560,
            intermediate=9728,
            heads=32,
            kv_heads=8,
            head_size=128,
            vocabulary=151936,
            positions=32768,
            tied=True,
            qk_norm=True,
        ),
        "qwen3-8b": Model(
            hub_id="Qwen/Qwen3-8B-Base",
            label="Qwen3-Base-8B",
            layers=36,
            hidden=4096,
            intermediate=12288,
            heads=32,
            kv_heads=8,
            head_size=128,
            vocabulary=151936,
            positions=32768,
            tied=False,
            qk_norm=True,
        ),
        "qwen2.5-32b": Model(
            hub_id="Qwen/Qwen2.5-32B",
            label="Qwen2.5-32B",
            layers=64,
            hidden=5120,
            intermediate=27648,
            heads=40,
            kv_heads=8,
            head_size=128,
            vocabulary=152064,
            positions=131072,
            tied=False,
            qkv_bias=True,
        ),
    }
)
"""Name in recipes -> its shape; `m2po-lab preflight` compares it with the model that is there."""
