"""What must be known before a number is trusted.

    for clean, evidence in checked(open_log(path)):   # or check(batch) for a single batch
        total = total + evidence

`clean` is the batch with a reduced keep, values untouched; `evidence` adds up over batches, files
and machines in any order. Everything in it is counts and sums: what it means is said by the
findings.
"""

from m2po_lab.integrity.check import Memory as Memory
from m2po_lab.integrity.check import check as check
from m2po_lab.integrity.check import checked as checked
from m2po_lab.integrity.evidence import BatchIntegrity as BatchIntegrity
from m2po_lab.integrity.evidence import RowCounts as RowCounts
from m2po_lab.integrity.evidence import TokenCounts as TokenCounts
