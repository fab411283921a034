"""Iterator of batches -> Analysis: mergeable statistics by step, lag, quadrant, position, ..."""

from m2po_lab.analysis.options import Options
from m2po_lab.analysis.result import Analysis
from m2po_lab.analysis.scan import Scanner, scan

__all__ = ["Analysis", "Options", "Scanner", "scan"]
