"""Sample answers of a Hugging Face model in batches, with the log-prob of every token."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Request:
    """One prompt and how to go on from it.

    Attributes:
        prompt: token ids.
        most: tokens to sample at most.
        temperature: 0 takes the likeliest token.
    """

    prompt: list[int]
    most: int
    temperature: float


@dataclass(frozen=True)
class Answer:
    """What was sampled.

    Attributes:
        ids: tokens, the end token included.
        logps: their log-probs under the distribution that was sampled from, nats.
        stopped: whether an end token or the limit was reached, rather than an interruption.
    """

    ids: list[int]
    logps: list[float]
    stopped: bool


@torch.no_grad()
def sample(
    model: Any,
    requests: list[Request],
    end: int,
    generator: torch.Generator,
    interrupted: Callable[[], bool] = lambda: False,
) -> list[Answer]:
    """Sample for all requests at once, with a cache of keys and values, in float32.

    Args:
        model: causal language model of transformers.
        requests: prompts may differ in length; they are padded on the left.
        end: id of the end token.
        generator: source of randomness.
        interrupted: asked before each token; True ends all answers where they are.
    """
    width = max(len(request.prompt) for request in requests)
    ids = torch.tensor([[end] * (width - len(r.prompt)) + r.prompt for r in requests])
    seen = torch.tensor([[0] * (width - len(r.prompt)) + [1] * len(r.prompt) for r in requests])
    temperature = torch.tensor([request.temperature for request in requests])
    answers: list[tuple[list[int], list[float]]] = [([], []) for _ in requests]
    stopped = [request.most <= 0 for request in requests]
    cache = None
    while not all(stopped) and not interrupted():
        output = model(
            input_ids=ids,
            attention_mask=seen,
            position_ids=(seen.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :],
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        chosen, logps = _draw(output.logits[:, -1].float(), temperature, generator)
        for i, request in enumerate(requests):
            if not stopped[i]:
                answers[i][0].append(int(chosen[i]))
                answers[i][1].append(float(logps[i]))
                stopped[i] = int(chosen[i]) == end or len(answers[i][0]) >= request.most
        ids = chosen[:, None]
        seen = torch.cat([seen, torch.ones_like(ids)], dim=1)
    return [Answer(*answer, done) for answer, done in zip(answers, stopped, strict=True)]


def _draw(logits: Tensor, temperature: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    greedy = temperature <= 0
    scaled = logits / torch.where(greedy, 1.0, temperature)[:, None]
    logps = scaled.log_softmax(dim=-1)
    drawn = torch.multinomial(logps.exp(), 1, generator=generator)[:, 0]
    chosen = torch.where(greedy, logits.argmax(dim=-1), drawn)
    return chosen, logps.gather(1, chosen[:, None])[:, 0]
