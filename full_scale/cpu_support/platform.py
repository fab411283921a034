"""A verl platform without an accelerator: device "cpu", collectives over gloo."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

NAME = "cpu"


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Take the place of a device call that has no meaning here."""


def _zero(*args: Any, **kwargs: Any) -> int:
    """Bytes of memory on a device that does not exist."""
    return 0


def _memory(*args: Any, **kwargs: Any) -> tuple[int, int]:
    """Free and total bytes, as `torch.cuda.mem_get_info` gives them."""
    return 1 << 33, 1 << 33


NOTHING = (
    "empty_cache",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
)
ZERO = (
    "current_device",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
)
DEVICE_MODULE = SimpleNamespace(
    **dict.fromkeys(NOTHING, _nothing),
    **dict.fromkeys(ZERO, _zero),
    mem_get_info=_memory,
    device_count=lambda: 1,
    is_available=lambda: False,
    get_device_name=lambda *_: NAME,
    get_rng_state=torch.get_rng_state,
    set_rng_state=torch.set_rng_state,
    current_stream=_nothing,
)
"""The functions of `torch.cuda` that verl calls on the way of a training job."""


@PlatformRegistry.register(platform=NAME)
class CPUPlatform(PlatformBase):
    """What verl asks a device for, answered for a machine that has none."""

    device_name = NAME
    vendor_name = NAME
    device_module = DEVICE_MODULE

    def is_available(self) -> bool:
        """There is always a processor; asked only after VERL_PLATFORM named it."""
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        """Never take part in the detection: only VERL_PLATFORM=cpu chooses it."""
        return False

    def current_device(self) -> Any:
        """Where verl moves tensors to."""
        return torch.device(NAME)

    def device_count(self) -> int:
        """One, as far as placement goes."""
        return 1

    set_device = synchronize = staticmethod(_nothing)
    manual_seed = manual_seed_all = staticmethod(_nothing)
    set_allocator_settings = empty_cache = staticmethod(_nothing)
    profiler_start = profiler_stop = cudart = staticmethod(_nothing)

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        """No capability."""
        return None, None

    def communication_backend_name(self) -> str:
        """Collectives of the processor."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """A variable that nobody sets."""
        return "CPU_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        """No profiler."""
        yield

    def ray_resource_name(self) -> str:
        """Ray is started with logical GPUs that stand for places of workers."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """Nothing to leave alone."""
        return []

    def is_ipc_supported(self) -> bool:
        """Tensors between processes go through shared memory, not through device handles."""
        return False
