"""The command line: parse, call, print; no logic."""

import os

# Before NumPy is imported: threads of BLAS wait for each other where systems are as small as here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
