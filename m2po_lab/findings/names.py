"""Names of columns as the report has them."""

NAMES = {"behavior_logp": "behavior", "proximal_logp": "proximal", "current_logp": "current"}
"""Column -> its name in the report."""


WHOSE = {name: f"a {name} log-prob" for name in NAMES.values()} | {"every": "every log-prob"}
