"""Compiled loops over raw arrays: where the time goes, and nothing else."""
