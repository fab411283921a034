"""Which column is which: the names that trainers use for the same thing, in order of preference."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from m2po_lab.logs.errors import UnreadableLogError

Record = Mapping[str, Any]
"""One row as a dict: column name -> value, as a framework wrote it or under canonical names."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "behavior_logp": (
        "behavior_logp",
        "rollout_log_probs",
        "rollout_logprobs",
        "inference_logprobs",
        "generation_logprobs",
        "sampling_logprobs",
        "logprobs",
    ),
    "proximal_logp": (
        "proximal_logp",
        "old_log_probs",
        "prev_logprobs",
        "action_log_probs",
        "prox_logp",
        "old_per_token_logps",
    ),
    "current_logp": ("current_logp", "log_probs", "trainer_logprobs", "trainer_log_probs"),
    "weights": ("rollout_is_weights", "importance_weights"),
    "keep": ("loss_mask", "response_mask", "action_mask", "token_loss_mask", "masks"),
    "token_ids": ("token_ids", "response_ids", "response_tokens", "tokens"),
    "token_text": ("token_text", "token_texts", "token_strings"),
    "offsets": ("offsets", "offset_mapping", "token_offsets"),
    "version": ("versions", "version", "weight_versions"),
    "train_version": ("train_version", "trainer_version"),
    "row_id": ("row_id", "sequence_id", "request_id"),
    "group_id": ("group_id", "group_index", "uid", "prompt_idx"),
    "advantage": ("advantage", "advantages", "advantage_or_reward"),
    "reward": ("reward", "rewards", "score", "scores"),
    "entropy": ("entropy", "entropies"),
    "step": ("step", "global_step", "global_steps"),
    "mini_batch": ("mini_batch",),
    "finish_reason": ("finish_reason", "stop_reason", "status"),
    "prompt": ("prompt", "input"),
    "response": ("response", "completion", "output", "responses"),
    "prompt_ids": ("prompt_ids", "prompt_token_ids", "prompt_tokens"),
    "prompt_length": ("prompt_length", "prompt_len"),
    "response_length": ("response_length", "response_lengths"),
}
"""Canonical field -> column names that mean it, the first that a row has wins."""

ROLES: Mapping[str, str] = {
    "behavior": "behavior_logp",
    "rollout": "behavior_logp",
    "proximal": "proximal_logp",
    "prox": "proximal_logp",
    "old": "proximal_logp",
    "current": "current_logp",
    "new": "current_logp",
    "mask": "keep",
    "tokens": "token_ids",
    "versions": "version",
    "row": "row_id",
    "group": "group_id",
}
"""Short names that `--columns` accepts beside the canonical ones."""

REPORT_NAMES: Mapping[str, str] = {
    "behavior_logp": "behavior",
    "proximal_logp": "proximal",
    "current_logp": "current",
    "keep": "mask",
    "token_ids": "tokens",
    "row_id": "row",
    "group_id": "group",
}
"""Canonical field -> its name in the report's `columns`."""


def parse_overrides(columns: Mapping[str, str]) -> dict[str, str]:
    """Turn `--columns` roles into canonical fields.

    Raises:
        UnreadableLogError: a role that does not exist.
    """
    chosen = {}
    for role, name in columns.items():
        canonical = ROLES.get(role, role)
        if canonical not in SYNONYMS:
            valid = ", ".join(sorted({*ROLES, *SYNONYMS}))
            raise UnreadableLogError("--columns", f"no role is called {role!r}", f"one of {valid}")
        chosen[canonical] = name
    return chosen


@dataclass
class Columns:
    """Translates a framework's rows to canonical names and remembers what was taken for what.

    Args:
        overrides: role -> column name from the user, above everything else.
        own: canonical field -> names that this framework uses, in place of the synonyms.
        used: filled in: canonical field -> column name.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Build the table once."""
        chosen = {role: (name,) for role, name in parse_overrides(self.overrides).items()}
        taken = {name for (name,) in chosen.values()}
        self._table = {
            role: chosen.get(role) or tuple(n for n in self.own.get(role, names) if n not in taken)
            for role, names in SYNONYMS.items()
        }
        self._demanded = chosen

    def canonical(self, raw: Record) -> dict[str, Any]:
        """Return the row under canonical names; nulls and unknown columns are left out."""
        row: dict[str, Any] = {}
        for role, names in self._table.items():
            for name in names:
                if (value := raw.get(name)) is not None:
                    row[role] = value
                    self.used.setdefault(role, name)
                    break
        return row

    def demand(self, present: Iterable[str], place: str) -> None:
        """Check that every column named by the user exists.

        Raises:
            UnreadableLogError: it does not; the message lists those that do.
        """
        known = set(present)
        for role, (name,) in self._demanded.items():
            if name not in known:
                has = ", ".join(sorted(known)) or "none"
                raise UnreadableLogError(
                    place, f"no column {name!r} for {role}", f"--columns can name one of: {has}"
                )

    def report(self) -> dict[str, str]:
        """What was taken for what, under the names of the report."""
        return {REPORT_NAMES.get(role, role): name for role, name in self.used.items()}
