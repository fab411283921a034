"""Experiments of the notebooks: settings in, numbers out; mathematics is the core's."""
