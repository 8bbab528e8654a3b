"""Draws figures of a run, or of formulas, and writes their tables."""
