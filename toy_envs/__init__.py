"""Toy environments: the phenomenon of stale rollouts, in minutes on a laptop."""
