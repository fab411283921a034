"""`python -m m2po_lab` is `m2po-lab`."""

import sys

from m2po_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
