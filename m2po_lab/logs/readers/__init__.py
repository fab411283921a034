"""One module a framework; each only maps that framework's layout to numbered rows of columns."""
