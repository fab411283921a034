"""What a recipe takes: memory, disk, hours; and what stale data would buy under other schedules."""

from full_scale.plan.assumptions import Assumptions, changed
from full_scale.plan.plan import Plan, plan
from full_scale.plan.text import document, summary, text

__all__ = ["Assumptions", "Plan", "changed", "document", "plan", "summary", "text"]
