"""Samplers that are not quite the trainer: noise, lower precision, top-p, temperature.

Staleness makes the sampling policy an older one; a mismatched engine makes it another one at once,
at lag 0. Each of these changes the logits before a token is drawn, and the sampler reports the
log-probs it really drew from, so importance weights stay right and their drift is the engine's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toy_envs.policy import Engine

Logits = NDArray[np.float64]


@dataclass(frozen=True)
class SamplerNoise:
    """Independent normal errors on every logit of every token, as of kernels that add up otherwise.

    Attributes:
        scale: standard deviation, nats, at least 0.
    """

    scale: float = 0.05

    def __post_init__(self) -> None:
        """Check the scale."""
        if not 0 <= self.scale < np.inf:
            raise ValueError(f"noise scale {self.scale} is not a number of at least 0; try 0.05")

    def logits(self, logits: Logits, rng: np.random.Generator) -> Logits:
        """Add the errors."""
        return logits + self.scale * rng.standard_normal(logits.shape)


@dataclass(frozen=True)
class LowPrecision:
    """Logits as a 16-bit number holds them, rounded to nearest, ties to even.

    Attributes:
        kind: "bf16" (8 bits of significand) or "fp16" (11 bits).
    """

    kind: str = "bf16"

    def __post_init__(self) -> None:
        """Check the kind."""
        if self.kind not in _ROUND:
            raise ValueError(f"unknown precision {self.kind!r}; one of {', '.join(_ROUND)}")

    def logits(self, logits: Logits, rng: np.random.Generator) -> Logits:
        """Round."""
        return _ROUND[self.kind](logits)


@dataclass(frozen=True)
class Temperature:
    """Sampling at a temperature the trainer does not know of: logits / value.

    Attributes:
        value: above 0; below 1 sharpens.
    """

    value: float = 1.1

    def __post_init__(self) -> None:
        """Check the value."""
        if not 0 < self.value < np.inf:
            raise ValueError(f"temperature {self.value} is not above 0; 1 is the trainer's")

    def logits(self, logits: Logits, rng: np.random.Generator) -> Logits:
        """Divide."""
        return logits / self.value


@dataclass(frozen=True)
class TopP:
    """Only the most probable tokens, until their mass reaches p; the rest is never drawn.

    What is left is renormalised, so reported log-probs are too high by up to -log p.

    Attributes:
        p: in (0, 1]; 1 keeps everything.
    """

    p: float = 0.95

    def __post_init__(self) -> None:
        """Check p."""
        if not 0 < self.p <= 1:
            raise ValueError(f"top-p {self.p} is not in (0, 1]; 1 keeps every token")

    def logits(self, logits: Logits, rng: np.random.Generator) -> Logits:
        """Set the tail to -inf."""
        order = np.argsort(-logits, axis=1, kind="stable")
        sorted_logits = np.take_along_axis(logits, order, axis=1)
        mass = np.exp(sorted_logits - sorted_logits[:, :1])
        before = np.cumsum(mass, axis=1) - mass
        stays = before < self.p * mass.sum(axis=1, keepdims=True)
        kept = np.empty_like(stays)
        np.put_along_axis(kept, order, stays, axis=1)
        return np.where(kept, logits, -np.inf)


@dataclass(frozen=True)
class InTurn:
    """Several mismatches, one after the other.

    Attributes:
        engines: the first sees the trainer's logits.
    """

    engines: tuple[Engine, ...]

    def logits(self, logits: Logits, rng: np.random.Generator) -> Logits:
        """Pass the logits on."""
        for engine in self.engines:
            logits = engine.logits(logits, rng)
        return logits


def _bf16(logits: Logits) -> Logits:
    """Round to bfloat16: float32 without its 16 low bits."""
    bits = logits.astype(np.float32).view(np.uint32)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64)


def _fp16(logits: Logits) -> Logits:
    return logits.astype(np.float16).astype(np.float64)


_ROUND: MappingProxyType[str, Callable[[Logits], Logits]] = MappingProxyType(
    {"bf16": _bf16, "fp16": _fp16}
)

MISMATCHES: MappingProxyType[str, Callable[..., Engine]] = MappingProxyType(
    {
        "noise": SamplerNoise,
        "bf16": partial(LowPrecision, "bf16"),
        "fp16": partial(LowPrecision, "fp16"),
        "temperature": Temperature,
        "top-p": TopP,
    }
)
"""Name -> a sampler; called with a number, or with nothing for its default."""
_WITHOUT_VALUE = ("bf16", "fp16")


def mismatched(text: str) -> Engine | None:
    """Read what the sampler is made to do: `noise=0.1`, `bf16`, `temperature=1.1,top-p=0.9`.

    Args:
        text: names of MISMATCHES, in the order they act, separated by commas; `=number` changes a
            default. Nothing is the trainer itself.

    Raises:
        ValueError: an unknown name, or a number that is none, out of range or not wanted.
    """
    engines = tuple(_engine(part.strip()) for part in text.split(",") if part.strip())
    if len(engines) > 1:
        return InTurn(engines)
    return engines[0] if engines else None


def _engine(part: str) -> Engine:
    name, equals, number = part.partition("=")
    if name not in MISMATCHES:
        known = ", ".join(MISMATCHES)
        raise ValueError(f"unknown mismatch {name!r}; one of {known}")
    if not equals:
        return MISMATCHES[name]()
    if name in _WITHOUT_VALUE:
        raise ValueError(f"mismatch {name} takes no number; give {name} alone")
    try:
        value = float(number)
    except ValueError:
        raise ValueError(
            f"mismatch {part!r}: {number!r} is no number; {name} alone has one"
        ) from None
    return MISMATCHES[name](value)
