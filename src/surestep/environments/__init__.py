"""Builds the benchmarks of the field exactly: models, behavior policies, horizons and bounds.

It also builds families of worlds that put claims to the test.
"""

from surestep.environments.benchmark import Benchmark, Simulator, Truth
from surestep.environments.registry import ENVIRONMENTS, FAMILIES, PUBLISHED, make

__all__ = ["ENVIRONMENTS", "FAMILIES", "PUBLISHED", "Benchmark", "Simulator", "Truth", "make"]
