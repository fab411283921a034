"""What it takes to run verl without an accelerator, for tests: not for training.

`VERL_PLATFORM=cpu VERL_USE_EXTERNAL_MODULES=full_scale.cpu_support,full_scale.verl_plugin`.
"""

from full_scale.cpu_support import platform, process_group

__all__ = ["platform", "process_group"]

process_group.accept_one_backend()
