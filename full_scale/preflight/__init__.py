"""What would stop a job, or make it mean something else, found before it starts."""

from full_scale.preflight.check import Check, Status
from full_scale.preflight.run import preflight

__all__ = ["Check", "Status", "preflight"]
