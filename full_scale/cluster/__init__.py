"""Templates for jobs on several nodes: ray by hand, ray under Slurm."""
