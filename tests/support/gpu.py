"""How much a GPU is given to do in tests, and how near it must come to the processor."""

from numba import config

MANY = 9 if config.ENABLE_CUDASIM else 5_000
NEARLY = {"rtol": 1e-10, "atol": 1e-12}
