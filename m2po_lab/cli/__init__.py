"""The command `m2po-lab`: parse, one call, print."""

from m2po_lab.cli.app import main as main
