"""What a log says about itself and its run, with the numbers that say so.

`evaluate(analysis)` runs every rule of `TESTS` on an analysis and its integrity evidence; `CATALOG`
says for each finding what is tested and what to do; `THRESHOLDS` holds every number and its source.
"""

from m2po_lab.findings.catalog import CATALOG as CATALOG
from m2po_lab.findings.evaluate import TESTS as TESTS
from m2po_lab.findings.evaluate import evaluate as evaluate
from m2po_lab.findings.evaluate import explain as explain
from m2po_lab.findings.finding import Entry as Entry
from m2po_lab.findings.finding import Finding as Finding
from m2po_lab.findings.thresholds import DEFAULT as DEFAULT
from m2po_lab.findings.thresholds import THRESHOLDS as THRESHOLDS
from m2po_lab.findings.thresholds import load_thresholds as load_thresholds

RULES = CATALOG
"""Ids and their entries, under the name that the command uses."""
