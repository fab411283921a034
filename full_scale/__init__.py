"""Full scale: the same estimators inside verl jobs."""

VERL = "0.9.1"
"""The verl whose configuration and engines this package knows."""
