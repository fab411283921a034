"""The small real log behind `m2po-lab demo` and notebook 06, and its licence.

`trl_grpo_bf16.jsonl` is a real TRL 1.13 GRPO run of Qwen2.5-0.5B-Instruct (vLLM engine, bf16
trainer, lags 0 to 3), one line per row and trainer revision, from the martingale 0.2.0 source
distribution, flattened; `trl_metrics.json` is what the trainer logged of it, from the same place
(Apache-2.0, `LICENSE.martingale`).
"""
