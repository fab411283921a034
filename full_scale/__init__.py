"""Full scale: the same estimators inside verl jobs."""
