"""Dumps with one JSON object a sample: open-instruct, AReaL, RLLoggingBoard; one a group: Atropos.

Writers: open_instruct/rl_utils.py; areal/infra/workflow_executor.py; RLLoggingBoard's token-level
JSON lines; Atropos' ScoredDataGroup.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from m2po_lab.logs import values
from m2po_lab.logs.batching import NumberedRow
from m2po_lab.logs.readers.base import Columns, JsonFormat, columnar, without_prompt
from m2po_lab.logs.source import Source


class OpenInstruct(JsonFormat):
    """Ids, reward and advantage of a response; `logprobs` of the sampler, or null."""

    name = "open-instruct"
    keys = frozenset({"prompt_tokens", "response_tokens", "sample_idx", "prompt_idx", "step"})
    own: ClassVar[Columns] = {"token_ids": ("response_tokens",)}
    missing_flag = (
        "open-instruct's rollout traces hold the sampler's logprobs at most; save the trainer's "
        "new_logprobs of the same tokens beside them"
    )

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """Sample and prompt numbers start anew in every step."""
        step = item.get("step")
        yield (
            line,
            {
                **item,
                "row_id": f"{step}/{item.get('sample_idx')}",
                "group_id": f"{step}/{item.get('prompt_idx')}",
            },
        )


class AReaL(JsonFormat):
    """Text of the rollouts; the directory is the newest policy version, the file is the task.

    `head_version` is the smallest version over prompt and response, always -1 there: not used.
    """

    name = "areal"
    keys = frozenset({"task_id", "sample_idx", "head_version", "tail_version", "completion"})
    own: ClassVar[Columns] = {"group_id": ("task_id",), "step": ("tail_version",)}
    missing_flag = (
        "rollout.dump_to_file=true holds text only; save logprobs, prox_logp, versions and "
        "loss_mask of the training batch in the trainer"
    )

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """Response length from the two lengths that the dump gives."""
        length, prompt = values.integer(item.get("seqlen")), values.integer(item.get("prompt_len"))
        row = {**item, "row_id": f"{item.get('task_id')}/{item.get('sample_idx')}"}
        if 0 <= prompt <= length:
            row["response_length"] = length - prompt
        yield line, row

    def file_step(self, source: Source) -> tuple[int, str] | None:
        """The file is named after a task, not a step."""
        return (-1, "tail_version")


class LoggingBoard(JsonFormat):
    """Token texts with log-probs of the policy and of a reference model, not of the sampler."""

    name = "rlloggingboard"
    keys = frozenset({"response_tokens", "logprobs", "ref_logprobs", "token_rewards"})
    missing_flag = (
        "RLLoggingBoard records hold log-probs of the policy and the reference model; add the "
        "sampler's as rollout_log_probs and the trainer's as log_probs"
    )


class Atropos(JsonFormat):
    """A group a line; masks are labels with -100 on the prompt, where log-probs are 1.0."""

    name = "atropos"
    keys = frozenset({"tokens", "masks", "scores"})
    missing_flag = (
        "inference_logprobs (the environment's managed_server) are the sampler's; log the "
        "trainer's log-probs of the same tokens as trainer_logprobs"
    )

    def rows(self, line: int, item: dict[str, Any]) -> Iterator[NumberedRow]:
        """One row a sequence of the group."""
        count = len(item["tokens"]) if values.is_sequence(item["tokens"]) else 0
        for i, row in enumerate(columnar(item, count)):
            row |= {"row_id": f"{line}/{i}", "group_id": str(line)}
            whole = values.is_sequence(row.get("masks")) and len(row["masks"]) > 0
            yield line, without_prompt(row, "masks", "tokens") if whole else row
