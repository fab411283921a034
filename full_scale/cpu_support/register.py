"""Importing this module makes platform, process group and rollout known to verl.

It is a module of its own because verl imports it in the middle of its own import, when nothing that
verl was loaded from may be needed.
"""

from full_scale.cpu_support import platform, process_group, rollout

__all__ = ["platform", "process_group", "rollout"]

process_group.accept_one_backend()
rollout.register()
