"""Pictures of the notebooks: numbers in, a Picture out; nothing is computed here."""
