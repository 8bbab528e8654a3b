"""Holds the compiled loops over raw arrays, in which surestep spends nearly all its time."""

from surestep.kernels._processor import name_processor

name_processor()  # before any module below imports Numba
