"""Exit statuses."""

DONE = 0
FAILED = 1
"""`--fail-on` was reached."""
UNUSABLE = 2
INTERRUPTED = 130
