"""A small decoder-only transformer with batched KV-cache sampling, in the layout of GPT-2."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from toy_envs.policy import Engine, draw

Cache = list[tuple[Tensor, Tensor]]

EMBEDDING_STD = 0.02
"""Standard deviation of initial embeddings, as in GPT-2."""


@dataclass(frozen=True)
class SmallLMConfig:
    """Shape of the model; the defaults have 103 thousand parameters.

    Attributes:
        vocabulary: number of tokens.
        context: longest prompt and answer together.
        width: size of a hidden state.
        layers: transformer blocks.
        heads: attention heads a block.
    """

    vocabulary: int = 12
    context: int = 16
    width: int = 64
    layers: int = 2
    heads: int = 4


class Block(nn.Module):
    """Pre-norm attention and a four times wider MLP, each added to the residual stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(B, T, width) and the keys and values of earlier tokens -> (B, T, width), all of them."""
        b, t, width = x.shape
        q, k, v = (
            a.view(b, t, self.heads, -1).transpose(1, 2)
            for a in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        # One new token sees everything before it; several at once need the causal mask.
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.project(mixed.transpose(1, 2).reshape(b, t, width))
        x = x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x, (k, v)


class SmallLM(nn.Module):
    """Token and position embeddings, blocks, a final norm and an untied head.

    Embeddings start as small as GPT-2's, the rest as PyTorch's default. With GPT-2's small weights
    everywhere the warm start of the recipes ends at .6 % accuracy instead of 9 %; with PyTorch's
    large embeddings an update moves the policy half as far.
    """

    def __init__(self, config: SmallLMConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=EMBEDDING_STD)

    def forward(self, ids: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """(B, T) ids -> (B, T, vocabulary) logits, and the cache to go on from."""
        start = cache[0][0].shape[2] if cache else 0
        place = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(place)
        kept: Cache = []
        for i, block in enumerate(self.blocks):
            x, pair = block(x, cache[i] if cache else None)
            kept.append(pair)
        return self.head(self.norm(x)), kept

    def logp(self, prompts: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probs of the answer tokens and entropy of their distributions, both (B, T), nats."""
        logits, _ = self(torch.cat([prompts, answers[:, :-1]], dim=1))
        logps = functional.log_softmax(logits[:, prompts.shape[1] - 1 :], dim=-1)
        chosen = logps.gather(2, answers[:, :, None]).squeeze(2)
        return chosen, -(logps.exp() * logps).sum(dim=-1)

    @torch.no_grad()
    def sample(
        self,
        prompts: Tensor,
        length: int,
        rng: np.random.Generator,
        engine: Engine | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Sample answers with a KV cache: every token is computed once.

        Args:
            prompts: (B, P) ids, all of one length.
            length: tokens to sample.
            rng: source of randomness; the same state gives the same answers.
            engine: what the sampler makes of the logits; None is temperature 1, no top-p.

        Returns:
            ids, log-probs and entropies (nats) of the sampled tokens, each (B, length).
        """
        logits, cache = self(prompts)
        drawn = []
        for i in range(length):
            drawn.append(draw(logits[:, -1].double().numpy(), rng, engine))
            if i + 1 < length:
                logits, cache = self(torch.from_numpy(drawn[-1][0])[:, None], cache)
        ids, logps, entropies = (np.stack(column, axis=1) for column in zip(*drawn, strict=True))
        return ids, logps, entropies
