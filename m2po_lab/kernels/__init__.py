"""Compiled kernels (numba), optional: `m2po_lab.core.kernels` is the only way in."""
