"""The server of `rollout.name=hf`. Loads verl only when it answers, so that ray can unpickle it."""

import asyncio
from typing import Any, TypeAlias

import torch

from full_scale.cpu_support.sampling import Answer, Request, sample

GATHER_SECONDS = 0.02
"""So long a request waits for others to be sampled with."""

Pending: TypeAlias = asyncio.Future[tuple[Answer, int | None]]
"""An answer and the version of the weights that gave it, when it is there."""


class HFServer:
    """Answers requests in batches; a request that arrives during a weight update waits."""

    def __init__(self, path: str, seed: int, response_length: int) -> None:
        """Load the model on the processor, in float32."""
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self.generator = torch.Generator().manual_seed(seed)
        self.response_length = response_length
        self.version: int | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.waiting: list[tuple[Request, Pending]] = []
        self.busy = asyncio.Lock()

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], **unused: Any
    ) -> Any:
        """Sample one answer.

        Raises:
            ValueError: a truncated distribution is asked for.
        """
        from verl.workers.rollout.replica import TokenOutput

        if sampling_params.get("top_p", 1.0) < 1 or sampling_params.get("top_k", -1) > 0:
            raise ValueError(
                f"rollout.name=hf samples from the whole vocabulary: {sampling_params}"
            )
        most = min(sampling_params.get("max_tokens", self.response_length), self.response_length)
        request = Request(list(prompt_ids), most, float(sampling_params.get("temperature", 1.0)))
        answer, version = await self._answer(request)
        return TokenOutput(
            token_ids=answer.ids,
            log_probs=answer.logps if sampling_params.get("logprobs") else None,
            stop_reason="completed" if answer.stopped else "aborted",
            extra_fields={"global_steps": version},
        )

    async def _answer(self, request: Request) -> tuple[Answer, int | None]:
        future: asyncio.Future[tuple[Answer, int | None]] = (
            asyncio.get_running_loop().create_future()
        )
        self.waiting.append((request, future))
        await asyncio.sleep(GATHER_SECONDS)
        while not future.done():
            await self.open.wait()
            async with self.busy:
                batch, self.waiting = self.waiting, []
                if batch and self.open.is_set():
                    await self._sample(batch)
                else:
                    self.waiting = batch + self.waiting
        return future.result()

    async def _sample(self, batch: list[tuple[Request, Pending]]) -> None:
        answers = await asyncio.to_thread(
            sample,
            self.model,
            [request for request, _ in batch],
            self.model.config.eos_token_id,
            self.generator,
            lambda: not self.open.is_set(),
        )
        for answer, (_, future) in zip(answers, batch, strict=True):
            future.set_result((answer, self.version))

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """Interrupt what is being sampled and let nothing in until `resume_generation`."""
        self.open.clear()
        async with self.busy:
            pass

    async def resume_generation(self) -> None:
        """Let requests in again."""
        self.open.set()

    async def load(self, weights: dict[str, torch.Tensor], version: int | None) -> None:
        """Take over weights and their version, between two batches."""
        async with self.busy:
            self.model.load_state_dict(weights)
            self.version = version

    async def wake_up(self) -> None:
        """Weights never leave the memory of the processor."""

    async def sleep(self) -> None:
        """Wait for what is being sampled, as verl puts servers to sleep between the two roles."""
        async with self.busy:
            pass

    async def clear_kv_cache(self) -> None:
        """The cache lives as long as a batch."""

    release_kv_cache = resume_kv_cache = clear_kv_cache
