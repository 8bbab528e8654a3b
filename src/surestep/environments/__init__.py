"""The benchmarks of the field, exact: models, behavior policies, and the terms of experiments."""

from surestep.environments.benchmark import Benchmark, Simulator
from surestep.environments.continuous_wet_chicken import ContinuousWetChicken, RiverCells
from surestep.environments.registry import ENVIRONMENTS, make

__all__ = [
    "ENVIRONMENTS",
    "Benchmark",
    "ContinuousWetChicken",
    "RiverCells",
    "Simulator",
    "make",
    "register",
]


def register() -> None:
    """Makes every benchmark known to Gymnasium, as `surestep/Gridworld-v0` and so on.

    Importing `surestep.environments.gymnasium_envs` does the same.
    """
    from surestep.environments import gymnasium_envs

    gymnasium_envs.register()
