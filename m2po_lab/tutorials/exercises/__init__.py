"""Questions of the notebooks, one table a notebook; truth is computed, by the core."""
