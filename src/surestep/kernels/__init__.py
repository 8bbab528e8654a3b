"""Holds the compiled loops over raw arrays, in which surestep spends nearly all its time."""
