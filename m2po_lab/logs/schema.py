"""The native log: a Parquet dataset, one row a response. This table is the format."""

from collections.abc import Mapping

import pyarrow as pa

SCHEMA_KEY = b"m2po_lab.schema"
SCHEMA_NAME, SCHEMA_VERSION = "log", 1
SCHEMA_VALUE = f"{SCHEMA_NAME}/{SCHEMA_VERSION}".encode()

ROW_COLUMNS: Mapping[str, pa.DataType] = {
    "step": pa.int32(),
    "mini_batch": pa.int32(),
    "train_version": pa.int32(),
    "row_id": pa.string(),
    "group_id": pa.string(),
    "reward": pa.float32(),
    "finish_reason": pa.string(),
    "prompt": pa.string(),
    "response": pa.string(),
}
"""One value a response."""

TOKEN_COLUMNS: Mapping[str, pa.DataType] = {
    "token_ids": pa.int32(),
    "loss_mask": pa.bool_(),
    "behavior_logp": pa.float32(),
    "proximal_logp": pa.float32(),
    "current_logp": pa.float32(),
    "entropy": pa.float32(),
    "version": pa.int32(),
    "advantage": pa.float32(),
}
"""A list with one value a token; `advantage` may be one float32 a response instead."""

ORDER = (
    "step",
    "mini_batch",
    "train_version",
    "row_id",
    "group_id",
    "token_ids",
    "loss_mask",
    "behavior_logp",
    "proximal_logp",
    "current_logp",
    "entropy",
    "version",
    "advantage",
    "reward",
    "finish_reason",
    "prompt",
    "response",
)
"""Columns in the order in which they stand in a file."""
