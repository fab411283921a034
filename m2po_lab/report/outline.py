"""The order of the report: five questions, the same in every medium."""

from m2po_lab.report.drift import how_far
from m2po_lab.report.findings import what_to_look_at
from m2po_lab.report.items import Section
from m2po_lab.report.sources import can_it_be_trusted, what_was_read
from m2po_lab.report.whatif import trust_regions

SECTIONS = (
    Section("read", "What was read", what_was_read),
    Section("trust", "Can it be trusted", can_it_be_trusted),
    Section("drift", "How far off-policy, and where", how_far),
    Section("regions", "What each trust region would do to these tokens", trust_regions),
    Section("look", "What to look at", what_to_look_at),
)
